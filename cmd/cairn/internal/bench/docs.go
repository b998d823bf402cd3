package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"cairn/benchmarks"
	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/config"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// docsFlags are the flags of the commands that measure searches of documents.
type docsFlags struct {
	runFlags
	o        benchmarks.DocsOptions
	mode     retriever.Mode // "" means all
	settings []string
	adapters []string
}

func (f *docsFlags) add(a *app, cmd *cli.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.settings, "set", nil, "`table.key=value` of a setting of the search; may be repeated")
	cli.ChoiceVar(fs, &f.mode, "mode", "hybrid, keyword, semantic or all", "hybrid", "keyword", "semantic", "all")
	fs.StringVar(&f.o.Cache, "cache", "", "folder that caches embeddings between runs")
	fs.IntSliceVar(&f.o.Budgets, "budgets", nil, "also measure how often answers within these token budgets contain text of a relevant document, such as 500,1000,2000,4000")
	cli.IntVar(fs, &f.o.Limit, "limit", 0, 1, retriever.MaxLimit, "results of the searches within --budgets")
	fs.BoolVar(&f.o.Ablate, "ablate", false, "also measure the search with one part changed at a time")
	fs.StringArrayVar(&f.adapters, "adapter", nil, "`name=command` of another system that answers the same queries; may be repeated")
	fs.StringVar(&f.run, "run", "", "write the run to this file, with FILE.qrels and FILE.jsonl; several runs are written to FILE with their names in it")
	f.addBoth(fs)
	a.AddModel(cmd)
	a.AddRerank(cmd)
}

// measure calls docs with the options of the flags. --set changes the settings of base.
func (f *docsFlags) measure(a *app, base config.Config, docs func(benchmarks.DocsOptions) (*benchmarks.DocsReport, error)) (_ *benchmarks.DocsReport, err error) {
	o := f.o
	o.Config = base
	if f.mode != "" {
		o.Modes = []retriever.Mode{f.mode}
	}
	if err := o.Config.Apply(f.settings...); err != nil {
		return nil, cli.BadUsage("--set: %v", err)
	}
	for _, text := range f.adapters {
		adapter, err := benchmarks.ParseAdapter(text)
		if err != nil {
			return nil, cli.BadUsage("--adapter: %v", err)
		}
		o.Adapters = append(o.Adapters, adapter)
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	if o.Reranker, err = a.Model.OpenReranker(); err != nil {
		return nil, err
	}
	return withModel(a, a.Model.Open, func(model models.Embedder, bar *term.Progress) (*benchmarks.DocsReport, error) {
		o.Embedder, o.Budget, o.Progress, o.Program = model, &bpe.Counter{}, bar.Show, "cairn "+a.Version
		o.Machine = fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
		if k, ok := model.(interface{ Kernel() string }); ok {
			o.Machine += ", " + k.Kernel()
		}
		report, err := docs(o)
		if err != nil {
			return report, err
		}
		return report, f.finish(report)
	})
}

func (a *app) benchDocsCommand() *cli.Command {
	var f docsFlags
	cmd := benchCommand(a, "docs --data DIR --split NAME", "Measure retrieval on a data set in the layout of BEIR", func(ctx context.Context, _ []string) (*benchmarks.DocsReport, error) {
		return f.measure(a, config.Default(), func(o benchmarks.DocsOptions) (*benchmarks.DocsReport, error) { return benchmarks.Docs(ctx, o) })
	})
	fs := cmd.Flags()
	fs.StringVar(&f.o.Data, "data", "", "folder with corpus.jsonl, queries.jsonl and qrels/")
	fs.StringVar(&f.o.Split, "split", "test", "name of the judgements in qrels/")
	fs.StringVar(&f.o.Learn, "learn", "", "learn the queries of this split as sessions, and measure how one document in use improves the ranking of the others; if it is the measured split, every second query is learnt")
	cli.IntVar(fs, &f.o.MaxQueries, "queries", 0, 1, cli.NoBound, "measure only this many queries, evenly spread")
	f.add(a, cmd)
	_ = cmd.MarkFlagRequired("data")
	return cmd
}

func (a *app) benchSelfCommand() *cli.Command {
	var f docsFlags
	var o benchmarks.SelfOptions
	cmd := benchCommand(a, "self --queries FILE", "Measure searches of the folder by your own questions", func(ctx context.Context, _ []string) (*benchmarks.DocsReport, error) {
		sel, cfg, err := a.Choose()
		if err != nil {
			return nil, err
		}
		return f.measure(a, cfg, func(docs benchmarks.DocsOptions) (*benchmarks.DocsReport, error) {
			o.DocsOptions, o.Selection = docs, sel
			return benchmarks.Self(ctx, o)
		})
	})
	cmd.Flags().StringVar(&o.Questions, "queries", "", "file of your own questions with the places of their answers")
	_ = cmd.MarkFlagRequired("queries")
	f.add(a, cmd)
	return cmd
}

// runFlags are the flags of the commands that make runs.
type runFlags struct {
	run, gate, html, qrels string
	bounds                 *benchmarks.Gate
}

// addRead adds the flags of the commands that read runs.
func (f *runFlags) addRead(fs *cli.FlagSet) {
	fs.StringVar(&f.qrels, "qrels", "", "judgements in the format of TREC or BEIR (default: those written with the runs)")
	f.addBoth(fs)
}

// addBoth adds the flags of the commands that make runs and of those that read them.
func (f *runFlags) addBoth(fs *cli.FlagSet) {
	fs.StringVar(&f.html, "html", "", "write a page that shows the runs to this file")
	fs.StringVar(&f.gate, "gate", "", "JSON file of bounds, such as {\"floors\":{\"ndcg@10\":0.8}}; the command fails if a run violates one")
}

// open reads the bounds before the work begins.
func (f *runFlags) open() (err error) {
	if f.gate == "" {
		return nil
	}
	if f.bounds, err = benchmarks.ReadGate(f.gate); err != nil {
		return &cli.UsageError{Err: err}
	}
	return nil
}

// read reads the bounds, and the runs that other commands have written.
func (f *runFlags) read(files []string) (runs []*benchmarks.Run, err error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	for _, file := range files {
		r, err := benchmarks.ReadRun(file, f.qrels)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// check compares a run with the bounds.
func (f *runFlags) check(r *benchmarks.Run) (benchmarks.GateResult, error) {
	if f.bounds == nil {
		return nil, nil
	}
	result, err := f.bounds.Check(r)
	if err == nil && result.Failed() {
		err = fmt.Errorf("%s violates the bounds of %s", r.System, f.gate)
	}
	return result, err
}

// page writes the page of runs, if --html names one.
func (f *runFlags) page(runs []*benchmarks.Run) error {
	if f.html == "" {
		return nil
	}
	return benchmarks.WritePage(f.html, runs)
}

// finish writes the runs of a report and checks the main run.
func (f *runFlags) finish(report *benchmarks.DocsReport) (err error) {
	for _, r := range report.Runs {
		if f.run == "" {
			break
		}
		file := f.run
		if len(report.Runs) > 1 {
			ext := filepath.Ext(file)
			file = strings.TrimSuffix(file, ext) + "." + strings.NewReplacer(" ", "-", "/", "-").Replace(r.System) + ext
		}
		if err := r.Write(file); err != nil {
			return err
		}
	}
	if err := f.page(report.Runs); err != nil {
		return err
	}
	report.Gate, err = f.check(report.Main())
	return err
}

func (a *app) benchCompareCommand() *cli.Command {
	var o benchmarks.CompareOptions
	var f runFlags
	cmd := benchCommand(a, "compare A B", "Compare two runs of the same queries", func(_ context.Context, args []string) (*benchmarks.Comparison, error) {
		runs, err := f.read(args)
		if err != nil {
			return nil, err
		}
		c, err := benchmarks.Compare(runs[0], runs[1], o)
		if err != nil {
			return nil, err
		}
		if f.bounds != nil {
			f.bounds.Against(runs[0])
		}
		if err := f.page(runs); err != nil {
			return nil, err
		}
		c.Gate, err = f.check(runs[1])
		return c, err
	})
	fs := cmd.Flags()
	fs.StringVar(&o.Metric, "metric", "ndcg@10", "metric that decides which run wins a query")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of the randomisation test")
	cli.IntVar(fs, &o.Moved, "moved", 10, 1, cli.NoBound, "number of queries shown")
	f.addRead(fs)
	return cmd
}

func (a *app) benchReportCommand() *cli.Command {
	var f runFlags
	cmd := benchCommand(a, "report RUN...", "Show the figures of any number of runs", func(_ context.Context, args []string) (*benchmarks.RunsReport, error) {
		runs, err := f.read(args)
		if err != nil {
			return nil, err
		}
		report := &benchmarks.RunsReport{}
		for _, r := range runs {
			report.Runs = append(report.Runs, r.Summary())
			lines, err := f.check(r)
			report.Gate = append(report.Gate, lines...)
			if err != nil {
				return report, err
			}
		}
		return report, f.page(runs)
	})
	f.addRead(cmd.Flags())
	return cmd
}
