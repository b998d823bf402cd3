package retriever

import (
	"cmp"
	"slices"
)

// Ranking is every document a search found, best first: the state between the
// indexes and an answer. It holds ids and scores, no text.
type Ranking struct {
	Documents []RankedDocument
	// Mode is the one that ran: Keyword where vectors were asked for and there
	// are none at all.
	Mode Mode
	// Fuzzy is set when near spellings were accepted.
	Fuzzy bool
	// Degraded is as in Answer.
	Degraded []string
	// full is whether a leg gave as many hits as it was asked for, so that
	// there can be more documents than were found.
	full bool
}

// RankedDocument is a document with the sections of it that matched, best first.
type RankedDocument struct {
	Path     string
	Score    float64
	Sections []RankedSection
}

// RankedSection is a section with its best chunk.
type RankedSection struct {
	Anchor string
	Chunk  int // number of the best chunk in the section
	Explanation
}

// group collects chunks into sections and sections into documents. A section
// is scored by its best chunk, a document by its best section. Ties are broken
// by path, anchor and chunk number.
func group(cs []candidate) []RankedDocument {
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.path, b.path),
			cmp.Compare(a.anchor, b.anchor), cmp.Compare(a.number, b.number))
	})
	at := make(map[string]int, len(cs))
	documents := make([]RankedDocument, 0, len(cs))
	for i := range cs {
		c := &cs[i]
		d, ok := at[c.path]
		if !ok {
			d = len(documents)
			at[c.path] = d
			documents = append(documents, RankedDocument{Path: c.path, Score: c.Score})
		}
		sections := documents[d].Sections
		if !slices.ContainsFunc(sections, func(s RankedSection) bool { return s.Anchor == c.anchor }) {
			documents[d].Sections = append(sections, RankedSection{Anchor: c.anchor, Chunk: c.number, Explanation: c.Explanation})
		}
	}
	return documents
}
