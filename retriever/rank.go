package retriever

import (
	"cmp"
	"slices"
	"sync"

	"cairn/internal/text/query"
)

// Ranking lists every document that a search found, best first. It holds ids and
// scores, no text.
type Ranking struct {
	Documents []RankedDocument
	// Mode is the mode that ran. It is Keyword if there are no vectors.
	Mode Mode
	// Fuzzy is set if near spellings were searched.
	Fuzzy bool
	// Degraded is as in Answer.
	Degraded []string
	// full reports whether a leg returned as many hits as requested, so that there
	// may be more documents.
	full     bool
	query    query.Query
	sections []RankedSection // of all documents
}

// rankings pools rankings with their memory.
var rankings = sync.Pool{New: func() any { return new(Ranking) }}

// release returns r to the pool. The caller must not use r afterwards.
func (r *Ranking) release() {
	clear(r.Documents[:cap(r.Documents)])
	clear(r.sections[:cap(r.sections)])
	*r = Ranking{Documents: r.Documents[:0], sections: r.sections[:0]}
	rankings.Put(r)
}

// RankedDocument is a document with its matching sections, best first.
type RankedDocument struct {
	Path     string
	Sections []RankedSection
	// Explanation holds the components of the document's score.
	Explanation
	// further is set for a symbol of a source file other than the best one, which has a
	// document of its own. of is the number of the file's document, set by group.
	further bool
	of      int
}

// maxSymbols is the most sections of a source file that are results of their own. With 3,
// 4 and 5, .525, .533 and .567 of the questions of benchmarks/code.md had the right symbol
// in five.
const maxSymbols = 5

// place returns the path of a document, or the place of a further symbol.
func (d *RankedDocument) place() string {
	if d.further {
		return place(d.Path, d.Sections[0].Anchor)
	}
	return d.Path
}

// RankedSection is a section with its best chunk.
type RankedSection struct {
	Anchor   string
	Chunk    int // number of the best chunk in the section
	Score    float64
	reranked bool // the re-ranker read it
}

// group collects chunks into sections and sections into documents, best first. The best
// sections of a source file each become a document, since a symbol is what people look for.
// Path, anchor and chunk number break ties. The score of a section is that of its best
// chunk. Each component of a document's score is the mean of its value in the best chunk
// and its maximum over all chunks. A document whose words match in one passage and whose
// meaning matches in another thus gains, but less than a document with both in one
// passage. On long pages this adds up to .014 nDCG@10 over the best chunk alone; for a
// document of one chunk it makes no difference.
func group(cs []candidate) *Ranking {
	order := make([]*candidate, len(cs)) // a candidate is expensive to move
	for i := range cs {
		order[i] = &cs[i]
	}
	slices.SortFunc(order, func(a, b *candidate) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.anchor, b.anchor), cmp.Compare(a.number, b.number))
	})
	at := takeNumbers()
	chunks := make([]int, 0, 64) // of each document
	for _, c := range order {
		n, ok := at[c.path]
		if !ok {
			n = len(chunks)
			at[c.path] = n
			chunks = append(chunks, 0)
		}
		c.document = n
		chunks[n]++
	}
	returnNumbers(at)
	r := rankings.Get().(*Ranking)
	documents, sections := slices.Grow(r.Documents, len(chunks))[:len(chunks)], slices.Grow(r.sections, len(cs))[:len(cs)]
	r.sections = sections
	for i, n := range chunks {
		documents[i].Sections, sections = sections[:0:n], sections[n:]
	}
	var symbols []RankedDocument // further sections of source code
	for _, c := range order {
		d := &documents[c.document]
		if len(d.Sections) == 0 {
			d.Path, d.Explanation = c.path, c.Explanation
		}
		d.BestVector, d.BestKeyword = max(d.BestVector, c.Vector), max(d.BestKeyword, c.Keyword)
		if slices.ContainsFunc(d.Sections, func(s RankedSection) bool { return s.Anchor == c.anchor }) {
			continue
		}
		section := RankedSection{Anchor: c.anchor, Chunk: c.number, Score: c.Score}
		if n := len(d.Sections); n > 0 && n < maxSymbols && c.role != document {
			symbols = append(symbols, RankedDocument{Path: c.path, Sections: []RankedSection{section}, Explanation: c.Explanation, further: true, of: c.document})
		}
		d.Sections = append(d.Sections, section)
	}
	broaden(documents, symbols)
	for i := range symbols {
		of := &documents[symbols[i].of]
		symbols[i].BestVector, symbols[i].BestKeyword = of.BestVector, of.BestKeyword
		of.Sections = slices.Delete(of.Sections, 1, 2) // the order is that of symbols
	}
	documents = append(documents, symbols...)
	for i := range documents {
		d := &documents[i]
		d.Vector = (d.ChunkVector + d.BestVector) / 2
		d.Keyword = (d.ChunkKeyword + d.BestKeyword) / 2
		d.Score = d.weigh()
	}
	sortDocuments(documents)
	r.Documents = documents
	return r
}

// Weights of source files that are not definitions. They were tuned on benchmarks/code.md
// and half of the repositories of semble's benchmark.
const (
	breadthWeight = 0.1 // of the breadth of a file: see broaden
	furtherWeight = 0.9 // of the symbols of a file other than its best one
)

// broaden lowers the weights of source files in few of whose sections the query matches,
// compared with the file with the most, and the weights of their further symbols.
func broaden(documents, symbols []RankedDocument) {
	breadth := make([]float64, len(documents))
	most := 0.0
	for i := range documents {
		if documents[i].role == document {
			continue
		}
		for _, s := range documents[i].Sections[:min(6, len(documents[i].Sections))] {
			breadth[i] += s.Score
		}
		most = max(most, breadth[i])
	}
	if most == 0 {
		return
	}
	weigh := func(d *RankedDocument, of int, weight float64) {
		if d.role == source || d.role == test {
			d.codeWeight *= weight * (1 - breadthWeight + breadthWeight*breadth[of]/most)
		}
	}
	for i := range documents {
		weigh(&documents[i], i, 1)
	}
	for i := range symbols {
		weigh(&symbols[i], symbols[i].of, furtherWeight)
	}
}

// sortDocuments sorts by score. It moves each document once, because they are large.
func sortDocuments(documents []RankedDocument) {
	order := make([]int, len(documents))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &documents[i], &documents[j]
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Compare(a.Path, b.Path)
	})
	for first := range order { // of a cycle
		moved := documents[first]
		for at := first; order[at] != at; {
			from := order[at]
			order[at] = at
			if from == first {
				documents[at] = moved
				break
			}
			documents[at] = documents[from]
			at = from
		}
	}
}
