package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/benchmarks"
	"cairn/models"
)

// runFlags are the flags of the commands that make runs.
type runFlags struct {
	run, gate, html string
	bounds          *benchmarks.Gate
}

func (f *runFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.run, "run", "", "write the run to this file, with FILE.qrels and FILE.jsonl; of several, each to FILE with its name in it")
	f.addBoth(fs)
}

// addBoth adds the flags of the commands that make runs and of those that read them.
func (f *runFlags) addBoth(fs *pflag.FlagSet) {
	fs.StringVar(&f.html, "html", "", "write a page that shows the runs to this file")
	fs.StringVar(&f.gate, "gate", "", "JSON file of bounds, such as {\"floors\":{\"ndcg@10\":0.8}}; the command fails when one is not kept")
}

// open opens the files that the flags name, before the work begins.
func (f *runFlags) open() (err error) {
	if f.gate != "" {
		if f.bounds, err = benchmarks.ReadGate(f.gate); err != nil {
			return &usageError{err}
		}
	}
	return nil
}

// check compares a run with the bounds.
func (f *runFlags) check(r *benchmarks.Run) (benchmarks.GateResult, error) {
	if f.bounds == nil {
		return nil, nil
	}
	result, err := f.bounds.Check(r)
	if err == nil && result.Failed() {
		err = fmt.Errorf("%s does not keep the bounds of %s", r.System, f.gate)
	}
	return result, err
}

// page writes the page of runs, if one is wanted.
func (f *runFlags) page(runs []*benchmarks.Run) error {
	if f.html == "" {
		return nil
	}
	return benchmarks.WritePage(f.html, runs)
}

// finish writes the runs of a report and checks its main one.
func (f *runFlags) finish(report *benchmarks.DocsReport) (err error) {
	for _, r := range report.Runs {
		file := f.run
		if len(report.Runs) > 1 {
			ext := filepath.Ext(file)
			file = strings.TrimSuffix(file, ext) + "." + strings.NewReplacer(" ", "-", "/", "-").Replace(r.System) + ext
		}
		if f.run != "" {
			if err := r.Write(file); err != nil {
				return err
			}
		}
	}
	if err := f.page(report.Runs); err != nil {
		return err
	}
	report.Gate, err = f.check(report.Main())
	return err
}

// machine describes this computer for the fingerprint of a run.
func machine(model models.Embedder) string {
	text := fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if k, ok := model.(interface{ Kernel() string }); ok {
		text += ", " + k.Kernel()
	}
	return text
}

func (a *app) benchCompareCommand() *cobra.Command {
	var o benchmarks.CompareOptions
	var f runFlags
	var qrels string
	cmd := benchCommand(a, "compare A B", "Compare two runs of the same queries", func(_ context.Context, args []string) (*benchmarks.Comparison, error) {
		if err := f.open(); err != nil {
			return nil, err
		}
		var runs [2]*benchmarks.Run
		for i, file := range args {
			var err error
			if runs[i], err = benchmarks.ReadRun(file, qrels); err != nil {
				return nil, err
			}
		}
		c, err := benchmarks.Compare(runs[0], runs[1], o)
		if err != nil {
			return nil, err
		}
		if f.bounds != nil {
			f.bounds.Against(runs[0])
		}
		if err := f.page(runs[:]); err != nil {
			return nil, err
		}
		c.Gate, err = f.check(runs[1])
		return c, err
	})
	fs := cmd.Flags()
	fs.StringVar(&o.Metric, "metric", "ndcg@10", "metric that wins are counted by")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of the randomisation test")
	intVar(fs, &o.Moved, "moved", 10, 1, noBound, "number of queries shown")
	fs.StringVar(&qrels, "qrels", "", "judgements in the format of TREC or BEIR (default: those written with the runs)")
	f.addBoth(fs)
	return cmd
}

func (a *app) benchReportCommand() *cobra.Command {
	var f runFlags
	var qrels string
	cmd := benchCommand(a, "report RUN...", "Show the figures of any number of runs", func(_ context.Context, args []string) (*benchmarks.RunsReport, error) {
		if err := f.open(); err != nil {
			return nil, err
		}
		report := &benchmarks.RunsReport{}
		var runs []*benchmarks.Run
		for _, file := range args {
			r, err := benchmarks.ReadRun(file, qrels)
			if err != nil {
				return nil, err
			}
			runs, report.Runs = append(runs, r), append(report.Runs, r.Summary())
			lines, err := f.check(r)
			report.Gate = append(report.Gate, lines...)
			if err != nil {
				return report, err
			}
		}
		return report, f.page(runs)
	})
	fs := cmd.Flags()
	fs.StringVar(&qrels, "qrels", "", "judgements in the format of TREC or BEIR (default: those written with the runs)")
	f.addBoth(fs)
	return cmd
}
