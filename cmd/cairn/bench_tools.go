package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
	"cairn/internal/workspace"
	"cairn/models"
)

func (a *app) benchToolsCommand() *cobra.Command {
	var o benchmarks.ToolsOptions
	var distractors string
	cmd := &cobra.Command{
		Use:   "tools --data DIR [--learn SPLIT] [--test SPLIT] [--folds N]",
		Short: "Measure tool search and suggestion on intents whose tools are known",
		Long: `Measure tool search and suggestion on intents whose tools are known.

DIR holds tools.jsonl, a tool a line as ` + "`cairn tools import`" + ` reads it, and tasks.jsonl:

  {"id":"1","split":"test","intent":"copy a file","calls":[{"tool":"read"},{"tool":"write"}],"edges":[[0,1]]}

Split --learn is learnt before split --test is measured. With --folds N the
measured tasks are cut into N parts, and each is measured after the others were
learnt. With --distractors all is measured once more with the tools of the
*.jsonl files of that folder beside.`,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.benchTools(ctx, o, distractors) }),
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"folds", 2, noBound}, bounds{"tasks", 1, noBound})
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Data, "data", "", "folder with tools.jsonl and tasks.jsonl")
	fs.StringVar(&o.LearnSplit, "learn", "", "split whose tasks are learnt")
	fs.StringVar(&o.TestSplit, "test", "", "split whose tasks are measured; all when not given")
	fs.IntVar(&o.Folds, "folds", 0, "cross-validate with so many parts")
	fs.IntVar(&o.MaxTasks, "tasks", 0, "measure only so many tasks of each part, spread evenly")
	fs.StringVar(&distractors, "distractors", "", "folder of further tools to search among")
	fs.StringVar(&o.Cache, "cache", "", "folder that keeps embeddings from run to run")
	_ = cmd.MarkFlagRequired("data")
	a.model.add(cmd)
	return cmd
}

func (a *app) benchTools(ctx context.Context, o benchmarks.ToolsOptions, distractors string) error {
	if distractors != "" {
		files, err := jsonlFiles(distractors)
		if err != nil {
			return err
		}
		o.Distractors = files
	}
	var report *benchmarks.ToolsReport
	err := a.measure(func(model models.Embedder, bar *progress) (err error) {
		o.Embedder = model
		o.Progress = func(stage string, done, total int) {
			bar.show(workspace.Progress{Phase: stage, Done: done, Total: total})
		}
		report, err = benchmarks.Tools(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	var b strings.Builder
	writeToolsReport(&b, report)
	if report.Among != nil {
		b.WriteString("\nAmong distractors:\n")
		writeToolsReport(&b, report.Among)
		for _, row := range []string{"default", "default_without_namesakes"} {
			fmt.Fprintf(&b, "loss of the %s: %.4f nDCG@10, %.4f recall@5\n", row, report.Loss[row].NDCG10, report.Loss[row].Recall5)
		}
		fmt.Fprintf(&b, "%d distractors have the name of a tool of the set\n", report.Among.Namesakes)
	}
	_, err = fmt.Fprint(a.stdout, b.String())
	return err
}

// jsonlFiles are the *.jsonl files of a folder, sorted by name.
func jsonlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".jsonl" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no *.jsonl file of tools", dir)
	}
	return files, nil
}

func writeToolsReport(b *strings.Builder, r *benchmarks.ToolsReport) {
	fmt.Fprintf(b, "%s: %d tools, %d intents", plain(r.Dataset), r.Tools, r.Intents)
	if r.Folds > 1 {
		fmt.Fprintf(b, " in %d folds", r.Folds)
	}
	fmt.Fprintf(b, "\n%-14s %8s %8s %8s %8s %8s %8s\n", "", "ndcg@10", "rec@5", "comp@5", "hit@1", "mrr", "map@10")
	for _, row := range benchmarks.ToolRows {
		if m, ok := r.Retrieval[row]; ok {
			fmt.Fprintf(b, "%-14s %8.4f %8.4f %8.4f %8.4f %8.4f %8.4f\n", row, m.NDCG10, m.Recall5, m.Comp5, m.Hit1, m.MRR, m.MAP10)
		}
	}
	p := r.Plan
	fmt.Fprintf(b, "plans: node F1 %.4f, link F1 %.4f, exact %.4f, not in the catalogue %.4f, links with data %.4f, %.2f tools\n",
		p.NodeF1, p.LinkF1, p.Exact, p.Hallucinated, p.SupportBindings, p.Size)
	fmt.Fprintf(b, "latency in ms: search p50 %.2f p95 %.2f, suggestion p50 %.2f p95 %.2f\n",
		r.Latency.Search.P50, r.Latency.Search.P95, r.Latency.Suggest.P50, r.Latency.Suggest.P95)
}
