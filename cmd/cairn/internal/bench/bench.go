// Package bench holds the commands that measure quality and speed.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cairn/benchmarks"
	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/face/host"
	"cairn/internal/face/term"
	"cairn/internal/stage"
	"cairn/models"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.proveCommand(), a.benchCommand(), a.embedCommand()}
}

func (a *app) benchCommand() *cli.Command {
	return cli.Group("bench", "Measure quality and speed",
		a.benchDocsCommand(), a.benchSelfCommand(), a.benchAskCommand(), a.benchCompareCommand(), a.benchReportCommand(), a.benchLoadCommand(), a.benchToolsCommand(), a.benchFitCommand(), a.benchEmbedCommand(), a.benchDAGCommand(), a.benchStageCommand())
}

// benchCommand returns a subcommand of bench. It prints the report of measure also when
// measure fails. The indexes that measure makes are removed afterwards.
func benchCommand[R interface {
	comparable
	fmt.Stringer
}](a *app, use, short string, measure func(context.Context, []string) (R, error)) *cli.Command {
	return cli.NewCommand(use, short, a.Command(func(ctx context.Context, args []string) error {
		private, err := os.MkdirTemp("", "cairn-bench")
		if err != nil {
			return err
		}
		defer os.RemoveAll(private)
		if err := os.Setenv(home.Variable, private); err != nil {
			return err
		}
		report, err := measure(ctx, args)
		a.Out.Notes.Replace("")
		var none R
		if report == none {
			return err
		}
		return errors.Join(a.Out.Line(report, "%s", report), err)
	}))
}

// withModel calls fn with the model that open opens and a display of progress.
func withModel[T any](a *app, open func() (models.Embedder, error), fn func(models.Embedder, *term.Progress) (T, error)) (result T, err error) {
	model, err := open()
	if err != nil {
		return result, err
	}
	defer model.Close()
	return cli.WithProgress(a.App, func(bar *term.Progress) (T, error) { return fn(model, bar) })
}

func (a *app) benchLoadCommand() *cli.Command {
	var o benchmarks.LoadOptions
	var texts string
	var distinct int
	var seed uint64
	cmd := benchCommand(a, "load", "Measure how many searches a running server answers, and how fast", func(ctx context.Context, _ []string) (*benchmarks.LoadReport, error) {
		if o.Rate < 0 {
			return nil, cli.BadUsage("--rate is %g, want at least 0", o.Rate)
		}
		o.URL = strings.TrimRight(o.URL, "/")
		var err error
		if texts != "" {
			o.Queries, err = benchmarks.ReadTexts(texts)
		} else if sel, selErr := a.Selection(); selErr != nil {
			err = selErr
		} else {
			o.Queries, err = benchmarks.SampleQueries(sel.Root, distinct, seed)
		}
		if err != nil {
			return nil, err
		}
		r, err := benchmarks.Load(ctx, o)
		if err == nil && r.Errors > 0 {
			err = fmt.Errorf("%d of %d searches were not answered, such as: %s", r.Errors, r.Requests, r.FirstError)
		}
		return r, err
	})
	fs := cmd.Flags()
	fs.StringVar(&o.URL, "url", "http://127.0.0.1:7420", "address of the server; add /w/NAME for a workspace other than its first")
	fs.StringVar(&o.Token, "token", "", "token to send")
	fs.StringVar(&texts, "queries", "", "file with one JSON string per line (default: made from the text of the folder)")
	cli.IntVar(fs, &distinct, "distinct", 1000, 1, cli.NoBound, "number of different queries made from the text of the folder")
	fs.Uint64Var(&seed, "seed", 1, "seed of the random choice of these queries")
	cli.IntVar(fs, &o.Clients, "clients", 8, 1, 1024, "number of clients at the same time")
	cli.IntVar(fs, &o.Requests, "requests", 0, 1, cli.NoBound, "number of searches (default: one for each query)")
	fs.Float64Var(&o.Rate, "rate", 0, "searches to begin per second (default: as many as the server answers)")
	fs.StringVar(&o.Mode, "mode", "", "hybrid, keyword or semantic (default: the server's)")
	cli.IntVar(fs, &o.Limit, "limit", 0, 1, 50, "results of each search (default: the server's, 5)")
	return cmd
}

func (a *app) benchToolsCommand() *cli.Command {
	var o benchmarks.ToolsOptions
	var distractors string
	cmd := benchCommand(a, "tools --data DIR [--learn SPLIT] [--test SPLIT] [--folds N]", "Measure tool search and suggestion on intents whose tools are known", func(ctx context.Context, _ []string) (*benchmarks.ToolsReport, error) {
		if distractors != "" {
			names, err := fs.Glob(os.DirFS(distractors), "*.jsonl")
			if err != nil || len(names) == 0 {
				return nil, cmp.Or(err, fmt.Errorf("%s holds no *.jsonl file of tools", distractors))
			}
			for _, name := range names {
				o.Distractors = append(o.Distractors, filepath.Join(distractors, name))
			}
		}
		return withModel(a, a.Model.OpenTools, func(model models.Embedder, bar *term.Progress) (*benchmarks.ToolsReport, error) {
			o.Embedder, o.Reader, o.Progress = model, a.Model.OpenReader, bar.Show
			return benchmarks.Tools(ctx, o)
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&o.Data, "data", "", "folder with tools.jsonl and tasks.jsonl")
	flags.StringVar(&o.LearnSplit, "learn", "", "split whose tasks are learnt")
	flags.StringVar(&o.TestSplit, "test", "", "split whose tasks are measured (default: all)")
	cli.IntVar(flags, &o.Folds, "folds", 0, 2, cli.NoBound, "number of parts for cross-validation")
	cli.IntVar(flags, &o.MaxTasks, "tasks", 0, 1, cli.NoBound, "measure only this many tasks of each part, evenly spread")
	flags.StringVar(&distractors, "distractors", "", "folder of further tools to search among")
	flags.StringVar(&o.Cache, "cache", "", "folder that caches embeddings between runs")
	_ = cmd.MarkFlagRequired("data")
	a.AddModel(cmd)
	return cmd
}

func (a *app) benchFitCommand() *cli.Command {
	var o benchmarks.FitOptions
	var file string
	cmd := benchCommand(a, "fit --data DIR --data DIR [--weights FILE]", "Fit the choice of tools and the confidence of plans to intents whose tools are known", func(ctx context.Context, _ []string) (*benchmarks.FitReport, error) {
		report, err := withModel(a, a.Model.OpenTools, func(model models.Embedder, bar *term.Progress) (*benchmarks.FitReport, error) {
			o.Embedder, o.Reader, o.Progress = model, a.Model.OpenReader, bar.Show
			return benchmarks.Fit(ctx, o)
		})
		if err == nil && file != "" {
			err = report.Write(file)
		}
		return report, err
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Sets, "data", nil, "folder with tasks.jsonl and, unless each task has tools of its own, tools.jsonl")
	flags.StringVar(&file, "weights", "", "file to write the weights to, with their origin")
	flags.StringVar(&o.Cache, "cache", "", "folder that caches embeddings between runs")
	_ = cmd.MarkFlagRequired("data")
	a.AddModel(cmd)
	return cmd
}

func (a *app) benchEmbedCommand() *cli.Command {
	var file string
	var rounds int
	cmd := benchCommand(a, "embed --texts FILE", "Measure how many texts the model embeds per second", func(ctx context.Context, _ []string) (r benchmarks.EmbedResult, err error) {
		texts, err := benchmarks.ReadTexts(file)
		if err != nil {
			return r, err
		}
		return withModel(a, a.Model.Open, func(model models.Embedder, _ *term.Progress) (benchmarks.EmbedResult, error) {
			return benchmarks.Embed(ctx, model, texts, rounds)
		})
	})
	cmd.Flags().StringVar(&file, "texts", "", "file with one JSON string per line")
	cli.IntVar(cmd.Flags(), &rounds, "rounds", 3, 1, cli.NoBound, "number of times to embed all texts; the fastest counts")
	_ = cmd.MarkFlagRequired("texts")
	a.AddModel(cmd)
	return cmd
}

func (a *app) benchDAGCommand() *cli.Command {
	o := benchmarks.DAGOptions{Progress: a.Out.Notes.Replace}
	cmd := benchCommand(a, "dag", "Measure the tools for task cards and their graph on synthetic cards", func(ctx context.Context, _ []string) (*benchmarks.DAGReport, error) {
		return benchmarks.DAG(ctx, o)
	})
	fs := cmd.Flags()
	cli.IntVar(fs, &o.Cards, "cards", 10_000, 20, 1_000_000, "cards of the board")
	cli.IntVar(fs, &o.Chain, "chain", 5000, 2, 1_000_000, "cards in a chain of dependencies")
	cli.IntVar(fs, &o.Large, "large", 100_000, -1, 1_000_000, "cards of the large board; -1 for none")
	cli.IntVar(fs, &o.Calls, "calls", 100, 1, cli.NoBound, "calls per operation; a tenth of them on the large board")
	fs.StringVar(&o.Dir, "dir", "", "folder for the cards (default: the system's temporary folder)")
	return cmd
}

func (a *app) benchStageCommand() *cli.Command {
	o := benchmarks.StageOptions{Progress: a.Out.Notes.Replace}
	var f cli.Servers
	cmd := benchCommand(a, "stage", "Measure the machine of question tasks on its stores", func(ctx context.Context, _ []string) (*benchmarks.StageReport, error) {
		if f != (cli.Servers{}) { // not the servers of the environment
			if _, err := f.Addresses(); err != nil {
				return nil, err
			}
			o.Open = func(ctx context.Context) (stage.Store, stage.Queue, error) {
				return host.StageServers(f).Open(ctx, a.Logger())
			}
		}
		return benchmarks.Stage(ctx, o)
	})
	fs := cmd.Flags()
	cli.IntVar(fs, &o.Tasks, "tasks", 10_000, 1, 10_000_000, "tasks to create")
	cli.IntVar(fs, &o.Workers, "workers", 4, 1, cli.MaxWorkers, "workers, each with its own connections if there is a queue")
	cli.IntVar(fs, &o.Clients, "clients", 1, 1, cli.MaxWorkers, "clients that create tasks at the same time")
	fs.StringVar(&o.Dir, "dir", "", "folder for the tasks (default: the system's temporary folder)")
	f.Add(fs)
	f.AddQueue(fs)
	return cmd
}
