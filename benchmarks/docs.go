package benchmarks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/folder/config"
	"cairn/models"
	"cairn/retriever"
)

// DocsOptions configures Docs. Data, Split and Embedder are required.
type DocsOptions struct {
	// Data is a folder in BEIR's layout.
	Data string
	// Split is the name of a file below qrels, without ".tsv".
	Split string
	// Modes lists the modes to measure, in this order. Nil means all three.
	Modes []retriever.Mode
	// Embedder computes the vectors. Budget counts tokens of results; nil estimates them.
	// The caller closes Embedder.
	Embedder models.Embedder
	Budget   models.BudgetCounter
	// Reranker, if not nil, reorders the best results. The caller closes it.
	Reranker models.Reranker
	// Config holds the settings of the retriever.
	Config config.Config
	// Cache is a folder that keeps embeddings between runs; "" keeps none.
	Cache string
	// Vectors is the folder of the vectors of an index, which are read as well; "" means
	// none. VectorsLimit, if positive, bounds the time in which further ones are made.
	Vectors      string
	VectorsLimit time.Duration
	// Work is the folder for the temporary workspace and its index; "" means the system's.
	Work string
	// MaxQueries, if positive, bounds the measured queries, which are evenly spaced over
	// the split.
	MaxQueries int
	// Budgets lists token budgets within which answers are measured, by hybrid searches
	// with Limit results (0 means the default) and by other ways of reading. They need
	// Budget.
	Budgets []int
	Limit   int
	// Ablate also measures hybrid searches with one part changed.
	Ablate bool
	// Adapters lists other systems that answer the same queries.
	Adapters []Adapter
	// Learn, if not "", is the name of a split whose queries are learnt as sessions. Each
	// session reads its relevant documents in random order. Queries of Split with two or
	// more relevant documents are then measured with each of these as the context. If
	// both splits are the same, every second query is learnt and the others are measured.
	Learn string
	// Progress, if not nil, receives the progress of the indexing and of the queries.
	Progress func(job.Progress)
	// Program and Machine are recorded in the fingerprints of the runs.
	Program, Machine string
}

// DocsReport is the result of Docs.
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
	// Systems holds the summaries of Runs, Ablations the effects of the variants.
	Systems   []RunSummary `json:"systems"`
	Ablations []Ablation   `json:"ablations,omitempty"`
	// Groups and Worst are those of the last mode, if the set has groups.
	Groups []GroupReport `json:"groups,omitempty"`
	Worst  []WorstQuery  `json:"worst,omitempty"`
	// Verdict says whether the answers to the user's own questions are good.
	Verdict string `json:"verdict,omitempty"`
	// Runs holds the rankings of the modes, the ablations and the adapters.
	Runs []*Run `json:"-"`
}

// Main returns the run of the last measured mode, which is hybrid by default.
func (r *DocsReport) Main() *Run { return mainRun(r.Runs) }

// mainRun returns the run with which others are compared: that of cairn's last mode, or the
// first run if there is none.
func mainRun(runs []*Run) *Run {
	for _, run := range slices.Backward(runs) {
		if _, err := retriever.ParseMode(run.System); err == nil && !run.Ablation {
			return run
		}
	}
	return runs[0]
}

// ModeReport holds the quality and the latency of one mode. Latencies are those of a search
// with ten results on a warm index, including the embedding of the query.
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

// IndexReport is the cost of the index: seconds until it is searchable, bytes on disk, and
// the largest resident set of the process so far.
type IndexReport struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	PeakRSS int64   `json:"peak_rss_bytes"`
}

// Docs indexes a document retrieval set with the indexer and stores of a workspace, and runs
// the queries of one split with its retriever. Every document is a Markdown file named after
// its ID, with its title in the front matter. Queries can be longer than tools accept. A
// ranking is as deep as that of a search; near-duplicates are not removed.
func Docs(ctx context.Context, o DocsOptions) (*DocsReport, error) {
	set, err := readBEIR(o.Data, o.Split)
	if err != nil {
		return nil, fmt.Errorf("reading the set: %w", err)
	}
	return measureDocs(ctx, set, filepath.Base(filepath.Clean(o.Data)), &o)
}

// measureDocs measures a set with a name. o.Split is the second part of the name.
func measureDocs(ctx context.Context, set *beirSet, name string, o *DocsOptions) (*DocsReport, error) {
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
