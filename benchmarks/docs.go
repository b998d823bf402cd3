package benchmarks

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/indexer"
	"cairn/internal/config"
	"cairn/internal/index"
	"cairn/internal/usage"
	"cairn/internal/walk"
	"cairn/internal/workspace"
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
	// Limit results, 0 for the default. They need Budget.
	Budgets []int
	Limit   int
	// Learn, when not "", names a split whose queries are learnt as sessions,
	// each of which reads its relevant documents in a random order. Queries of
	// Split with two or more relevant documents are then measured with each of
	// them in turn given as the context. When both are one split, every second
	// query is learnt and the others are measured.
	Learn string
	// Progress, when not nil, receives the progress of the indexing.
	Progress func(indexer.Progress)
	// Measured, when not nil, receives how many queries a system has answered.
	Measured func(system string, done, total int)
	// Program and Machine are for the fingerprints of the runs.
	Program, Machine string
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
	// Groups and Worst are those of the last mode, of a set that has groups.
	Groups []GroupReport `json:"groups,omitempty"`
	Worst  []WorstQuery  `json:"worst,omitempty"`
	// Runs are the rankings, one for each mode.
	Runs []*Run `json:"-"`
}

// Main returns the run of the mode that is measured last, hybrid unless others were chosen.
func (r *DocsReport) Main() *Run {
	for _, run := range slices.Backward(r.Runs) {
		if !run.Ablation {
			return run
		}
	}
	return nil // unreachable: a mode is measured
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
	if o.MaxQueries > 0 && o.MaxQueries < len(set.queries) {
		spread := make([]beirQuery, o.MaxQueries)
		for i := range spread {
			spread[i] = set.queries[i*len(set.queries)/o.MaxQueries]
		}
		set.queries = spread
	}
	dir, err := os.MkdirTemp(o.Work, "cairn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w, err := openBench(ctx, dir, set, o)
	if err != nil {
		return nil, err
	}
	defer w.close()
	report := &DocsReport{
		Dataset: name, Split: o.Split, Documents: len(set.documents), Queries: len(set.queries),
		Modes: map[retriever.Mode]ModeReport{}, Index: w.report,
	}
	data := set.fingerprint()
	modes := o.Modes
	if len(modes) == 0 {
		modes = []retriever.Mode{retriever.Keyword, retriever.Semantic, retriever.Hybrid}
	}
	for _, mode := range modes {
		run, err := w.measure(ctx, set.queries, mode, o.Measured)
		if err != nil {
			return nil, err
		}
		run.Documents, run.Fingerprint = report.Documents, o.fingerprint(report, data)
		report.Runs = append(report.Runs, run)
		report.Modes[mode] = ModeReport{run.Metrics(), run.Latency()}
	}
	report.Groups, report.Worst = report.Main().groups(), report.Main().worst()
	if report.Budgets, err = w.measureBudgets(ctx, set.queries, o); err != nil {
		return nil, err
	}
	if o.Learn != "" {
		heldOut := set.queries
		if o.Learn == o.Split {
			heldOut = nil
			for i := 1; i < len(set.queries); i += 2 {
				heldOut = append(heldOut, set.queries[i])
			}
		}
		if report.Context, err = w.measureContext(ctx, heldOut); err != nil {
			return nil, err
		}
	}
	report.Index.PeakRSS = peakRSS()
	return report, nil
}

// bench is one set, indexed.
type bench struct {
	retriever *retriever.Retriever
	usage     *usage.Store      // nil unless something is learnt
	measured  contextFormula    // that the graph's bonus is made of
	ids       map[string]string // path -> document id
	report    IndexReport
	closers   []func() error
}

func (w *bench) close() {
	for _, c := range slices.Backward(w.closers) {
		c() // all of it is removed next
	}
}

// openBench writes the documents of set below dir and indexes them.
func openBench(ctx context.Context, dir string, set *beirSet, o *DocsOptions) (_ *bench, err error) {
	w := &bench{ids: make(map[string]string, len(set.documents))}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	source, indexed := filepath.Join(dir, "docs"), filepath.Join(dir, "index")
	for _, d := range []string{source, indexed} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, d := range set.documents {
		name := d.path
		if name == "" {
			name = fileName(d.ID, w.ids)
		}
		w.ids[name] = d.ID
		file := filepath.Join(source, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(d.markdown()), 0o600); err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.DiscardHandler)
	stores, err := index.Open(config.Selection{Root: source}, indexed, nil, o.Embedder.Description(), true, nil, log)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, stores.Close)
	if o.Cache != "" {
		cache, err := openCache(o.Cache, o.Embedder.Description())
		if err != nil {
			return nil, err
		}
		stores.Cache, w.closers = cache, append(w.closers, cache.Close)
	}
	start := time.Now()
	x := indexer.New(indexer.Stores{Files: stores.Files, Docs: stores.Docs, Keyword: stores.Keyword, Vectors: stores.Vectors, Cache: stores.Cache}, o.Embedder,
		&indexer.Options{Walk: &walk.Options{NoIgnoreFiles: true, Allow: []string{"**"}, Extensions: o.Config.Extensions()}})
	if _, err := x.Run(ctx, o.Progress); err != nil {
		return nil, err
	}
	w.report.Seconds = time.Since(start).Seconds()
	if w.report.Bytes, err = workspace.SizeOf(indexed); err != nil {
		return nil, err
	}
	options := index.RetrieverOptions(o.Config, log)
	if o.Learn != "" {
		if w.usage, err = w.learn(ctx, indexed, o); err != nil {
			return nil, err
		}
		options.Reweigher, options.ReweighLimit = retriever.CoUsage{Read: w.usage.Read, Formula: w.formula, Log: log}, retriever.CoUsageLimit
	}
	options.QueryCache = 1 // every query is embedded in every mode
	options.MaxQuery = math.MaxInt
	w.retriever, err = retriever.New(stores.Sources(o.Embedder, o.Budget), options)
	return w, err
}

// fileName makes a file name of an id that is not one of taken. It keeps the
// words of the id, since the names of real files say something too.
func fileName(id string, taken map[string]string) string {
	stem := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, id)
	stem = strings.TrimLeft(stem, "._")
	stem = stem[:min(len(stem), 120)]
	if stem == "" {
		stem = "document"
	}
	name := stem + ".md"
	for n := 2; ; n++ {
		if _, ok := taken[name]; !ok {
			return name
		}
		name = stem + "-" + strconv.Itoa(n) + ".md"
	}
}

// fingerprint says what the runs of a report are made from.
func (o *DocsOptions) fingerprint(r *DocsReport, data string) Fingerprint {
	return Fingerprint{
		Set: r.Dataset + "/" + r.Split, Data: data, Model: o.Embedder.Description().ID, Program: o.Program, Machine: o.Machine,
		Configuration: fmt.Sprintf("search.semantic_weight=%g search.keyword_weight=%g", o.Config.Search.SemanticWeight, o.Config.Search.KeywordWeight),
	}
}

// measure runs all queries in one mode.
func (w *bench) measure(ctx context.Context, queries []beirQuery, mode retriever.Mode, measured func(string, int, int)) (*Run, error) {
	run := &Run{System: string(mode)}
	for i, q := range queries {
		if measured != nil && i%16 == 0 {
			measured(run.System, i, len(queries))
		}
		query := retriever.Query{Text: strings.TrimSpace(q.text), Mode: mode}
		start := time.Now()
		ranking, err := w.retriever.Rank(ctx, query, 0)
		var shown *retriever.Answer
		if err == nil {
			shown, err = w.retriever.Present(ctx, query, ranking, 10)
		}
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", q.id, err)
		}
		ranked := RunQuery{ID: q.id, Text: query.Text, Relevant: q.relevant, Sections: q.sections, Groups: q.groups}
		if i > 0 || len(queries) == 1 { // the first warms up
			ranked.Milliseconds = math.Round(float64(time.Since(start).Nanoseconds())/1e3) / 1e3
		}
		w.fill(&ranked, ranking)
		if len(ranked.Sections) > 0 {
			for _, r := range shown.Results[:min(foundSections, len(shown.Results))] {
				ranked.Found = append(ranked.Found, w.ids[r.Path]+"#"+r.Anchor)
			}
		}
		run.Queries = append(run.Queries, ranked)
	}
	return run, nil
}

// fill records a ranking.
func (w *bench) fill(q *RunQuery, ranking *retriever.Ranking) {
	for i := range ranking.Documents[:min(runDepth, len(ranking.Documents))] {
		d := &ranking.Documents[i]
		id := w.ids[d.Path]
		q.Ranking = append(q.Ranking, Scored{id, d.Score})
		if i > 0 && (q.Best != nil || q.Relevant[id] <= 0) {
			continue
		}
		e := &Evidence{ID: id, Rank: i + 1, Score: d.Score}
		for _, p := range d.Parts() {
			switch p.Name {
			case "vector":
				e.Vector = p.Weight * p.Value
			case "keyword":
				e.Keyword = p.Weight * p.Value
			default:
				e.Graph += p.Weight * p.Value
			}
		}
		if i == 0 {
			q.First = e
		}
		if q.Relevant[id] > 0 {
			q.Best = e
		}
	}
}
