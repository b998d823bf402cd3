package benchmarks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// CompareOptions configures Compare.
type CompareOptions struct {
	Metric string // counts wins and orders queries
	Seed   uint64 // of the randomization test
	Moved  int    // largest number of listed queries
}

// randomRounds is the number of rounds of a randomization test, enough for p to about .01.
const randomRounds = 10_000

// Comparison holds the changes from run A to run B of the same queries.
type Comparison struct {
	A       RunSummary         `json:"a"`
	B       RunSummary         `json:"b"`
	Queries int                `json:"queries"`
	Metrics []MetricDifference `json:"metrics"`
	Metric  string             `json:"metric"` // of the fields below
	Wins    int                `json:"wins"`   // queries for which B is better
	Losses  int                `json:"losses"`
	Ties    int                `json:"ties"`
	Moved   []MovedQuery       `json:"moved"` // the largest change first
	Gate    GateResult         `json:"gate,omitempty"`
}

// MetricDifference compares the means of one metric.
type MetricDifference struct {
	Name string  `json:"metric"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	// P is the probability of a difference at least as large in either direction if the
	// systems do not differ.
	P float64 `json:"p"`
}

// MovedQuery is a query whose figure changed. Before and After hold the best relevant
// document, and the first document if that is another one.
type MovedQuery struct {
	ID     string       `json:"id"`
	Text   string       `json:"text"`
	A      float64      `json:"a"`
	B      float64      `json:"b"`
	Before [2]*Evidence `json:"explain_a"`
	After  [2]*Evidence `json:"explain_b"`
}

// Compare compares two runs by query. It fails if their data differ.
func Compare(a, b *Run, o CompareOptions) (*Comparison, error) {
	if !slices.Contains(metricNames, o.Metric) {
		return nil, unknownMetric(o.Metric)
	}
	if x, y := a.Fingerprint, b.Fingerprint; x.Data != "" && y.Data != "" && x.Data != y.Data {
		return nil, fmt.Errorf("the runs are of different data: %s (%.12s) and %s (%.12s); measure both with the same documents, queries and judgements", x.Set, x.Data, y.Set, y.Data)
	}
	at := b.byID()
	first, second := a.each(), make([]Metrics, len(a.Queries))
	c := &Comparison{A: a.Summary(), B: b.Summary(), Queries: len(a.Queries), Metric: o.Metric}
	for i := range a.Queries {
		q := &a.Queries[i]
		other := at[q.ID]
		if other == nil || len(a.Queries) != len(b.Queries) {
			return nil, errors.New("the runs have different queries: measure both with the same ones")
		}
		second[i] = measureRanking(other.ids(), other.Relevant)
		x, y := first[i].named(o.Metric), second[i].named(o.Metric)
		switch {
		case x == y:
			c.Ties++
			continue
		case y > x:
			c.Wins++
		default:
			c.Losses++
		}
		c.Moved = append(c.Moved, MovedQuery{ID: q.ID, Text: cmp.Or(q.Text, other.Text), A: x, B: y,
			Before: [2]*Evidence{q.Best, q.other()}, After: [2]*Evidence{other.Best, other.other()}})
	}
	slices.SortStableFunc(c.Moved, func(x, y MovedQuery) int { return cmp.Compare(math.Abs(y.B-y.A), math.Abs(x.B-x.A)) })
	c.Moved = c.Moved[:min(o.Moved, len(c.Moved))]
	c.Metrics = randomize(metricNames, first, second, randomRounds, o.Seed)
	return c, nil
}

func unknownMetric(name string) error {
	return fmt.Errorf("unknown metric %q, want {%s}", name, strings.Join(metricNames, ","))
}

// other returns the evidence of the first document, unless it is the best relevant one.
func (q *RunQuery) other() *Evidence {
	if q.First == nil || q.Best != nil && q.Best.Rank == 1 {
		return nil
	}
	return q.First
}

// randomize compares the metrics of names, which must be a prefix of metricNames.
func randomize(names []string, a, b []Metrics, rounds int, seed uint64) []MetricDifference {
	out := make([]MetricDifference, len(names))
	meanA, meanB := meanMetrics(a), meanMetrics(b)
	differences := make([][]float64, len(names)) // of a metric, one for each query
	for m, name := range names {
		out[m] = MetricDifference{Name: name, A: *meanA.fields()[m], B: *meanB.fields()[m]}
		for i := range a {
			differences[m] = append(differences[m], *b[i].fields()[m]-*a[i].fields()[m])
		}
	}
	for m, p := range flipSigns(differences, rounds, seed) {
		out[m].P = p
	}
	return out
}

// flipSigns is the paired randomization test (Smucker, Allan and Carterette, CIKM 2007) of
// differences between two systems, by figure and query. If the systems do not differ,
// swapping them for a query has no effect, so each round swaps them for a random half of the
// queries. p is the share of the rounds, including the observed one, with a difference of
// means at least as large as the observed one.
func flipSigns(differences [][]float64, rounds int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 0))
	observed, extreme := make([]float64, len(differences)), make([]int, len(differences))
	for m := range differences {
		for _, d := range differences[m] {
			observed[m] += d
		}
	}
	signs := make([]float64, len(differences[0]))
	for range rounds {
		for i := range signs {
			signs[i] = float64(r.IntN(2)*2 - 1)
		}
		for m := range differences {
			sum := 0.0
			for i, d := range differences[m] {
				sum += signs[i] * d
			}
			if math.Abs(sum) >= math.Abs(observed[m])-1e-9 {
				extreme[m]++
			}
		}
	}
	p := make([]float64, len(differences))
	for m := range p {
		p[m] = float64(extreme[m]+1) / float64(rounds+1)
	}
	return p
}

// String returns the comparison as tables.
func (c *Comparison) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A %s\nB %s\n%d queries\n", c.A.label(), c.B.label(), c.Queries)
	fmt.Fprintf(&b, "%-12s %8s %8s %9s %7s", "", "A", "B", "B-A", "p")
	for _, m := range c.Metrics {
		fmt.Fprintf(&b, "\n%-12s %8.4f %8.4f %+9.4f %7.4f", m.Name, m.A, m.B, m.B-m.A, m.P)
	}
	fmt.Fprintf(&b, "\n%s: B wins %d, loses %d, ties %d", c.Metric, c.Wins, c.Losses, c.Ties)
	for _, q := range c.Moved {
		fmt.Fprintf(&b, "\n\n%+.4f  %s  %s", q.B-q.A, q.ID, q.Text)
		for i, side := range [][2]*Evidence{q.Before, q.After} {
			fmt.Fprintf(&b, "\n  %c %v", "AB"[i], side[0])
			if side[1] != nil {
				fmt.Fprintf(&b, "\n    behind %v", side[1])
			}
		}
	}
	return b.String() + c.Gate.String()
}
