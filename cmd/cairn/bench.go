package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
	"cairn/indexer"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure quality and speed",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchDocsCommand(), a.benchLoadCommand(), a.benchToolsCommand(), a.benchEmbedCommand(), a.benchDAGCommand(), a.benchStageCommand())
	return cmd
}

func (a *app) benchDocsCommand() *cobra.Command {
	var o benchmarks.DocsOptions
	var mode string
	cmd := &cobra.Command{
		Use:   "docs --data DIR --split NAME",
		Short: "Measure retrieval on a folder in BEIR's layout",
		RunE:  a.command(func(ctx context.Context, _ []string) error { return a.benchDocs(ctx, o, mode) }),
	}
	fs := cmd.Flags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"queries", 1, noBound})
	}
	fs.StringVar(&o.Data, "data", "", "folder with corpus.jsonl, queries.jsonl and qrels/")
	fs.StringVar(&o.Split, "split", "test", "name of the judgements below qrels/")
	fs.StringVar(&mode, "mode", "all", "hybrid, keyword, semantic or all")
	fs.StringVar(&o.Cache, "cache", "", "folder that keeps embeddings from run to run")
	fs.StringVar(&o.Learn, "learn", "", "learn the queries of this split as traces, and measure what one document in use adds for the others")
	fs.IntVar(&o.MaxQueries, "queries", 0, "measure only so many queries, spread evenly")
	_ = cmd.MarkFlagRequired("data")
	a.model.add(cmd)
	return cmd
}

// measure runs fn with the model and a sign of progress, which is gone when it returns.
func (a *app) measure(fn func(models.Embedder, *progress) error) error {
	model, err := a.model.open()
	if err != nil {
		return err
	}
	defer model.Close()
	bar := a.newProgress()
	defer bar.end()
	return fn(model, bar)
}

func (a *app) benchDocs(ctx context.Context, o benchmarks.DocsOptions, mode string) error {
	if mode != "all" {
		m, err := retriever.ParseMode(mode)
		if err != nil {
			return err
		}
		o.Modes = []retriever.Mode{m}
	}
	var report *benchmarks.DocsReport
	err := a.measure(func(model models.Embedder, bar *progress) (err error) {
		o.Embedder, o.Budget = model, &bpe.Counter{}
		o.Progress = func(p indexer.Progress) { bar.show(benchProgress(p)) }
		report, err = benchmarks.Docs(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s: %d documents, %d queries, indexed in %.1f s\n", report.Dataset, report.Split, report.Documents, report.Queries, report.Index.Seconds)
	fmt.Fprintf(&b, "%-9s %8s %8s %8s %8s %10s %10s\n", "mode", "ndcg@10", "mrr", "hit@5", "rec@100", "p50 ms", "p95 ms")
	for _, m := range []retriever.Mode{retriever.Keyword, retriever.Semantic, retriever.Hybrid} {
		if r, ok := report.Modes[m]; ok {
			fmt.Fprintf(&b, "%-9s %8.4f %8.4f %8.4f %8.4f %10.2f %10.2f\n", m, r.NDCG10, r.MRR, r.Hit5, r.Recall100, r.Latency.P50, r.Latency.P95)
		}
	}
	if c := report.Context; c != nil {
		fmt.Fprintf(&b, "one document in use: ndcg@10 of the others %.4f, without %.4f (%d queries, %d pairs, %d better, %d worse)\n", c.With, c.Without, c.Queries, c.Pairs, c.Better, c.Worse)
	}
	_, err = fmt.Fprint(a.stdout, b.String())
	return err
}
