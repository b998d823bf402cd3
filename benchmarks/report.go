package benchmarks

import (
	"fmt"
	"strings"
)

// String returns the report as a table.
func (r *DocsReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s: %d documents, %d queries, indexed in %.1f s\n", r.Dataset, r.Split, r.Documents, r.Queries, r.Index.Seconds)
	var systems []RunSummary
	for i, run := range r.Runs {
		if !run.Ablation {
			systems = append(systems, r.Systems[i])
		}
	}
	writeSystems(&b, systems)
	if len(r.Budgets) > 0 {
		fmt.Fprintf(&b, "\n\n%-28s %8s %8s %14s %9s %8s %8s %8s", "reading", "budget", "recall", "ceiling", "to first", "texts", "text", "answer")
	}
	for _, g := range r.Budgets {
		fmt.Fprintf(&b, "\n%-28s %8d %8.4f %8.4f (@%2d) %9.0f %8.1f %8.0f %8.0f", g.System, g.Tokens, g.Recall, g.Ceiling, g.Hits, g.TokensToFirst, g.Results, g.Text, g.Answer)
	}
	if len(r.Ablations) > 0 {
		fmt.Fprintf(&b, "\n\n%-24s %8s %8s %19s %7s", "changed", "ndcg@10", "change", "95 %", "p")
	}
	for _, a := range r.Ablations {
		fmt.Fprintf(&b, "\n%-24s %8.4f %+8.4f %+8.4f to %+8.4f %7.4f", a.Variant, a.NDCG10, a.Change, a.CI[0], a.CI[1], a.P)
	}
	if c := r.Context; c != nil {
		fmt.Fprintf(&b, "\none document in use: ndcg@10 of the others %.4f, without %.4f (%d queries, %d pairs, %d better, %d worse)", c.With, c.Without, c.Queries, c.Pairs, c.Better, c.Worse)
	}
	writeGroups(&b, r.Groups, r.Worst)
	b.WriteString(r.Gate.String())
	if r.Verdict != "" {
		b.WriteString("\n\n" + r.Verdict)
	}
	return b.String()
}

// String returns the report as a table.
func (r *DAGReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s  %-42s %8s %8s %8s", "cards", "operation", "p50 ms", "p95 ms", "wanted")
	for _, op := range r.Operations {
		wanted := ""
		if op.Wanted > 0 {
			wanted = fmt.Sprintf("%.0f", op.Wanted)
		}
		fmt.Fprintf(&b, "\n%8d  %-42.42s %8.2f %8.2f %8s", op.Cards, op.Name, op.P50, op.P95, wanted)
	}
	return b.String()
}

// String returns the result as a sentence.
func (r EmbedResult) String() string {
	return fmt.Sprintf("%d texts of %d tokens: %.1f texts/s, %.0f tokens/s; a query of %d tokens: p50 %.2f ms; %d threads, kernel %s",
		r.Texts, r.Tokens, r.TextsPerSecond, r.TokensPerSecond, r.QueryTokens, r.QueryP50, r.Threads, r.Kernel)
}

// String returns the report as a sentence.
func (r *LoadReport) String() string {
	rate := "as fast as answered"
	if r.Rate > 0 {
		rate = fmt.Sprintf("%.0f a second begun", r.Rate)
	}
	return fmt.Sprintf("%d searches of %d different queries, %d clients, %s: %.0f a second; p50 %.1f, p95 %.1f, p99 %.1f, longest %.1f ms; %d errors, %d empty, %d degraded",
		r.Requests, r.Distinct, r.Clients, rate, r.PerSecond, r.P50, r.P95, r.P99, r.Longest, r.Errors, r.Empty, r.Degraded)
}

// String returns the report as a table.
func (r *StageReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks of %d stages by %d workers in %.1f s: %.0f tasks, %.0f stages a second\n", r.Tasks, r.Stages/r.Tasks, r.Workers, r.Seconds, r.TasksPerSecond, r.StagesPerSecond)
	fmt.Fprintf(&b, "%-24s %8s %8s %8s", "", "p50 ms", "p95 ms", "p99 ms")
	for _, line := range []struct {
		name string
		Latency
	}{{"create, without load", r.IdleCreate}, {"status, without load", r.IdleStatus}, {"create, under load", r.Create}, {"status, under load", r.Status}} {
		fmt.Fprintf(&b, "\n%-24s %8.2f %8.2f %8.2f", line.name, line.P50, line.P95, line.P99)
	}
	return b.String()
}

// String returns the report as tables, with the loss among distractors.
func (r *ToolsReport) String() string {
	var b strings.Builder
	r.write(&b)
	if r.Among != nil {
		b.WriteString("\nAmong distractors:\n")
		r.Among.write(&b)
		for _, row := range []string{"default", "default_without_namesakes"} {
			fmt.Fprintf(&b, "loss of the %s: %.4f nDCG@10, %.4f recall@5\n", row, r.Loss[row].NDCG10, r.Loss[row].Recall5)
		}
		fmt.Fprintf(&b, "%d distractors have the name of a tool of the set\n", r.Among.Namesakes)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (r *ToolsReport) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %d tools, %d intents", r.Dataset, r.Tools, r.Intents)
	if r.Folds > 1 {
		fmt.Fprintf(b, " in %d folds", r.Folds)
	}
	fmt.Fprintf(b, "\n%-14s %8s %8s %8s %8s %8s %8s\n", "", "ndcg@10", "rec@5", "comp@5", "hit@1", "mrr", "map@10")
	for _, row := range toolRows {
		if m, ok := r.Retrieval[row]; ok {
			fmt.Fprintf(b, "%-14s %8.4f %8.4f %8.4f %8.4f %8.4f %8.4f\n", row, m.NDCG10, m.Recall5, m.Comp5, m.Hit1, m.MRR, m.MAP10)
		}
	}
	r.Plan.write(b, "plans", r.Calibration)
	if r.Cold != nil {
		r.Cold.write(b, "plans with nothing learnt", r.ColdCalibration)
	}
	fmt.Fprintf(b, "latency in ms: search p50 %.2f p95 %.2f, suggestion p50 %.2f p95 %.2f\n",
		r.Latency.Search.P50, r.Latency.Search.P95, r.Latency.Suggest.P50, r.Latency.Suggest.P95)
}

func (p *PlanMetrics) write(b *strings.Builder, name string, c *Calibration) {
	fmt.Fprintf(b, "%s: node F1 %.4f, link F1 %.4f (%.4f over all tasks, %.2f links invented, %.2f claimed), exact %.4f, whole %.4f, not in the catalogue %.4f, links with data %.4f, %.2f tools, calibration error %.4f (%.4f by chance)\n",
		name, p.NodeF1, p.LinkF1, p.LinkF1All, p.Invented, p.Claimed, p.Exact, p.Whole, p.Hallucinated, p.SupportBindings, p.Size, c.ECE, c.Chance)
}
