package term

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"cairn/internal/face/view"
	"cairn/internal/store"
	"cairn/retriever"
)

// Trace writes every step of a search in a section.
func (o *Writer) Trace(t *retriever.Trace) {
	p := &tracePrinter{style: o.style}
	mode := string(t.Mode)
	if t.Answer.Mode != t.Mode {
		mode += ", done as " + string(t.Answer.Mode)
	}
	fmt.Fprintf(&p.b, "%s  %s\n", p.paint(bold, Cut(t.Query, p.width)), p.paint(dim, fmt.Sprintf("%s, %.2f ms", mode, t.Took)))
	p.analysis(&t.Analysis)
	if t.Embedding != nil {
		p.embedding(t.Embedding)
	}
	if t.Keyword != nil {
		p.leg("Keyword leg", "bm25", t.Keyword)
	}
	if t.Vector != nil {
		p.leg("Vector leg", "cosine", t.Vector)
	}
	p.blend(&t.Blend)
	p.graph(&t.Graph)
	if r := t.Rerank; r != nil {
		p.head("Re-ranker", "%d of %d passages read within %.0f ms", r.Read, r.Passages, r.Budget)
		p.line("rank  before    logit")
		for _, d := range r.Best {
			p.line("%4d  %6d  %7.3f  %s", d.Rank, d.Before, d.Logit, d.Path)
		}
	}
	p.dropped(t)
	if s := t.Budget; s != nil {
		p.head("Budget", "%d tokens", s.MaxTokens)
		for _, part := range s.Parts {
			what := "part"
			if part.Whole {
				what = "section"
			}
			p.line("%6d  %-10s  %s", part.Tokens, what, part.Place)
		}
		for _, o := range s.Omitted {
			p.line("%6d  %-10s  %s", o.Tokens, "no room", o.Path)
		}
	}
	p.results(t.Answer)
	p.times(t)
	io.WriteString(o, p.b.String())
}

// tracePrinter collects the text of a trace.
type tracePrinter struct {
	style
	b strings.Builder
}

// head begins a section. format is the text after its name, "" for none.
func (p *tracePrinter) head(name, format string, args ...any) {
	fmt.Fprintf(&p.b, "\n%s", p.paint(bold, name))
	if format != "" {
		fmt.Fprintf(&p.b, "  %s", p.paint(dim, Cut(fmt.Sprintf(format, args...), p.width-len(name)-2)))
	}
	p.b.WriteByte('\n')
}

func (p *tracePrinter) line(format string, args ...any) {
	fmt.Fprintf(&p.b, "  %s\n", Cut(fmt.Sprintf(format, args...), p.width-2))
}

// count writes a line with a number, unless that is 0.
func (p *tracePrinter) count(n int, format string) {
	if n > 0 {
		p.line(format, n)
	}
}

func (p *tracePrinter) analysis(a *retriever.Analysis) {
	p.head("Words", "as in the keyword index")
	for _, t := range a.Terms {
		if a.Chunks > 0 {
			p.line("%-24s in %d of %d chunks", t.Term, t.Chunks, a.Chunks)
		} else {
			p.line("%s", t.Term)
		}
	}
	if a.Phrases {
		p.line("the phrases in quotes are required")
	}
	if a.Excludes {
		p.line("words after a dash are excluded, unless the index knows them as a flag")
	}
	if a.Near {
		p.line("nothing matches as typed, so near spellings count")
	}
}

func (p *tracePrinter) embedding(e *retriever.Embedding) {
	p.head("Embedding", "%s", strings.TrimSuffix(e.Model+", kernel "+e.Kernel, ", kernel "))
	p.line("%q in %d word pieces becomes %d numbers", e.Prefix+e.Text, len(e.Tokens), e.Dimension)
	switch {
	case e.Problem != "":
		p.line("there is no vector: %s", e.Problem)
	case e.Cached:
		p.line("the vector was in the cache")
	default:
		p.line("embedded in %.2f ms", e.Took)
	}
}

func (p *tracePrinter) leg(name, score string, l *retriever.Leg) {
	p.head(name, "%d of at most %d chunks in %.2f ms", l.Found, l.Asked, l.Took)
	if len(l.Best) > 0 {
		p.line("rank %8s   share  chunk", score)
	}
	for _, h := range l.Best {
		note := map[string]string{"similarity": "  (not similar enough)", "operators": "  (excluded by the query)"}[h.Cut]
		p.line("%4d %8.3f  %.4f  %s%s", h.Rank, h.Score, h.Normalised, chunkPlace(h.Chunk), note)
	}
	p.count(l.Found-len(l.Best), "and %d more")
}

func (p *tracePrinter) blend(bl *retriever.Blending) {
	p.head("Blend", "%s: %.2f x vector + %.2f x keyword", bl.Fusion, bl.VectorWeight, bl.KeywordWeight)
	p.line("%d chunks of %d documents are candidates; BM25 counts over the best, %.3f", bl.Candidates, bl.Documents, bl.BestBM25)
	p.count(bl.LookedUp, "%d keyword hits beyond the vector leg had their cosines looked up")
	p.count(bl.Imputed, "%d chunks have no vector yet; their part is estimated from the keyword leg")
	for _, d := range bl.Best {
		p.line("%4d  %.4f  %s", d.Rank, d.Score, d.Path)
	}
}

func (p *tracePrinter) graph(g *retriever.Graph) {
	p.head("Graph", "co-usage, at most %.2f up or down; Adamic-Adar and PageRank rank tools (cairn tools search --explain)", g.Limit)
	switch {
	case len(g.Context) == 0:
		p.line("no document or tool is in use (--context), so nothing moves")
	case len(g.Changes) == 0:
		p.line("none of %d documents was used with %s", g.Considered, strings.Join(g.Context, ", "))
	}
	for _, m := range g.Changes {
		p.line("%+.4f  rank %d to %d  %s", m.Bonus, m.Before, m.After, m.Path)
	}
}

func (p *tracePrinter) dropped(t *retriever.Trace) {
	p.head("Left out", "")
	before := p.b.Len()
	d := &t.Dropped
	p.count(d.Similarity, "%d chunks that match no word and are not similar enough"+fmt.Sprintf(" (cosine %.2f)", t.Blend.MinSimilarity))
	p.count(d.Operators, "%d chunks that the query's quotes or dashes forbid")
	p.count(len(d.Removed), "%d documents that were removed or changed since they were indexed")
	p.count(len(d.Duplicates), "%d near copies of better places")
	p.count(d.Beyond, "%d documents beyond --limit")
	p.count(d.Rounds-1, "(the search repeated the legs %d times for more hits)")
	if p.b.Len() == before {
		p.line("nothing")
	}
}

func (p *tracePrinter) results(a *retriever.Answer) {
	p.head("Results", "%d of %d documents", len(a.Results), a.TotalCount)
	for i := range a.Results {
		r := &a.Results[i]
		p.line("%2d. %s", i+1, r.Place())
		if e := r.Explain; e != nil {
			for _, line := range wrap(sum(e), p.width-6) {
				p.line("    %s", line)
			}
		}
	}
	for _, note := range view.Notes(a) {
		p.line("%s", note)
	}
}

// times draws the steps as bars along the time of the search.
func (p *tracePrinter) times(t *retriever.Trace) {
	p.head("Time", "ms from the start")
	const columns = 30
	for _, step := range slices.SortedStableFunc(slices.Values(t.Stages), func(x, y retriever.Step) int { return cmp.Compare(x.Start, y.Start) }) {
		from, n := 0, 1
		if t.Took > 0 {
			from = min(int(step.Start/t.Took*columns), columns-1)
			n = max(1, min(int(step.Took/t.Took*columns+.5), columns-from))
		}
		p.line("%-8s %8.3f  %8.3f  %s%s", step.Stage, step.Start, step.Took, strings.Repeat(" ", from), strings.Repeat("█", n))
	}
}

// chunkPlace returns a chunk as path#anchor, with its number unless it is the first.
func chunkPlace(id string) string {
	path, anchor, n, ok := store.SplitChunkID(id)
	if !ok {
		return id // unreachable: no index holds such an ID
	}
	if anchor != "" {
		path += "#" + anchor
	}
	if n > 0 {
		path += fmt.Sprintf(" (chunk %d)", n+1)
	}
	return path
}
