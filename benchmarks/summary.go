package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// RunSummary is a run without its queries: the means with their confidence intervals.
type RunSummary struct {
	System      string      `json:"system"`
	Fingerprint Fingerprint `json:"fingerprint"`
	Queries     int         `json:"queries"`
	Metrics
	// Intervals holds the bounds of the 95 % confidence interval of each metric.
	Intervals map[string][2]float64 `json:"ci95"`
	Latency   Latency               `json:"latency_ms"`
	Sections  *SectionMetrics       `json:"sections,omitempty"`
}

// SectionMetrics holds the shares of the queries with relevant sections for which one of
// these is shown for the first document, or for one of the first three.
type SectionMetrics struct {
	Queries int     `json:"queries"`
	Hit1    float64 `json:"hit@1"`
	Hit3    float64 `json:"hit@3"`
}

// bootstrapRounds is the number of samples for a confidence interval.
const bootstrapRounds = 1000

// Summary returns the figures of the run.
func (r *Run) Summary() RunSummary {
	each := r.each()
	return RunSummary{System: r.System, Fingerprint: r.Fingerprint, Queries: len(r.Queries), Metrics: meanMetrics(each),
		Intervals: intervals(each), Latency: r.Latency(), Sections: r.sections()}
}

// sections returns the section metrics, nil if no relevant section is known or the run has
// no sections.
func (r *Run) sections() *SectionMetrics {
	s := &SectionMetrics{}
	named := false
	for i := range r.Queries {
		if q := &r.Queries[i]; len(q.Sections) > 0 {
			s.Queries++
			named = named || len(q.Found) > 0
			s.Hit1 += q.sectionHit(1)
			s.Hit3 += q.sectionHit(3)
		}
	}
	if !named {
		return nil
	}
	s.Hit1 /= float64(s.Queries)
	s.Hit3 /= float64(s.Queries)
	return s
}

// intervals returns the confidence intervals of the means.
func intervals(each []Metrics) map[string][2]float64 {
	values := make([][]float64, len(each))
	for i := range each {
		for _, f := range each[i].fields() {
			values[i] = append(values[i], *f)
		}
	}
	bounds := bootstrap(values, len(metricNames))
	out := map[string][2]float64{}
	for m, name := range metricNames {
		out[name] = bounds[m]
	}
	return out
}

// bootstrap returns percentile bootstrap intervals (Efron and Tibshirani, 1993) of the means
// of n figures. Each sample draws as many queries as there are, with replacement.
func bootstrap(values [][]float64, n int) [][2]float64 {
	samples := make([][]float64, n)
	r := rand.New(rand.NewPCG(1, 1))
	for range bootstrapRounds {
		sums := make([]float64, n)
		for range values {
			for m, v := range values[r.IntN(len(values))] {
				sums[m] += v
			}
		}
		for m, sum := range sums {
			samples[m] = append(samples[m], sum/float64(max(1, len(values))))
		}
	}
	out := make([][2]float64, n)
	for m := range out {
		out[m] = [2]float64{Percentile(samples[m], 2.5), Percentile(samples[m], 97.5)}
	}
	return out
}

func (s *RunSummary) label() string {
	f := s.Fingerprint
	parts := []string{s.System, f.Set, f.Model, f.Program, f.Configuration}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// RunsReport compares the figures of any number of runs.
type RunsReport struct {
	Runs []RunSummary `json:"runs"`
	Gate GateResult   `json:"gate,omitempty"`
}

// String returns the report as a table.
func (r *RunsReport) String() string {
	var b strings.Builder
	title := func(s RunSummary) string { return fmt.Sprintf("%s, %d queries", s.Fingerprint.Set, s.Queries) }
	for _, t := range tablesOf(r.Runs, title) {
		fmt.Fprintf(&b, "%s\n", t.Name)
		writeSystems(&b, t.Rows)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n") + r.Gate.String()
}

// writeSystems writes a table of runs of the same queries.
func writeSystems(b *strings.Builder, runs []RunSummary) {
	fmt.Fprintf(b, "%-24s %8s %17s %8s %8s %8s %9s %9s", "system", "ndcg@10", "95 %", "mrr", "hit@5", "rec@100", "p50 ms", "p95 ms")
	for _, s := range runs {
		ci := s.Intervals[metricNames[0]]
		fmt.Fprintf(b, "\n%-24s %8.4f   %.4f - %.4f %8.4f %8.4f %8.4f %9.2f %9.2f", s.System, s.NDCG10, ci[0], ci[1], s.MRR, s.Hit5, s.Recall100, s.Latency.P50, s.Latency.P95)
		if s.Sections != nil {
			fmt.Fprintf(b, "\n%-24s the right section first %.4f, among three %.4f (%d queries)", "", s.Sections.Hit1, s.Sections.Hit3, s.Sections.Queries)
		}
	}
}
