package keyword

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Dictionary finds near spellings for a store that can look up a term but not
// those near it. A term takes its bytes and one more. A search for a misspelt word
// reads all terms with its first character. The zero value is empty. It is safe
// for concurrent use.
type Dictionary struct {
	mu    sync.RWMutex
	terms map[rune]*strings.Builder // by first character; each term ends with a line feed
	count int
}

// Add adds a term that was not added before. It ignores terms that are not
// Spellable.
func (d *Dictionary) Add(term string) {
	if !Spellable(term) {
		return
	}
	first, _ := utf8.DecodeRuneInString(term)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.terms == nil {
		d.terms = make(map[rune]*strings.Builder)
	}
	list := d.terms[first]
	if list == nil {
		list = &strings.Builder{}
		d.terms[first] = list
	}
	list.WriteString(term)
	list.WriteByte('\n')
	d.count++
}

// Len is the number of terms.
func (d *Dictionary) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.count
}

// beginning returns the terms that begin with a character, each ended by a line feed.
func (d *Dictionary) beginning(first rune) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if list := d.terms[first]; list != nil {
		return list.String() // terms added later follow it
	}
	return ""
}

// maxSpellings is how many similar terms are looked up for one of a query at
// most, the nearest and then those that were added first.
const maxSpellings = 1024

// near returns term itself, the similar terms of the dictionary, and the similar
// stop words with their rarity.
func (d *Dictionary) near(term string) ([]spelling, error) {
	byEdits := [][]spelling{{{weightedTerm: weightedTerm{term: term}}}, nil, nil}
	a, err := newAutomaton(term)
	if a == nil || err != nil {
		return byEdits[0], err
	}
	first, _ := utf8.DecodeRuneInString(term)
	for t := range strings.SplitSeq(d.beginning(first), "\n") {
		if edits, ok := a.match(t); ok {
			byEdits[edits] = append(byEdits[edits], spelling{weightedTerm: weightedTerm{term: t}, edits: edits})
		}
	}
	near := slices.Concat(byEdits...)
	return append(near[:min(len(near), 1+maxSpellings)], a.stops()...), nil
}

// longer returns term itself and the terms that begin with it and were added first, as
// if they were one edit away.
func (d *Dictionary) longer(term string) []spelling {
	found := []spelling{{weightedTerm: weightedTerm{term: term}}}
	if !expandable(term) {
		return found
	}
	first, _ := utf8.DecodeRuneInString(term)
	for t := range strings.SplitSeq(d.beginning(first), "\n") {
		if t != term && strings.HasPrefix(t, term) && len(found) <= maxLonger {
			found = append(found, spelling{weightedTerm: weightedTerm{term: t}, edits: 1})
		}
	}
	return found
}

// Near replaces terms by those that q accepts for them, as a search of Index does. idfs
// returns the inverse document frequencies of those terms that the store holds, by
// which it multiplies weights.
func (q Query) Near(d *Dictionary, idfs func(terms []string) (map[string]float64, error)) (Query, error) {
	longer, near := make([][]spelling, len(q.terms)), make([][]spelling, len(q.terms))
	all := make(map[string]bool)
	for i, w := range q.terms {
		longer[i] = d.longer(w.term)
		if q.width == spellings {
			var err error
			if near[i], err = d.near(w.term); err != nil {
				return q, err
			}
		}
		for _, s := range slices.Concat(longer[i], near[i]) {
			if s.idf == 0 {
				all[s.term] = true
			}
		}
	}
	held, err := idfs(slices.Sorted(maps.Keys(all)))
	if err != nil {
		return q, err
	}
	known := func(some []spelling) []spelling {
		for j, s := range some {
			some[j].idf = max(s.idf, held[s.term])
		}
		return slices.DeleteFunc(some, func(s spelling) bool { return s.idf <= 0 })
	}
	similar := longer
	for i := range similar {
		similar[i] = known(longer[i])
	}
	if q.width == spellings && !haveOthers(similar) {
		for i := range similar {
			similar[i] = known(near[i])
		}
	}
	out := q
	out.terms = nil
	for _, s := range replacements(q.terms, similar) {
		out.terms = append(out.terms, queryTerm{s.term, s.weight / s.idf})
	}
	return out, nil
}
