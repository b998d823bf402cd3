package benchmarks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/store/legs"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/models"
)

// ToolsOptions configures Tools. Data and Embedder are required.
type ToolsOptions struct {
	// Data is a folder with tools.jsonl and tasks.jsonl.
	Data string
	// LearnSplit is the split of the tasks to learn, "" for none, TestSplit that of the
	// tasks to measure, "" for all. If Folds is two or more, the tasks to measure are
	// divided into that many folds, and each fold is measured after the others were
	// learnt.
	LearnSplit, TestSplit string
	Folds                 int
	// Distractors lists files of further tools, one tool per line. If there are any,
	// everything is measured a second time together with these tools.
	Distractors []string
	// Embedder computes the vectors. The caller closes it.
	Embedder models.Embedder
	// Reader opens the model that reads requests; nil means none.
	Reader func() (models.Reader, error)
	// Cache is a folder that keeps embeddings between runs; "" keeps none.
	Cache string
	// MaxTasks, if positive, bounds the measured tasks of each fold, which are evenly
	// spaced.
	MaxTasks int
	// Rows lists the retrieval rows to measure; nil means all of toolRows.
	Rows []string
	// Progress, if not nil, receives the progress of the indexing and of the tasks.
	Progress func(job.Progress)
}

// ToolMetrics holds the figures of one row: of one task, or means.
type ToolMetrics struct {
	NDCG10  float64 `json:"ndcg@10"`
	Recall5 float64 `json:"recall@5"`
	Comp5   float64 `json:"comp@5"` // 1 if all relevant tools are among the first five
	Hit1    float64 `json:"hit@1"`
	MRR     float64 `json:"mrr"`
	MAP10   float64 `json:"map@10"`
}

// toolRows lists the rows of the ablation: the two legs alone, their blend, and the blend with
// each term. "without_memory" has all terms except the memory of intents, "default" the
// terms of a suggestion.
var toolRows = []string{"keyword", "semantic", "hybrid", "+adamic_adar", "+pagerank", "+transitions", "+closure", "+memory", "without_memory", "default"}

func toolTerms(row string) toolsearch.Terms {
	t := toolsearch.Terms{NoGraph: true, NoPageRank: true, NoMemory: true}
	switch row {
	case "keyword":
		t.Legs = toolsearch.KeywordOnly
	case "semantic":
		t.Legs = toolsearch.SemanticOnly
	case "+adamic_adar":
		t.NoGraph, t.OwnContext = false, true
	case "+pagerank":
		t.NoPageRank = false
	case "+transitions":
		t.Transitions = true
	case "+closure":
		t.Closure = true
	case "+memory":
		t.NoMemory = false
	case "without_memory":
		t = toolsearch.Suggesting(nil)
		t.NoMemory = true
	case "default":
		t = toolsearch.Suggesting(nil)
	}
	return t
}

// ToolsReport is the result of Tools.
type ToolsReport struct {
	Dataset   string                 `json:"dataset"`
	Tools     int                    `json:"tools"`
	Intents   int                    `json:"intents"`
	Folds     int                    `json:"folds"`
	Retrieval map[string]ToolMetrics `json:"retrieval"`
	Plan      PlanMetrics            `json:"plan"`
	// Calibration is the calibration of the confidence of these plans.
	Calibration *Calibration `json:"calibration"`
	// Cold and ColdCalibration are Plan and Calibration without learning; nil if Plan is
	// without learning too.
	Cold            *PlanMetrics    `json:"plan_cold,omitempty"`
	ColdCalibration *Calibration    `json:"calibration_cold,omitempty"`
	Latency         ToolLatency     `json:"latency_ms"`
	Index           ToolIndexReport `json:"index"`
	// Among is the report with the distractors, nil without any. Its Tools includes them,
	// and its Retrieval has the rows of distractorRows and asideRow.
	Among *ToolsReport `json:"among_distractors,omitempty"`
	// Namesakes counts the distractors with the name of a tool of the set. Many do the
	// same, but are wrong answers in every row except asideRow.
	Namesakes int `json:"namesakes,omitempty"`
	// Loss is the loss of each row of Among.
	Loss map[string]ToolMetrics `json:"loss,omitempty"`
}

// distractorRows lists the rows that are measured with distractors.
var distractorRows = []string{"keyword", "semantic", "hybrid", "without_memory", "default"}

// asideRow is the row of the default ranking without namesakes.
const asideRow = "default_without_namesakes"

// ToolLatency holds percentiles in milliseconds, including the embedding of the query.
type ToolLatency struct {
	Search  Latency `json:"search"`
	Suggest Latency `json:"suggest"`
}

// ToolIndexReport holds the times from the start until the tools are searchable, in seconds,
// and the largest resident set of the process.
type ToolIndexReport struct {
	KeywordSeconds float64 `json:"keyword_seconds"`
	VectorSeconds  float64 `json:"vector_seconds"`
	PeakRSS        int64   `json:"peak_rss_bytes"`
}

// Tools measures tool search and suggestion on a set of intents whose tools are
// known, with the real index, graph and memory. Nothing is learnt from the
// tasks that are measured.
func Tools(ctx context.Context, o ToolsOptions) (*ToolsReport, error) {
	set, err := readToolSet(o.Data)
	if err != nil {
		return nil, fmt.Errorf("reading the set: %w", err)
	}
	folds, err := set.folds(o.LearnSplit, o.TestSplit, o.Folds)
	if err != nil {
		return nil, fmt.Errorf("dividing %s: %w", o.Data, err)
	}
	for f := range folds {
		folds[f].test = spread(folds[f].test, o.MaxTasks)
	}
	files := o.Distractors
	o.Distractors = nil
	report, err := measureSet(ctx, set, folds, &o)
	if err != nil || len(files) == 0 {
		return report, err
	}
	o.Distractors, o.Rows = files, slices.DeleteFunc(slices.Clone(distractorRows), func(row string) bool { return o.Rows != nil && !slices.Contains(o.Rows, row) })
	report.Among, err = measureSet(ctx, set, folds, &o)
	if err != nil {
		return nil, err
	}
	report.Loss = map[string]ToolMetrics{}
	for row, among := range report.Among.Retrieval {
		loss, ok := report.Retrieval[row]
		if row == asideRow {
			loss, ok = report.Retrieval["default"]
		}
		if !ok {
			continue
		}
		for i, f := range among.fields() {
			*loss.fields()[i] -= *f
		}
		report.Loss[row] = loss
	}
	return report, nil
}

// spread returns at most n elements of all, evenly spaced; all if n is 0.
func spread[T any](all []T, n int) []T {
	if n <= 0 || n >= len(all) {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

// measureSet measures folds of a set once.
func measureSet(ctx context.Context, set *toolSet, folds []fold, o *ToolsOptions) (*ToolsReport, error) {
	b, err := openToolBench(ctx, set, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	report := &ToolsReport{Dataset: filepath.Base(filepath.Clean(o.Data)), Tools: b.index.Len(), Folds: len(folds), Retrieval: map[string]ToolMetrics{}, Index: b.report, Namesakes: len(b.namesakes)}
	for _, f := range folds {
		b.total += len(f.test)
	}
	for _, f := range folds {
		report.Intents += len(f.test)
		if err := b.measure(ctx, f, o); err != nil {
			return nil, err
		}
	}
	for row, list := range b.rows {
		report.Retrieval[row] = meanOf(list, (*ToolMetrics).fields)
	}
	report.Plan, report.Calibration = b.plans.metrics(), calibrate(b.plans.judged)
	if b.cold.tasks > 0 {
		report.Cold, report.ColdCalibration = new(b.cold.metrics()), calibrate(b.cold.judged)
	}
	report.Latency = ToolLatency{percentiles(b.searches), percentiles(b.suggestions)}
	report.Index.PeakRSS = peakRSS()
	return report, nil
}

// toolBench is an indexed set.
type toolBench struct {
	index       *toolsearch.Index
	embedder    models.Embedder
	cache       legs.Cache
	report      ToolIndexReport
	namesakes   map[string]bool // IDs of distractors with the name of a tool of the set
	done, total int             // tasks
	rows        map[string][]ToolMetrics
	plans, cold planSums
	searches    []float64
	suggestions []float64
	closers
}

func openToolBench(ctx context.Context, set *toolSet, o *ToolsOptions) (_ *toolBench, err error) {
	b := &toolBench{embedder: o.Embedder, rows: map[string][]ToolMetrics{}, namesakes: map[string]bool{}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if o.Cache != "" {
		cache, err := openCache(o.Cache, o.Embedder.Description())
		if err != nil {
			return nil, err
		}
		b.cache, b.closers = cache, append(b.closers, cache.Close)
	}
	tools := slices.Clone(set.tools)
	own, names := map[string]bool{}, map[string]bool{}
	for i := range tools {
		own[tools[i].ID], names[bareName(&tools[i])] = true, true
	}
	for _, file := range o.Distractors {
		more, err := readTools(file, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		if err != nil {
			return nil, err
		}
		more = slices.DeleteFunc(more, func(t catalog.Tool) bool { return own[t.ID] })
		for i := range more {
			if names[bareName(&more[i])] {
				b.namesakes[more[i].ID] = true
			}
		}
		tools = append(tools, more...)
	}
	keywords, err := keyword.Memory()
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, keywords.Close)
	b.index = toolsearch.New(keywords, toolsearch.Options{Embedder: &cachedQueries{o.Embedder, b.cache}, Reader: o.Reader, Cache: b.cache})
	start := time.Now()
	err = b.index.Sync(ctx, tools, func(p job.Progress) {
		if p.Phase == toolsearch.KeywordsPhase {
			b.report.KeywordSeconds = time.Since(start).Seconds()
		}
		show(o.Progress, p.Phase, p.Done, p.Total)
	})
	b.report.VectorSeconds = time.Since(start).Seconds()
	return b, err
}

// bareName returns the words of a tool's name without the server's name, which namesakes
// share.
func bareName(t *catalog.Tool) string { return strings.Join(toolsearch.Words(t.BareName()), " ") }

// cachedQueries is an embedder that caches queries, because every row embeds the same intents
// and parts. Latency is measured without it.
type cachedQueries struct {
	models.Embedder
	cache legs.Cache
}

func (c *cachedQueries) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if c.cache == nil {
		return c.Embedder.EmbedQuery(ctx, text)
	}
	key := []store.Key{store.KeyOf("query\x00" + text)}
	known, err := c.cache.Get(key)
	if err != nil || known[0] != nil {
		return known[0], err
	}
	v, err := c.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	return v, c.cache.Put(key, [][]float32{v})
}

// latencyTasks bounds the tasks of a fold that are timed.
const latencyTasks = 100

// measure learns and measures one fold.
func (b *toolBench) measure(ctx context.Context, f fold, o *ToolsOptions) error {
	usage, err := b.learn(ctx, f.learn, o)
	if err != nil {
		return err
	}
	index, cold := b.index.WithUsage(usage), b.index.WithUsage(nil)
	rows := o.Rows
	if rows == nil {
		rows = toolRows
	}
	known := func(id string) bool { _, ok := index.Tool(id); return ok }
	for _, t := range f.test {
		for _, row := range rows {
			r, err := index.Rank(ctx, t.intent, toolTerms(row))
			if err != nil {
				return fmt.Errorf("task %s: %w", t.id, err)
			}
			b.rows[row] = append(b.rows[row], measureTools(r, t.relevant))
			if row == "default" && len(o.Distractors) > 0 {
				r.Candidates = slices.DeleteFunc(r.Candidates, func(c toolsearch.Candidate) bool { return b.namesakes[c.ID] })
				b.rows[asideRow] = append(b.rows[asideRow], measureTools(r, t.relevant))
			}
		}
		plan, err := suggest.Suggest(ctx, index, suggest.Request{Intent: t.intent})
		if err != nil {
			return fmt.Errorf("task %s: %w", t.id, err)
		}
		b.plans.add(plan, t, known)
		if len(f.learn) > 0 {
			if plan, err = suggest.Suggest(ctx, cold, suggest.Request{Intent: t.intent}); err != nil {
				return fmt.Errorf("task %s: %w", t.id, err)
			}
			b.cold.add(plan, t, known)
		}
		b.done++
		show(o.Progress, "measure", b.done, b.total)
	}
	return b.time(ctx, index, f.test)
}

// time measures searches and suggestions for intents that are not in the query cache.
func (b *toolBench) time(ctx context.Context, index *toolsearch.Index, tasks []*toolTask) error {
	n := min(latencyTasks, len(tasks))
	for round := range 2 {
		fresh := index.Uncached(b.embedder)
		for i := range n {
			t := tasks[i*len(tasks)/n]
			start := time.Now()
			var err error
			if round == 0 {
				_, err = fresh.Search(ctx, toolsearch.Query{Text: t.intent})
			} else {
				_, err = suggest.Suggest(ctx, fresh, suggest.Request{Intent: t.intent})
			}
			if err != nil {
				return fmt.Errorf("task %s: %w", t.id, err)
			}
			took := float64(time.Since(start).Nanoseconds()) / 1e6
			if i == 0 && n > 1 {
				continue // the first is a warm-up
			}
			if round == 0 {
				b.searches = append(b.searches, took)
			} else {
				b.suggestions = append(b.suggestions, took)
			}
		}
	}
	return nil
}

// learn returns the usage after the tasks in their order.
func (b *toolBench) learn(ctx context.Context, tasks []*toolTask, o *ToolsOptions) (*toolsearch.Usage, error) {
	g := &graphrank.Graph{}
	traces := make([]toolsearch.Trace, len(tasks))
	for i, task := range tasks {
		t := task.trace()
		traces[i] = t
		for _, id := range t.Tools {
			g.AddNode(id)
		}
		for _, e := range t.Edges {
			g.Observe(t.Tools[e[0]], t.Tools[e[1]], graphrank.Dependency)
		}
		for k := 1; k < len(t.Tools) && len(t.Edges) == 0; k++ {
			g.Observe(t.Tools[k-1], t.Tools[k], graphrank.Sequence)
		}
	}
	usage, err := toolsearch.NewUsage(ctx, g, traces, b.embedder, b.cache)
	if err != nil {
		return nil, err
	}
	return usage, usage.Embed(ctx, func(p job.Progress) { show(o.Progress, "learn", p.Done, p.Total) })
}

func measureTools(r *toolsearch.Ranking, rel Relevance) ToolMetrics {
	ids := make([]string, min(100, len(r.Candidates)))
	for i := range ids {
		ids[i] = r.Candidates[i].ID
	}
	m := ToolMetrics{NDCG10: ndcg(ids, rel, 10), Recall5: recall(ids, rel, 5), Hit1: hit(ids, rel, 1), MRR: reciprocalRank(ids, rel, len(ids)),
		MAP10: averagePrecisionAt(ids, rel, 10)}
	if m.Recall5 == 1 {
		m.Comp5 = 1
	}
	return m
}

// averagePrecisionAt is the sum of the precisions at the ranks of the relevant documents
// among the first k, divided by the largest possible number of such documents. Without a
// bound k it is trec_eval's map.
func averagePrecisionAt(ranking []string, rel Relevance, k int) float64 {
	n := min(k, relevant(rel))
	if n == 0 {
		return 0
	}
	var sum float64
	found := 0
	for i, id := range ranking[:min(k, len(ranking))] {
		if rel[id] > 0 {
			found++
			sum += float64(found) / float64(i+1)
		}
	}
	return sum / float64(n)
}

func (m *ToolMetrics) fields() []*float64 {
	return []*float64{&m.NDCG10, &m.Recall5, &m.Comp5, &m.Hit1, &m.MRR, &m.MAP10}
}
