package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
	"cairn/internal/workspace"
)

func (a *app) benchLoadCommand() *cobra.Command {
	var o benchmarks.LoadOptions
	var texts string
	var distinct int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Measure how many searches a running server answers, and how fast",
		Long: `Measure how many searches a running server answers, and how fast.

With --rate so many searches a second are begun whether or not earlier ones have
been answered, and times run from the moment each was due. Without it every
client asks again as soon as it has its answer, which shows what the server can do.
Queries are made of the folder's text unless a file has them.`,
		Example: `  cairn serve --no-index &
  cairn bench load --clients 8 --rate 300
  cairn bench load --url http://127.0.0.1:7420/w/notes --queries queries.jsonl --json`,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.benchLoad(ctx, o, texts, distinct, seed) }),
	}
	fs := cmd.Flags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		if o.Rate < 0 {
			return badUsage("--rate is %g, want at least 0", o.Rate)
		}
		return inRange(cmd, bounds{"clients", 1, 1024}, bounds{"requests", 1, noBound}, bounds{"distinct", 1, noBound}, bounds{"limit", 1, 50})
	}
	fs.StringVar(&o.URL, "url", "http://127.0.0.1:7420", "the server's address, with /w/NAME for another workspace than its first")
	fs.StringVar(&o.Token, "token", "", "token to send")
	fs.StringVar(&texts, "queries", "", "file with one JSON string a line (default: made of the folder's text)")
	fs.IntVar(&distinct, "distinct", 1000, "how many different queries are made of the folder's text")
	fs.Uint64Var(&seed, "seed", 1, "seed of their choice")
	fs.IntVar(&o.Clients, "clients", 8, "how many ask at the same time")
	fs.IntVar(&o.Requests, "requests", 0, "how many searches (default: one for each query)")
	fs.Float64Var(&o.Rate, "rate", 0, "searches begun a second (default: as many as are answered)")
	fs.StringVar(&o.Mode, "mode", "", "hybrid, keyword or semantic (default: the server's)")
	fs.IntVar(&o.Limit, "limit", 0, "results of each (default: the server's, 5)")
	return cmd
}

func (a *app) benchLoad(ctx context.Context, o benchmarks.LoadOptions, texts string, distinct int, seed uint64) (err error) {
	o.URL = strings.TrimRight(o.URL, "/")
	if texts != "" {
		o.Queries, err = benchmarks.ReadTexts(texts)
	} else {
		var sel workspace.Selection
		if sel, err = workspace.Select(workspace.SelectOptions{Flag: a.dir}); err == nil {
			o.Queries, err = benchmarks.SampleQueries(sel.Root, distinct, seed)
		}
	}
	if err != nil {
		return err
	}
	r, err := benchmarks.Load(ctx, o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	rate := "as fast as answered"
	if r.Rate > 0 {
		rate = fmt.Sprintf("%.0f a second begun", r.Rate)
	}
	_, err = fmt.Fprintf(a.stdout, "%d searches of %d different queries, %d clients, %s: %.0f a second; p50 %.1f, p95 %.1f, p99 %.1f, longest %.1f ms; %d errors, %d empty, %d degraded\n",
		r.Requests, r.Distinct, r.Clients, rate, r.PerSecond, r.P50, r.P95, r.P99, r.Longest, r.Errors, r.Empty, r.Degraded)
	if err == nil && r.Errors > 0 {
		return fmt.Errorf("%d of %d searches were not answered, such as: %s", r.Errors, r.Requests, r.FirstError)
	}
	return err
}
