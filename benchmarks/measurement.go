package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"cairn/internal/base/job"
	"cairn/retriever"
)

// measurement produces one report.
type measurement struct {
	*bench
	set    *beirSet
	report *DocsReport
	data   string // fingerprint of the set
}

// run makes all measurements of the options. dir is a folder for temporary files.
func (m *measurement) run(ctx context.Context, dir string) (err error) {
	modes := m.o.Modes
	if len(modes) == 0 {
		modes = []retriever.Mode{retriever.Keyword, retriever.Semantic, retriever.Hybrid}
	}
	for _, mode := range modes {
		run, err := m.search(ctx, m.bench, variant{name: string(mode), mode: mode})
		if err != nil {
			return err
		}
		m.report.Modes[mode] = ModeReport{run.Metrics(), run.Latency()}
	}
	r := m.report
	if r.Groups = r.Main().groups(); r.Groups != nil {
		r.Worst = r.Main().worst()
	}
	if r.Budgets, err = m.measureBudgets(ctx); err != nil {
		return err
	}
	if m.o.Learn != "" {
		heldOut := m.set.queries
		if m.o.Learn == m.o.Split {
			heldOut = nil
			for i := 1; i < len(m.set.queries); i += 2 {
				heldOut = append(heldOut, m.set.queries[i])
			}
		}
		if r.Context, err = m.measureContext(ctx, heldOut); err != nil {
			return err
		}
	}
	main := r.Main()
	main.Index, main.Budgets, main.Context = &r.Index, r.Budgets, r.Context
	if m.o.Ablate {
		if err := m.ablate(ctx, dir); err != nil {
			return err
		}
	}
	if err := m.measureAdapters(ctx, dir); err != nil {
		return err
	}
	for _, run := range r.Runs {
		r.Systems = append(r.Systems, run.Summary())
	}
	r.Ablations = ablations(r.Runs)
	return nil
}

// show gives the progress of a measurement to progress, unless it is nil.
func show(progress func(job.Progress), phase string, done, total int) {
	if progress != nil {
		progress(job.Progress{Phase: phase, Done: done, Total: total})
	}
}

// add completes a run and adds it to the report.
func (m *measurement) add(run *Run, configuration string) {
	run.Documents = m.report.Documents
	run.Fingerprint.Set, run.Fingerprint.Data = m.report.Dataset+"/"+m.report.Split, m.data
	run.Fingerprint.Model, run.Fingerprint.Machine = m.o.Embedder.Description().ID, m.o.Machine
	run.Fingerprint.Program = cmp.Or(run.Fingerprint.Program, m.o.Program)
	run.Fingerprint.Configuration = configuration
	m.report.Runs = append(m.report.Runs, run)
}

// search runs all queries on w.
func (m *measurement) search(ctx context.Context, w *bench, v variant) (*Run, error) {
	run := &Run{System: v.name, Ablation: v.ablation}
	for i, q := range m.set.queries {
		show(m.o.Progress, run.System+" searches", i, len(m.set.queries))
		ranked := q
		ranked.Text = strings.TrimSpace(q.Text)
		query := retriever.Query{Text: ranked.Text, Mode: v.mode}
		start := time.Now()
		ranking, err := w.retriever.Rank(ctx, query)
		var shown *retriever.Answer
		if err == nil {
			shown, err = w.retriever.Present(ctx, query, ranking, 10)
		}
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", q.ID, err)
		}
		if i > 0 || len(m.set.queries) == 1 { // the first warms up
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
	c := m.o.Config.Search
	configuration := fmt.Sprintf("search.semantic_weight=%g search.keyword_weight=%g", c.SemanticWeight, c.KeywordWeight)
	if m.o.Reranker != nil {
		configuration += ", re-ranked"
	}
	if v.ablation {
		configuration += ", " + v.name
	}
	m.add(run, configuration)
	return run, nil
}

// fill records a ranking in q.
func (w *bench) fill(q *RunQuery, ranking *retriever.Ranking) {
	var all []*Evidence
	for i := range ranking.Documents[:min(runDepth, len(ranking.Documents))] {
		d := &ranking.Documents[i]
		e := &Evidence{ID: w.ids[d.Path], Rank: i + 1, Score: d.Score}
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
		all = append(all, e)
		q.Ranking = append(q.Ranking, Scored{e.ID, e.Score})
	}
	q.explain(all...)
}
