package text

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
)

// Bounds of a fuzzy search: shorter terms have too many neighbours, and of
// many neighbours the near and common ones are meant.
const (
	fuzzyMinRunes = 3
	fuzzyMaxTerms = 24 // expansions of one term
)

// addSimilar replaces each term by the indexed terms one edit away (two, if it
// has more than five letters) that begin with the same letter. All weigh by the
// rarity of the commonest, lest a rare misprint outweigh the word that is
// meant, and by 1/(1+edits).
func addSimilar(snap *scorch.IndexSnapshot, terms []weighted, docs uint64) ([]weighted, error) {
	at := make(map[string]int) // term -> its place in all
	var all []weighted
	for _, t := range terms {
		similar, err := neighbours(snap, t.term)
		if err != nil {
			return nil, err
		}
		freq := t.freq
		for _, e := range similar {
			freq = max(freq, e.Count)
		}
		count := t.weight / idf(docs, t.freq)
		for _, e := range similar {
			weight := count * idf(docs, freq) / float64(1+e.EditDistance)
			if i, ok := at[e.Term]; ok {
				all[i].weight = max(all[i].weight, weight)
				continue
			}
			expanded, err := lookUp(snap, e.Term)
			if err != nil {
				return nil, err
			}
			expanded.weight = weight
			at[e.Term] = len(all)
			all = append(all, expanded)
		}
	}
	return all, nil
}

// neighbours returns term itself and at most fuzzyMaxTerms similar ones, the
// nearest and then the commonest first.
func neighbours(snap *scorch.IndexSnapshot, term string) ([]index.DictEntry, error) {
	itself, err := lookUp(snap, term)
	if err != nil {
		return nil, err
	}
	near := []index.DictEntry{{Term: term, Count: itself.freq}}
	if n := utf8.RuneCountInString(term); n >= fuzzyMinRunes {
		edits := 2
		if n <= 5 {
			edits = 1
		}
		_, first := utf8.DecodeRuneInString(term)
		dict, err := snap.FieldDictFuzzy(textField, term, edits, term[:first])
		if err != nil {
			return nil, err
		}
		defer dict.Close()
		for {
			e, err := dict.Next()
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			if e.Term != term {
				near = append(near, index.DictEntry{Term: e.Term, EditDistance: max(1, e.EditDistance)})
			}
		}
	}
	for i := range near[1:] {
		t, err := lookUp(snap, near[1+i].Term) // the iterator leaves counts out
		if err != nil {
			return nil, err
		}
		near[1+i].Count = t.freq
	}
	slices.SortStableFunc(near[1:], func(a, b index.DictEntry) int {
		return cmp.Or(cmp.Compare(a.EditDistance, b.EditDistance), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Term, b.Term))
	})
	return near[:min(len(near), fuzzyMaxTerms+1)], nil
}
