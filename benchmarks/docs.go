package benchmarks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/config"
	"cairn/internal/job"
	"cairn/models"
	"cairn/retriever"
)

// DocsOptions say what Docs measures. Data, Split and Embedder are required.
type DocsOptions struct {
	// Data is a folder in BEIR's layout.
	Data string
	// Split names a file below qrels, without ".tsv".
	Split string
	// Modes are the ones measured, in this order; nil means all three.
	Modes []retriever.Mode
	// Embedder makes the vectors; it stays the caller's to close. Budget
	// counts tokens of results; nil estimates them.
	Embedder models.Embedder
	Budget   models.BudgetCounter
	// Reranker, unless nil, reorders the best results; it stays the caller's to close.
	Reranker models.Reranker
	// Config holds the settings of the retriever.
	Config config.Config
	// Cache is a folder that keeps embeddings from run to run; "" keeps none.
	Cache string
	// Work is the folder in which the temporary workspace and its index are
	// made; "" is the system's.
	Work string
	// MaxQueries, when positive, is how many queries are measured, evenly spread over
	// the split.
	MaxQueries int
	// Budgets are token budgets to measure answers within, by hybrid searches with
	// Limit results, 0 for the default, next to other ways of reading. They need Budget.
	Budgets []int
	Limit   int
	// Ablate also measures hybrid searches with one part changed.
	Ablate bool
	// Adapters are other systems that answer the same queries.
	Adapters []Adapter
	// Learn, when not "", names a split whose queries are learnt as sessions,
	// each of which reads its relevant documents in a random order. Queries of
	// Split with two or more relevant documents are then measured with each of
	// them in turn given as the context. When both are one split, every second
	// query is learnt and the others are measured.
	Learn string
	// Progress, when not nil, receives the progress of the indexing.
	Progress func(job.Progress)
	// Measured, when not nil, receives how many queries a system has answered.
	Measured func(system string, done, total int)
	// Program and Machine are for the fingerprints of the runs.
	Program, Machine string
}

// vectors reports whether anything but keyword search is measured.
func (o *DocsOptions) vectors() bool {
	return len(o.Modes) != 1 || o.Modes[0] != retriever.Keyword || len(o.Budgets) > 0 || o.Ablate || len(o.Adapters) > 0
}

// DocsReport is what Docs measures.
type DocsReport struct {
	Dataset   string                        `json:"dataset"`
	Split     string                        `json:"split"`
	Documents int                           `json:"documents"`
	Queries   int                           `json:"queries"`
	Modes     map[retriever.Mode]ModeReport `json:"modes"`
	Index     IndexReport                   `json:"index"`
	Budgets   []BudgetReport                `json:"budgets,omitempty"`
	Context   *ContextReport                `json:"context,omitempty"`
	Gate      GateResult                    `json:"gate,omitempty"`
	// Systems are the summaries of Runs, Ablations what they change.
	Systems   []RunSummary `json:"systems"`
	Ablations []Ablation   `json:"ablations,omitempty"`
	// Groups and Worst are those of the last mode, of a set that has groups.
	Groups []GroupReport `json:"groups,omitempty"`
	Worst  []WorstQuery  `json:"worst,omitempty"`
	// Runs are the rankings of the modes, the ablations and the adapters.
	Runs []*Run `json:"-"`
}

// Main returns the run of the mode that is measured last, hybrid unless others were chosen.
func (r *DocsReport) Main() *Run { return mainRun(r.Runs) }

// mainRun is the run that the others are compared with: the last of cairn's modes, or the
// first run where none is one.
func mainRun(runs []*Run) *Run {
	for _, run := range slices.Backward(runs) {
		if _, err := retriever.ParseMode(run.System); err == nil && !run.Ablation {
			return run
		}
	}
	return runs[0]
}

// ModeReport is the quality and the speed of one mode. Latencies are those of a
// search with ten results on a warm index, query embedding included.
type ModeReport struct {
	Metrics
	Latency Latency `json:"latency_ms"`
}

// Latency holds percentiles in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// IndexReport says what the index cost: seconds from start to searchable, bytes
// on disk, and the largest resident set of the process so far.
type IndexReport struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	PeakRSS int64   `json:"peak_rss_bytes"`
}

// Docs indexes a document retrieval set with the indexer and stores of a
// workspace and runs the queries of one split with its retriever. Every document is a
// Markdown file named after its id, its title in the front matter. Queries are
// not held to the length that tools accept. A ranking goes as deep as a
// search does; near-duplicates keep the place their own score gives them.
func Docs(ctx context.Context, o DocsOptions) (*DocsReport, error) {
	if o.Embedder == nil {
		return nil, fmt.Errorf("measuring %s: an embedder is needed", o.Data)
	}
	set, err := readBEIR(o.Data, o.Split)
	if err != nil {
		return nil, fmt.Errorf("reading the set: %w", err)
	}
	return measureDocs(ctx, set, filepath.Base(filepath.Clean(o.Data)), &o)
}

// measureDocs measures a set. o.Split is its second name.
func measureDocs(ctx context.Context, set *beirSet, name string, o *DocsOptions) (*DocsReport, error) {
	if o.Measured == nil {
		o.Measured = func(string, int, int) {}
	}
	set.queries = spread(set.queries, o.MaxQueries)
	dir, err := os.MkdirTemp(o.Work, "cairn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w, err := openBench(ctx, dir, set, o, nil)
	if err != nil {
		return nil, err
	}
	defer w.close()
	report := &DocsReport{
		Dataset: name, Split: o.Split, Documents: len(set.documents), Queries: len(set.queries),
		Modes: map[retriever.Mode]ModeReport{}, Index: w.report,
	}
	m := &measurement{bench: w, set: set, report: report, data: set.fingerprint()}
	if err := m.run(ctx, dir); err != nil {
		return nil, err
	}
	report.Index.PeakRSS = peakRSS()
	return report, nil
}
