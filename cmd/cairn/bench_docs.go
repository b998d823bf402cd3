package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
	"cairn/internal/config"
	"cairn/internal/job"
	"cairn/internal/term"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// docsFlags are the flags of the commands that measure searches of documents.
type docsFlags struct {
	runFlags
	o        benchmarks.DocsOptions
	mode     string
	settings []string
	adapters []string
}

func (f *docsFlags) add(a *app, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.settings, "set", nil, "`table.key=value` of a setting of the search; may be repeated")
	fs.StringVar(&f.mode, "mode", "all", "hybrid, keyword, semantic or all")
	fs.StringVar(&f.o.Cache, "cache", "", "folder that keeps embeddings from run to run")
	fs.IntSliceVar(&f.o.Budgets, "budgets", nil, "also measure how often answers within these token budgets hold text of a relevant document, such as 500,1000,2000,4000")
	intVar(fs, &f.o.Limit, "limit", 0, 1, retriever.MaxLimit, "results of the searches within --budgets")
	fs.BoolVar(&f.o.Ablate, "ablate", false, "also measure the search with one part changed at a time")
	fs.StringArrayVar(&f.adapters, "adapter", nil, "`name=command` of another system that answers the same queries; may be repeated")
	f.runFlags.add(fs)
	a.addModel(cmd)
	a.addRerank(cmd)
}

// measure runs docs with the options of the flags over the settings of base.
func (f *docsFlags) measure(a *app, base config.Config, docs func(benchmarks.DocsOptions) (*benchmarks.DocsReport, error)) (report *benchmarks.DocsReport, err error) {
	o := f.o
	o.Config = base
	if f.mode != "all" {
		m, err := retriever.ParseMode(f.mode)
		if err != nil {
			return nil, err
		}
		o.Modes = []retriever.Mode{m}
	}
	if err := o.Config.Apply(f.settings...); err != nil {
		return nil, badUsage("--set: %v", err)
	}
	for _, text := range f.adapters {
		adapter, err := benchmarks.ParseAdapter(text)
		if err != nil {
			return nil, badUsage("--adapter: %v", err)
		}
		o.Adapters = append(o.Adapters, adapter)
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	if o.Reranker, err = a.model.OpenReranker(); err != nil {
		return nil, err
	}
	err = a.withModel(func(model models.Embedder, bar *term.Progress) (err error) {
		o.Embedder, o.Budget, o.Program, o.Machine = model, &bpe.Counter{}, "cairn "+versionName(), machine(model)
		o.Progress = bar.Show
		o.Measured = func(system string, done, total int) {
			bar.Show(job.Progress{Phase: system + " searches", Done: done, Total: total})
		}
		if report, err = docs(o); err != nil {
			return err
		}
		return f.finish(report)
	})
	return report, err
}

func (a *app) benchDocsCommand() *cobra.Command {
	var f docsFlags
	cmd := benchCommand(a, "docs --data DIR --split NAME", "Measure retrieval on a data set in the layout of BEIR", func(ctx context.Context, _ []string) (*benchmarks.DocsReport, error) {
		return f.measure(a, config.Default(), func(o benchmarks.DocsOptions) (*benchmarks.DocsReport, error) { return benchmarks.Docs(ctx, o) })
	})
	fs := cmd.Flags()
	fs.StringVar(&f.o.Data, "data", "", "folder with corpus.jsonl, queries.jsonl and qrels/")
	fs.StringVar(&f.o.Split, "split", "test", "name of the judgements in qrels/")
	fs.StringVar(&f.o.Learn, "learn", "", "learn the queries of this split as sessions, and measure what one document in use adds for the others; with the split measured, every second query is learnt")
	intVar(fs, &f.o.MaxQueries, "queries", 0, 1, noBound, "measure only this many queries, evenly spread")
	f.add(a, cmd)
	_ = cmd.MarkFlagRequired("data")
	return cmd
}

func (a *app) benchSelfCommand() *cobra.Command {
	var f docsFlags
	var o benchmarks.SelfOptions
	cmd := benchCommand(a, "self", "Measure searches of the folder itself, without judgements", func(ctx context.Context, _ []string) (*benchmarks.DocsReport, error) {
		sel, cfg, err := a.choose()
		if err != nil {
			return nil, err
		}
		return f.measure(a, cfg, func(docs benchmarks.DocsOptions) (*benchmarks.DocsReport, error) {
			o.DocsOptions, o.Selection = docs, sel
			return benchmarks.Self(ctx, o)
		})
	})
	fs := cmd.Flags()
	fs.StringVar(&o.Questions, "queries", "", "file of your own questions with the places of their answers")
	intVar(fs, &o.Sample, "sample", 50, 1, noBound, "number of headings, and of sentences, that queries are made from")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of their choice")
	f.add(a, cmd)
	return cmd
}
