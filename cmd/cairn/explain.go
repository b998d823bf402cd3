package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/store"
	"cairn/internal/workspace"
	"cairn/retriever"
)

func (a *app) explainCommand() *cobra.Command {
	var f searchFlags
	var candidates int
	cmd := &cobra.Command{
		Use:   "explain [flags] QUERY...",
		Short: "Show the whole way of one search, and the time of each step",
		Long: `Show the whole way of one search: the words looked for, how the query became a
vector, what each leg found with its raw score and its share, the blend, what the
graph of common use moved, what was left out and why, how a token budget was spent,
and the time of each step. The search is that of cairn search; where a server has
the folder open, the server does it, with what it has in memory.`,
		Example: `  cairn explain "how do I rotate a token"
  cairn explain --mode keyword --candidates 3 'retry_after_seconds'
  cairn explain --json --max-tokens 2000 backup`,
	}
	fs := f.add(cmd, bounds{"candidates", 1, retriever.TraceLimit})
	cmd.RunE = a.command(func(ctx context.Context, args []string) error {
		return a.explain(ctx, strings.Join(args, " "), f, candidates)
	})
	fs.IntVar(&candidates, "candidates", 10, "how many of each list to show, 1 to 100")
	a.model.add(cmd)
	return cmd
}

func (a *app) explain(ctx context.Context, text string, f searchFlags, candidates int) error {
	w, err := a.open(ctx, "explain", workspace.Reading, func(o *workspace.Options) { o.Warm = f.mode != string(retriever.Keyword) })
	if err != nil {
		return err
	}
	defer w.Close()
	q, err := f.query(text, w.Config())
	if err != nil {
		return err
	}
	st, err := w.Status(ctx)
	if err != nil {
		return err
	}
	if st.State == "missing" || st.State == "partial" && st.BuiltAt == "" {
		if err := a.indexFirst(ctx, w, q.Mode, f.wait); err != nil {
			return err
		}
	}
	way, err := w.Explain(ctx, workspace.ExplainRequest{Query: q, Candidates: candidates})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(way)
	}
	var b strings.Builder
	s := styleOf(a.stdout)
	s.way(&b, way)
	_, err = io.WriteString(a.stdout, b.String())
	return err
}

// way shows one, a part under each heading.
func (s style) way(b *strings.Builder, w *retriever.Trace) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "  %s\n", cut(fmt.Sprintf(format, args...), s.width-2))
	}
	head := func(name, format string, args ...any) {
		fmt.Fprintf(b, "\n%s", s.paint(bold, name))
		if format != "" {
			fmt.Fprintf(b, "  %s", s.paint(dim, cut(fmt.Sprintf(format, args...), s.width-len(name)-2)))
		}
		b.WriteByte('\n')
	}
	mode := string(w.Mode)
	if w.Answer.Mode != w.Mode {
		mode += ", done as " + string(w.Answer.Mode)
	}
	fmt.Fprintf(b, "%s  %s\n", s.paint(bold, cut(w.Query, s.width)), s.paint(dim, fmt.Sprintf("%s, %.2f ms", mode, w.Took)))

	head("Words", "as the keyword index holds them")
	for _, t := range w.Analysis.Terms {
		if w.Analysis.Chunks > 0 {
			line("%-24s in %d of %d chunks", t.Term, t.Chunks, w.Analysis.Chunks)
		} else {
			line("%s", t.Term)
		}
	}
	if w.Analysis.Phrases {
		line("the phrases in quotes are required")
	}
	if w.Analysis.Excludes {
		line("what follows a dash is excluded, unless the index knows it as a flag")
	}
	if w.Analysis.Near {
		line("nothing matched as typed, so near spellings count")
	}

	if e := w.Embedding; e != nil {
		head("Embedding", "%s", strings.TrimSuffix(e.Model+", kernel "+e.Kernel, ", kernel "))
		line("%q in %d word pieces becomes %d numbers", e.Prefix+e.Text, len(e.Tokens), e.Dimension)
		switch {
		case e.Problem != "":
			line("there is no vector: %s", e.Problem)
		case e.Cached:
			line("the vector was still in memory")
		default:
			line("made in %.2f ms", e.Took)
		}
	}
	for _, l := range []struct {
		name, score string
		leg         *retriever.Leg
	}{{"Keyword leg", "bm25", w.Keyword}, {"Vector leg", "cosine", w.Vector}} {
		if l.leg == nil {
			continue
		}
		head(l.name, "%d of at most %d chunks in %.2f ms", l.leg.Found, l.leg.Asked, l.leg.Took)
		if len(l.leg.Best) > 0 {
			line("rank %8s   share  chunk", l.score)
		}
		for _, h := range l.leg.Best {
			note := ""
			if h.Cut != "" {
				note = map[string]string{"similarity": "  (not near enough)", "operators": "  (not allowed by the query)"}[h.Cut]
			}
			line("%4d %8.3f  %.4f  %s%s", h.Rank, h.Score, h.Share, chunkPlace(h.Chunk), note)
		}
		if n := l.leg.Found - len(l.leg.Best); n > 0 {
			line("and %d more", n)
		}
	}

	bl := w.Blend
	head("Blend", "%s: %.2f x vector + %.2f x keyword", bl.Fusion, bl.VectorWeight, bl.KeywordWeight)
	line("%d chunks of %d documents are candidates; BM25 counts over the best, %.3f", bl.Candidates, bl.Documents, bl.BestBM25)
	if bl.LookedUp > 0 {
		line("%d keyword hits beyond the vector leg had their cosines looked up", bl.LookedUp)
	}
	if bl.Imputed > 0 {
		line("%d chunks have no vector yet; their part is estimated from the keyword leg", bl.Imputed)
	}
	for _, p := range bl.Best {
		line("%4d  %.4f  %s", p.Rank, p.Score, p.Path)
	}

	g := w.Graph
	head("Graph", "common use, at most %.2f up or down; Adamic-Adar and PageRank rank tools (cairn tools search --explain)", g.Limit)
	switch {
	case len(g.Context) == 0:
		line("nothing is said to be in use (--context), so nothing moves")
	case len(g.Changes) == 0:
		line("none of %d documents was used with %s", g.Considered, strings.Join(g.Context, ", "))
	}
	for _, m := range g.Changes {
		line("%+.4f  rank %d to %d  %s", m.Bonus, m.Before, m.After, m.Path)
	}

	head("Left out", "")
	none := true
	out := func(n int, format string) {
		if n > 0 {
			line(format, n)
			none = false
		}
	}
	out(w.Dropped.Similarity, "%d chunks that match no word and are not near enough"+fmt.Sprintf(" (cosine %.2f)", bl.MinSimilarity))
	out(w.Dropped.Operators, "%d chunks that the query's quotes or dashes forbid")
	out(len(w.Dropped.Removed), "%d documents that left or changed since they were indexed")
	out(len(w.Dropped.Duplicates), "%d places that say nearly the same as a better one")
	out(w.Dropped.Beyond, "%d documents after the last that is asked for (--limit)")
	out(w.Dropped.Rounds-1, "(the legs were asked %d more times, each time for more)")
	if none {
		line("nothing")
	}

	if p := w.Budget; p != nil {
		head("Budget", "%d tokens", p.MaxTokens)
		for _, part := range p.Parts {
			what := "best chunk"
			if part.Whole {
				what = "section"
			}
			line("%6d  %-10s  %s", part.Tokens, what, part.Place)
		}
		for _, o := range p.Omitted {
			line("%6d  %-10s  %s", o.Tokens, "no room", o.Path)
		}
	}

	head("Results", "%d of %d documents", len(w.Answer.Results), w.Answer.TotalCount)
	for i := range w.Answer.Results {
		r := &w.Answer.Results[i]
		place := r.Path
		if r.Anchor != "" {
			place += "#" + r.Anchor
		}
		line("%2d. %s", i+1, place)
		if e := r.Explain; e != nil {
			line("    %.4f = %.2f x %.4f vector + %.2f x %.4f keyword + %.4f graph", e.Score, e.VectorWeight, e.Vector, e.KeywordWeight, e.Keyword, e.Graph)
		}
	}
	for _, note := range notes(w.Answer) {
		line("%s", note)
	}

	head("Time", "ms from the start")
	const bars = 30
	for _, step := range slices.SortedFunc(slices.Values(w.Stages), func(x, y retriever.Step) int {
		if x.Start < y.Start {
			return -1
		}
		return 1
	}) {
		from := 0
		n := 1
		if w.Took > 0 {
			from = min(int(step.Start/w.Took*bars), bars-1)
			n = max(1, min(int(step.Took/w.Took*bars+.5), bars-from))
		}
		line("%-8s %8.3f  %8.3f  %s%s", step.Stage, step.Start, step.Took, strings.Repeat(" ", from), strings.Repeat("█", n))
	}
}

// chunkPlace is a chunk as path#anchor, and its number from the second on.
func chunkPlace(id string) string {
	path, anchor, n, ok := store.SplitChunkID(id)
	if !ok {
		return id // unreachable: no index of ours holds such an id
	}
	if anchor != "" {
		path += "#" + anchor
	}
	if n > 0 {
		path += fmt.Sprintf(" (chunk %d)", n+1)
	}
	return path
}
