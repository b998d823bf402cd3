package benchmarks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Run holds the rankings of one system for the queries of a set, with the judgements and the
// fingerprint.
type Run struct {
	// System is the name of the system, such as "hybrid".
	System      string      `json:"system"`
	Fingerprint Fingerprint `json:"fingerprint"`
	Documents   int         `json:"documents,omitempty"`
	// Ablation reports that the system is a variant of the search, see variants.
	Ablation bool           `json:"ablation,omitempty"`
	Index    *IndexReport   `json:"index,omitempty"`
	Budgets  []BudgetReport `json:"budgets,omitempty"`
	Context  *ContextReport `json:"context,omitempty"`
	Queries  []RunQuery     `json:"-"`
}

// Fingerprint identifies the input of a run. Runs are comparable if Data is equal.
type Fingerprint struct {
	// Set is the name of the data. Data is the SHA-256 of the documents, queries and
	// judgements, "" if they are not known.
	Set  string `json:"set,omitempty"`
	Data string `json:"data,omitempty"`
	// Configuration lists the settings that differ between runs of one program.
	Configuration string `json:"configuration,omitempty"`
	// Model is the ID of the encoder, Program the version of cairn or of another system,
	// Machine the computer on which it was timed.
	Model   string `json:"model,omitempty"`
	Program string `json:"program,omitempty"`
	Machine string `json:"machine,omitempty"`
}

// RunQuery is a query with its judgements and its ranking.
type RunQuery struct {
	ID       string    `json:"id"`
	Text     string    `json:"text,omitempty"`
	Relevant Relevance `json:"relevant"`
	// Sections lists the relevant sections as "document#anchor", if they are known.
	Sections []string `json:"sections,omitempty"`
	// Groups maps kinds of groups to the group of the query, such as "kind" to "heading".
	Groups map[string]string `json:"groups,omitempty"`
	// Milliseconds is the time of the answer; 0 if it was not measured.
	Milliseconds float64 `json:"ms,omitempty"`
	// First and Best are the scores of the first document and of the best relevant one.
	First *Evidence `json:"first,omitempty"`
	Best  *Evidence `json:"best,omitempty"`
	// Found lists the sections shown for the first documents, as "document#anchor".
	Found []string `json:"found,omitempty"`
	// Ranking holds at most runDepth documents, best first. It is in the run's main file.
	Ranking []Scored `json:"-"`
}

// runDepth bounds the documents of a ranking in a run. measureRanking uses no more.
const runDepth = 100

// foundSections bounds RunQuery.Found.
const foundSections = 10

// Scored is a document in a ranking.
type Scored struct {
	ID    string
	Score float64
}

// Evidence holds the components of the score of a document. Score is the sum of Vector,
// Keyword and Graph.
type Evidence struct {
	ID      string  `json:"id"`
	Rank    int     `json:"rank"` // from 1
	Score   float64 `json:"score"`
	Vector  float64 `json:"vector"`
	Keyword float64 `json:"keyword"`
	Graph   float64 `json:"graph,omitempty"`
}

func (e *Evidence) String() string {
	if e == nil {
		return "not found"
	}
	text := fmt.Sprintf("rank %d, %s: %.3f", e.Rank, e.ID, e.Score)
	if e.Vector == 0 && e.Keyword == 0 {
		return text // another system has no components
	}
	text += fmt.Sprintf(" = %.3f meaning + %.3f words", e.Vector, e.Keyword)
	if e.Graph != 0 {
		text += fmt.Sprintf(" + %.3f use", e.Graph)
	}
	return text
}

// ids returns the documents of the ranking.
func (q *RunQuery) ids() []string {
	ids := make([]string, len(q.Ranking))
	for i, d := range q.Ranking {
		ids[i] = d.ID
	}
	return ids
}

// sectionHit returns 1 if a relevant section is shown for one of the first k documents, and
// 0 otherwise.
func (q *RunQuery) sectionHit(k int) float64 {
	for _, s := range q.Found[:min(k, len(q.Found))] {
		if slices.Contains(q.Sections, s) {
			return 1
		}
	}
	return 0
}

// each returns the figures of every query.
func (r *Run) each() []Metrics {
	all := make([]Metrics, len(r.Queries))
	for i := range r.Queries {
		all[i] = measureRanking(r.Queries[i].ids(), r.Queries[i].Relevant)
	}
	return all
}

// Metrics returns the means over all queries.
func (r *Run) Metrics() Metrics { return meanMetrics(r.each()) }

// times returns the milliseconds of the queries that were timed.
func (r *Run) times() (ms []float64) {
	for i := range r.Queries {
		if t := r.Queries[i].Milliseconds; t > 0 {
			ms = append(ms, t)
		}
	}
	return ms
}

// Latency returns the percentiles of the queries' times.
func (r *Run) Latency() Latency { return percentiles(r.times()) }

// fingerprint hashes the documents, queries and judgements of a set.
func (s *beirSet) fingerprint() string {
	h := sha256.New()
	write := func(fields ...string) {
		for _, f := range fields {
			fmt.Fprintf(h, "%d:", len(f))
			io.WriteString(h, f)
		}
	}
	documents := slices.Clone(s.documents)
	slices.SortFunc(documents, func(a, b beirDocument) int { return strings.Compare(a.ID, b.ID) })
	for _, d := range documents {
		write("document", d.ID, d.Title, d.Text)
	}
	for _, q := range s.queries {
		write("query", q.ID, q.Text)
		for _, id := range slices.Sorted(maps.Keys(q.Relevant)) {
			write(id, fmt.Sprint(q.Relevant[id]))
		}
		write(q.Sections...)
	}
	return hex.EncodeToString(h.Sum(nil))
}
