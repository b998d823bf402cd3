package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
)

func (a *app) benchDAGCommand() *cobra.Command {
	var o benchmarks.DAGOptions
	cmd := &cobra.Command{
		Use:   "dag",
		Short: "Measure the tools for task cards and their graph on synthetic cards",
		Long: `Measure the tools for task cards and their graph on synthetic cards, in a
folder for temporary files that is removed afterwards. Each call is timed from
the request to the complete answer; the files are looked at for each.`,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.benchDAG(ctx, o) }),
	}
	fs := cmd.Flags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"cards", 20, 1_000_000}, bounds{"chain", 2, 1_000_000}, bounds{"large", -1, 1_000_000}, bounds{"calls", 1, noBound})
	}
	fs.IntVar(&o.Cards, "cards", 10_000, "cards of the board")
	fs.IntVar(&o.Chain, "chain", 5000, "cards that depend on each other in a row")
	fs.IntVar(&o.Large, "large", 100_000, "cards of the large board; -1 for none")
	fs.IntVar(&o.Calls, "calls", 100, "calls of each operation, a tenth of it on the large board")
	fs.StringVar(&o.Dir, "dir", "", "folder to make the cards in (default: that for temporary files)")
	return cmd
}

func (a *app) benchDAG(ctx context.Context, o benchmarks.DAGOptions) error {
	show, clear := a.statusLine()
	o.Progress = show
	report, err := benchmarks.DAG(ctx, &o)
	clear()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%8s  %-42s %8s %8s %8s\n", "cards", "operation", "p50 ms", "p95 ms", "wanted")
	for _, op := range report.Operations {
		wanted := ""
		if op.Wanted > 0 {
			wanted = fmt.Sprintf("%.0f", op.Wanted)
		}
		fmt.Fprintf(&b, "%8d  %-42s %8.2f %8.2f %8s\n", op.Cards, cut(op.Name, 42), op.P50, op.P95, wanted)
	}
	_, err = fmt.Fprint(a.stdout, b.String())
	return err
}
