package retriever

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/markdown"
	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// maxMore is how many further sections of a document a result points at.
const maxMore = 3

// page makes the results from offset on. enough is false when the ranking ended
// before the page was full. Documents are read from the first on, since which
// of them are near-duplicates depends on those before.
func (r *Retriever) page(ctx context.Context, q Query, ranking *Ranking, offset int) (answer *Answer, enough bool, err error) {
	a := &Answer{
		Results: []Result{}, TotalCount: len(ranking.Documents), Mode: ranking.Mode,
		Degraded: append([]string{}, ranking.Degraded...), Fuzzy: ranking.Fuzzy,
	}
	seen := witnessOf(ctx)
	terms := newTerms(q.Text)
	var kept []original
	err = r.sources.Documents.View(func(reader *docs.Reader) error {
		for i := range ranking.Documents {
			if err := ctx.Err(); err != nil {
				return err
			}
			d := &ranking.Documents[i]
			doc, err := reader.Document(d.Path)
			if err != nil {
				return fmt.Errorf("reading a document found: %w", err)
			}
			n, chunk := -1, 0
			var text []byte
			if doc != nil {
				text = reader.Text(d.Path)
				n, chunk = shown(doc, d, text)
			}
			if n < 0 { // it left, or changed, after the index that found it was read
				a.TotalCount--
				seen.gone(d)
				continue
			}
			o := newOriginal(doc, n)
			if k := slices.IndexFunc(kept, o.near); k >= 0 {
				seen.duplicate(place(doc.Path, doc.Sections[n].Anchor))
				if k >= offset && k < offset+len(a.Results) {
					result := &a.Results[k-offset]
					result.Duplicates = append(result.Duplicates, place(doc.Path, doc.Sections[n].Anchor))
				}
				continue
			}
			if len(kept) == offset+q.Limit {
				a.HasMore = true
				return nil
			}
			kept = append(kept, o)
			if len(kept) > offset {
				a.Results = append(a.Results, r.result(doc, n, chunk, d, text, terms, q))
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for i := range a.Results {
		if a.Results[i].Stale && !slices.Contains(a.Degraded, "stale") {
			a.Degraded = append(a.Degraded, "stale")
		}
	}
	return a, a.HasMore, nil
}

// sectionOf returns the index of a ranked section in doc, -1 when the document
// no longer has it.
func sectionOf(doc *store.Document, s *RankedSection) int {
	n := slices.IndexFunc(doc.Sections, func(have store.Section) bool { return have.Anchor == s.Anchor })
	if n >= 0 && s.Chunk >= len(doc.Sections[n].Chunks) {
		return -1
	}
	return n
}

// shown returns the section and the chunk of it that a result shows, -1 when
// the document no longer has the best one. It is the best one, unless there is
// nothing to read there: what stands before the first heading is found by the
// document's title, and is often a comment or an anchor alone. Then it is the next
// best of the document, else the section that follows.
func shown(doc *store.Document, ranked *RankedDocument, text []byte) (n, chunk int) {
	for i := range ranked.Sections {
		m := sectionOf(doc, &ranked.Sections[i])
		if i == 0 {
			n, chunk = m, ranked.Sections[i].Chunk
		}
		if n < 0 || m >= 0 && !blankPreamble(doc, m, text) {
			return m, ranked.Sections[i].Chunk
		}
	}
	if n+1 < len(doc.Sections) && len(doc.Sections[n+1].Chunks) > 0 {
		return n + 1, 0
	}
	return n, chunk
}

// blankPreamble reports whether section n of doc is what stands before its
// first heading, and shows nothing.
func blankPreamble(doc *store.Document, n int, text []byte) bool {
	s := &doc.Sections[n]
	return s.Level == 0 && strings.TrimSpace(markdown.Plain(doc.Path, text[s.Start:s.OwnEnd])) == ""
}

// result shows chunk number at of section n of doc. text is the file as indexed
// and is valid only during the call.
func (r *Retriever) result(doc *store.Document, n, at int, ranked *RankedDocument, text []byte, terms *terms, q Query) Result {
	s := &doc.Sections[n]
	chunk := s.Chunks[at]
	result := Result{
		Path: doc.Path, Title: doc.Title, Headings: append([]string{}, s.Trail...), Anchor: s.Anchor,
		Anchors: anchors(doc), LineRange: Lines{s.StartLine, s.EndLine},
		Passage: passage(s, chunk, text), Hash: doc.Hash, Tokens: int(doc.Size / 4),
		SectionHash: s.Hash, SectionTokens: r.tokens(s, text),
		Score: ranked.Score, Snippet: terms.snippet(doc.Path, s.Heading, text[chunk.Start:chunk.End]),
		Stale: r.stale(doc),
	}
	for _, more := range ranked.Sections {
		m := sectionOf(doc, &more)
		if m < 0 || m == n || blankPreamble(doc, m, text) {
			continue
		}
		other := &doc.Sections[m]
		result.More = append(result.More, SectionRef{
			Anchor: other.Anchor, Heading: other.Heading,
			LineRange: Lines{other.StartLine, other.EndLine}, Score: more.Score,
		})
		if len(result.More) == maxMore {
			break
		}
	}
	if q.MaxTokens > 0 {
		result.whole = string(markdown.TrimBlankLines(text[s.Start:s.OwnEnd]))
		result.part = strings.TrimSpace(string(text[chunk.Start:chunk.End]))
	}
	if q.Explain {
		e := ranked.Explanation
		result.Explain = &e
	}
	return result
}

// anchors returns the texts of the first three headings.
func anchors(doc *store.Document) []string {
	out := []string{}
	for i := range doc.Sections {
		if h := doc.Sections[i].Heading; h != "" && len(out) < 3 {
			out = append(out, h)
		}
	}
	return out
}

// passage returns the lines of a chunk of s.
func passage(s *store.Section, c store.Chunk, text []byte) Lines {
	start := s.StartLine
	if s.Start < c.Start {
		lead := text[s.Start:c.Start]
		if s.Level == 0 { // StartLine is that of the first line that is not blank
			lead = markdown.TrimBlankLines(text[s.Start:c.Start])
			if len(lead) > 0 {
				lead = text[c.Start-len(strings.TrimLeft(string(text[s.Start:c.Start]), " \t\r\n\f\v")) : c.Start]
			}
		}
		start += lineBreaks(lead)
	}
	return Lines{start, start + lineBreaks(text[c.Start:c.End])}
}

// lineBreaks counts "\n", "\r\n" and lone "\r".
func lineBreaks(text []byte) int {
	n := 0
	for i, c := range text {
		if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			n++
		}
	}
	return n
}

// tokens counts the tokens of the section with all below it, once for each text.
func (r *Retriever) tokens(s *store.Section, text []byte) int {
	if n, ok := r.lengths.Get(s.Hash); ok {
		return n
	}
	n := r.sources.Budget.CountTokens(string(markdown.TrimBlankLines(text[s.Start:s.End])))
	r.lengths.Add(s.Hash, n)
	return n
}

// stale reports whether the file on disk is no longer the one indexed, by its
// size and time alone.
func (r *Retriever) stale(doc *store.Document) bool {
	if r.sources.Files == nil {
		return false
	}
	info, err := r.sources.Files.Stat(doc.Path)
	return err != nil || info.Size() != doc.Size || !info.ModTime().Equal(time.Unix(0, doc.ModTime))
}

// place is what Read takes for a section.
func place(path, anchor string) string {
	if anchor == "" {
		return path
	}
	return path + "#" + anchor
}
