package retriever

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

const (
	// longQuery is the length in runes above which a query is treated as pasted text, in
	// which quotes and dashes are not operators.
	longQuery = 200
	// condensedQuery is the most runes of a query that are searched for, about as many as
	// the encoder reads.
	condensedQuery = 1000
	// pieceWords is the most words in one piece of a line.
	pieceWords = 25
)

// parse parses the text of a query. It reduces a text that is too long to its most
// informative pieces.
func (r *Retriever) parse(text string) (query.Query, error) {
	n := utf8.RuneCountInString(text)
	if n <= longQuery {
		return query.Parse(text), nil
	}
	q := query.Query{Words: strings.Join(strings.Fields(text), " ")}
	if n <= condensedQuery {
		return q, nil
	}
	rarity, err := r.rarity(q)
	if err != nil {
		return q, err
	}
	q.Words = condense(text, rarity)
	return q, nil
}

// rarity returns the inverse document frequency of each term of q in the index. If the
// index has no statistics, every term has the value 1.
func (r *Retriever) rarity(q query.Query) (map[string]float64, error) {
	stats, chunks, err := r.statistics(q)
	if err != nil {
		return nil, err
	}
	rarity := make(map[string]float64, len(stats))
	for _, t := range stats {
		switch {
		case chunks == 0:
			rarity[t.Term] = 1
		case t.Chunks > 0:
			rarity[t.Term] = t.IDF(chunks)
		}
	}
	return rarity, nil
}

// statistics returns the terms of q with their frequencies, and the number of chunks in
// the keyword index. If the index does not count them, both are 0.
func (r *Retriever) statistics(q query.Query) (stats []keyword.TermStat, chunks int, err error) {
	s, ok := r.sources.Keyword.(interface {
		Stats(q query.Query) (stats []keyword.TermStat, chunks int, err error)
	})
	if !ok {
		for _, term := range keyword.QueryTerms(q) {
			stats = append(stats, keyword.TermStat{Term: term})
		}
		return stats, 0, nil
	}
	if stats, chunks, err = s.Stats(q); err != nil {
		return nil, 0, fmt.Errorf("reading the statistics of the query: %w", err)
	}
	return stats, chunks, nil
}

// condense returns the pieces of text with the rarest terms, up to condensedQuery runes,
// in the order of the text. Each term counts once.
func condense(text string, rarity map[string]float64) string {
	type piece struct {
		text  string
		runes int
		terms []string // each once
		taken bool
	}
	var pieces []piece
	for line := range strings.Lines(text) {
		for words := range slices.Chunk(strings.Fields(line), pieceWords) {
			p := strings.Join(words, " ")
			pieces = append(pieces, piece{text: p, runes: utf8.RuneCountInString(p), terms: slices.Compact(slices.Sorted(slices.Values(keyword.Analyze(p))))})
		}
	}
	value := func(p piece) (sum float64) {
		for _, t := range p.terms {
			sum += rarity[t]
		}
		return sum
	}
	for left := condensedQuery; ; {
		best, most := -1, 0.0
		for i, p := range pieces {
			if !p.taken && p.runes < left {
				if v := value(p); v > most {
					best, most = i, v
				}
			}
		}
		if best < 0 {
			break
		}
		pieces[best].taken = true
		left -= pieces[best].runes + 1
		for _, t := range pieces[best].terms {
			delete(rarity, t)
		}
	}
	var kept []string
	for _, p := range pieces {
		if p.taken {
			kept = append(kept, p.text)
		}
	}
	if len(kept) == 0 { // no term is in the index
		return string([]rune(text)[:condensedQuery])
	}
	return strings.Join(kept, " ")
}
