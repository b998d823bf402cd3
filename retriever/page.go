package retriever

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/text/invisible"
	"cairn/internal/text/markdown"
)

// maxMore is the most further sections of a document in a result, and maxMoreText the
// most within a token budget.
const (
	maxMore     = 3
	maxMoreText = 6
)

// page makes the page of results that starts at offset. HasMore is false if the ranking
// ends before the page is full. page reads the ranking from its first document, because
// near-duplicates are found by comparison with the documents before them.
func (s *search) page(ctx context.Context, ranking *Ranking, offset int) (*Answer, error) {
	a := &Answer{
		Results: make([]Result, 0, s.Limit), Mode: ranking.Mode,
		Degraded: append([]string{}, ranking.Degraded...), Fuzzy: ranking.Fuzzy,
	}
	for i := range ranking.Documents {
		if !ranking.Documents[i].further {
			a.TotalCount++
		}
	}
	s.marked = keyword.NewMarker(s.parsed)
	s.covered = 0
	if s.sources.Files != nil {
		s.files = s.sources.Files.Lookup()
		defer s.files.Close()
	}
	var kept []Fingerprint
	results := func(reader *docs.Reader) error {
		// Another goroutine writes the snippets while this one reads on.
		texts := make(chan func(), s.Limit)
		var writing sync.WaitGroup
		writing.Go(func() { callAll(texts) })
		defer func() {
			close(texts)
			callAll(texts)
			writing.Wait()
		}()
		ready := 0 // number of prefetched documents
		for i := range ranking.Documents {
			if err := ctx.Err(); err != nil {
				return err
			}
			if i == ready {
				ready = min(len(ranking.Documents), ready+offset+s.Limit+spareDocuments)
				if err := reader.Prefetch(pathsOf(ranking.Documents[i:ready])); err != nil {
					return fmt.Errorf("reading the documents found: %w", err)
				}
			}
			d, err := readFound(reader, &ranking.Documents[i], s.version)
			if err != nil {
				return err
			}
			if d == nil {
				if !ranking.Documents[i].further {
					a.TotalCount--
				}
				s.trace.removed(ranking.Documents[i].Path)
				continue
			}
			print := NewFingerprint(d.doc, d.section)
			if k := slices.IndexFunc(kept, print.Near); k >= 0 {
				s.trace.duplicate(d.place())
				if k >= offset {
					result := &a.Results[k-offset]
					result.Duplicates = append(result.Duplicates, d.place())
				}
				continue
			}
			if len(kept) == offset+s.Limit {
				a.HasMore = true
				return nil
			}
			if kept = append(kept, print); len(kept) > offset {
				a.Results = append(a.Results, s.result(d)) // there is room
				result := &a.Results[len(a.Results)-1]
				texts <- s.texts(result, d, len(a.Results) <= coveredDocuments)
				if result.Outdated, err = s.outdatedNote(ctx, d.doc.Path); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := s.sources.Documents.View(func(reader *docs.Reader) (err error) {
		if err = results(reader); err == nil {
			a.Folders, err = s.folders(reader, a.Results)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(a.Results, func(r Result) bool { return r.Stale }) {
		a.Degraded = append(a.Degraded, "stale")
	}
	return a, nil
}

// spareDocuments is how many documents page prefetches beyond a full page, since some
// are near-duplicates and one more decides HasMore.
const spareDocuments = 3

func pathsOf(ranked []RankedDocument) []string {
	paths := make([]string, len(ranked))
	for i := range ranked {
		paths[i] = ranked[i].Path
	}
	return paths
}

// foundDocument is a ranked document with the section and the chunk that its result shows.
type foundDocument struct {
	ranked  *RankedDocument
	doc     *store.Document
	text    []byte // the file as indexed, valid during the View
	section int
	chunk   int // number in the section
}

// readFound reads a ranked document. It returns nil if the document was removed or
// changed after the legs found it. It fails with *docs.CorruptError if the document is
// missing although the store still has this version.
func readFound(reader *docs.Reader, ranked *RankedDocument, version int) (*foundDocument, error) {
	doc, err := reader.Document(ranked.Path)
	if err != nil {
		return nil, fmt.Errorf("reading a document found: %w", err)
	}
	if doc == nil {
		if version > 0 && version == reader.Version() && !reader.IsPending(docs.Keyword, ranked.Path) && !reader.IsPending(docs.Vectors, ranked.Path) {
			return nil, &docs.CorruptError{Path: ranked.Path, Reason: "it is missing"}
		}
		return nil, nil
	}
	d := &foundDocument{ranked: ranked, doc: doc, text: reader.Text(ranked.Path)}
	if d.section, d.chunk = shown(doc, ranked, d.text); d.section < 0 {
		return nil, nil
	}
	return d, nil
}

func (d *foundDocument) place() string { return place(d.doc.Path, d.doc.Sections[d.section].Anchor) }

// shown returns the section and the chunk that a result shows, or -1 if the document no
// longer has its best section. It chooses the best section, but discounts sections that
// are mostly links, and skips a blank preamble, which matches only by the document's
// title. If only the preamble matched, shown returns the section after it.
func shown(doc *store.Document, ranked *RankedDocument, text []byte) (n, chunk int) {
	best := -1.0
	for i := range ranked.Sections {
		s := &ranked.Sections[i]
		m := sectionOf(doc, s)
		if i == 0 {
			if n, chunk = m, s.Chunk; m < 0 {
				return -1, 0
			}
		}
		if s.Score <= best {
			break
		}
		if m < 0 || blankPreamble(doc, m, text) {
			continue
		}
		score, section := s.Score, &doc.Sections[m]
		if markdown.LinkShare(doc.Path, text[section.Start:section.OwnEnd], len(section.Heading)) > maxLinkShare {
			score *= linksDiscount
		}
		if score > best {
			best, n, chunk = score, m, s.Chunk
		}
	}
	if best < 0 && n+1 < len(doc.Sections) && len(doc.Sections[n+1].Chunks) > 0 {
		return n + 1, 0
	}
	return n, chunk
}

// Lists of links and tables of contents repeat the titles of other pages in few words,
// so they match better than the pages. If more than maxLinkShare of a section is links,
// its score is multiplied by linksDiscount when it is compared with the other sections
// of its document. See benchmarks/quality.md.
const (
	maxLinkShare  = 0.5
	linksDiscount = 0.7
)

// sectionOf returns the index of a ranked section in doc, or -1 if doc no longer has it.
func sectionOf(doc *store.Document, s *RankedSection) int {
	n := slices.IndexFunc(doc.Sections, func(have store.Section) bool { return have.Anchor == s.Anchor })
	if n >= 0 && s.Chunk >= len(doc.Sections[n].Chunks) {
		return -1
	}
	return n
}

// blankPreamble reports whether section n of doc is the text before the first heading
// and has no visible text, only a comment or an anchor for example.
func blankPreamble(doc *store.Document, n int, text []byte) bool {
	s := &doc.Sections[n]
	return s.Level == 0 && strings.TrimSpace(markdown.Plain(doc.Path, "", text[s.Start:s.OwnEnd])) == ""
}

func callAll(functions <-chan func()) {
	for f := range functions {
		f()
	}
}

// texts returns a function that sets SectionTokens of the result for d and, unless the search
// has a budget, its snippet, which shows the terms in s.marked. The result counts for covered if
// covers is set. The function works on copies, because only View handles the faults of reading
// a damaged file. It caches the number of tokens by the hash of the section.
func (s *search) texts(result *Result, d *foundDocument, covers bool) func() {
	section := &d.doc.Sections[d.section]
	chunk := section.Chunks[d.chunk]
	quotes := covers || s.MaxTokens == 0
	var own []byte
	if quotes {
		own = bytes.Clone(d.text[chunk.Start:chunk.End])
	}
	tokens, counted := s.lengths.Get(section.Hash)
	var whole string
	if !counted {
		whole = string(markdown.TrimBlankLines(d.text[section.Start:section.End]))
	}
	return func() {
		if quotes {
			text := markdown.Plain(d.doc.Path, chunk.Fence, own)
			if store.KindOf(d.doc.Path) == store.Code {
				text = joinComments(text)
			}
			snippet, found := snippetOf(s.marked, section.Heading, text)
			if covers {
				s.cover(d, found)
			}
			if s.MaxTokens == 0 {
				result.Snippet, result.Flags = snippet, invisible.Find(snippet)
			}
		}
		if !counted {
			tokens = s.sources.Budget.CountTokens(whole)
			s.lengths.Add(section.Hash, tokens)
		}
		result.SectionTokens = tokens
	}
}

// result returns the result for d, without the fields that texts sets.
func (s *search) result(d *foundDocument) Result {
	doc, section := d.doc, &d.doc.Sections[d.section]
	chunk := section.Chunks[d.chunk]
	result := Result{
		Path: doc.Path, Title: doc.Title, Headings: append([]string{}, section.Trail...), Anchor: section.Anchor,
		LineRange: Lines{section.StartLine, section.EndLine},
		Passage:   passage(section, chunk, d.text), Hash: doc.Hash, Tokens: int(doc.Size / 4),
		SectionHash: shortHash(section.Hash), Score: s.score(d.ranked.Score),
	}
	if s.files != nil { // the size or time of the file may differ from the indexed one
		info, err := s.files.Stat(doc.Path)
		result.Stale = err != nil || info.Size() != doc.Size || !info.ModTime().Equal(time.Unix(0, doc.ModTime))
	}
	if s.MaxTokens > 0 {
		result.candidate = newCandidateText(section, chunk, d.text, s.MaxTokens)
		result.candidate.score, result.candidate.code = d.ranked.Score, d.ranked.role != document && d.ranked.role != test
		result.candidate.source, result.candidate.named = store.KindOf(doc.Path) == store.Code, d.ranked.named
		result.More = s.more(d, result.candidate)
	} else {
		result.Anchors, result.More = firstHeadings(doc), s.more(d, nil)
	}
	if s.Query.Explain {
		result.Explain = new(d.ranked.Explanation)
	}
	return result
}

// score returns x as a result shows it: 17 digits cost 6 tokens more than 4, and only the
// sum of an explanation needs them.
func (s *search) score(x float64) float64 {
	if s.Query.Explain {
		return x
	}
	return math.Round(x*1e4) / 1e4
}

func shortHash(hash string) string { return hash[:min(ShortHash, len(hash))] }

// more returns the best sections of the document other than the one shown. within is
// the candidate of that one, and nil without a token budget.
func (s *search) more(d *foundDocument, within *candidateText) (refs []SectionRef) {
	most, shown := maxMore, &d.doc.Sections[d.section]
	if within != nil {
		most = maxMoreText
	}
	best := &d.ranked.Sections[0]
	if i := slices.IndexFunc(d.ranked.Sections, func(r RankedSection) bool { return r.Anchor == shown.Anchor }); i >= 0 {
		best = &d.ranked.Sections[i]
	}
	for i := range d.ranked.Sections {
		ranked := &d.ranked.Sections[i]
		m := sectionOf(d.doc, ranked)
		if m < 0 || m == d.section || blankPreamble(d.doc, m, d.text) {
			continue
		}
		other := &d.doc.Sections[m]
		ref := SectionRef{
			Anchor: other.Anchor, Heading: other.Heading,
			LineRange: Lines{other.StartLine, other.EndLine}, Score: s.score(ranked.Score),
		}
		if within != nil {
			own := *other
			own.End = own.OwnEnd
			ref.candidate = newCandidateText(&own, other.Chunks[ranked.Chunk], d.text, s.MaxTokens)
			ref.candidate.source = within.source
			ref.candidate.main, ref.candidate.inside = within, shown.Start <= other.Start && other.Start < shown.End
			ref.candidate.share = furtherShare * min(1, ranked.Score/best.Score)
			if s.AsText {
				ref.candidate.share = min(1, furtherTextShare*ranked.Score/best.Score)
			}
		}
		if refs = append(refs, ref); len(refs) == most {
			break
		}
	}
	return refs
}

// firstHeadings returns the texts of the first three headings, the names in source code.
func firstHeadings(doc *store.Document) []string {
	out := []string{}
	for i := range doc.Sections {
		h := doc.Sections[i].Heading
		if store.KindOf(doc.Path) == store.Code {
			h = doc.Sections[i].Anchor
		}
		if h != "" && len(out) < 3 {
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
		if s.Level == 0 { // StartLine is the first line that is not blank
			if len(markdown.TrimBlankLines(lead)) == 0 {
				lead = nil
			}
			lead = bytes.TrimLeft(lead, " \t\r\n\f\v")
		}
		start += lineBreaks(lead)
	}
	return Lines{start, start + lineBreaks(text[c.Start:c.End])}
}

// lineBreaks counts "\n", "\r\n" and single "\r".
func lineBreaks(text []byte) int {
	return bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) - bytes.Count(text, []byte("\r\n"))
}

// Place returns the ReadRequest.Path of the result's section.
func (r *Result) Place() string { return place(r.Path, r.Anchor) }

// PlaceOf returns the ReadRequest.Path of a section in r.More.
func (r *Result) PlaceOf(m *SectionRef) string { return place(r.Path, m.Anchor) }

// place returns the ReadRequest.Path of a section.
func place(path, anchor string) string {
	if anchor == "" {
		return path
	}
	return path + "#" + anchor
}

// Near-duplicates are sections with the same heading whose fingerprints differ in
// at most nearBits of 64 bits (Manku, Jain and Das Sarma, WWW 2007) and whose lengths
// differ by at most a tenth. Sections shorter than nearBytes are never duplicates,
// because a few words in common prove nothing.
const (
	nearBits  = 3
	nearBytes = 200
)

// Fingerprint holds the properties of a section that Near compares.
type Fingerprint struct {
	heading string
	simhash uint64
	length  int // bytes of the own text
}

// NewFingerprint returns the fingerprint of section n of a document.
func NewFingerprint(doc *store.Document, n int) Fingerprint {
	s := &doc.Sections[n]
	f := Fingerprint{s.Heading, s.Fingerprint, s.OwnEnd - s.Start}
	f.heading = cmp.Or(f.heading, doc.Title)
	return f
}

// Near reports whether two sections have nearly the same text.
func (f Fingerprint) Near(other Fingerprint) bool {
	short, long := min(f.length, other.length), max(f.length, other.length)
	return short >= nearBytes && long-short <= long/10 &&
		f.simhash != 0 && bits.OnesCount64(f.simhash^other.simhash) <= nearBits &&
		strings.EqualFold(f.heading, other.heading)
}
