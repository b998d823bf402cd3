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

// near returns the term of a query itself, the similar terms of the dictionary, and the
// similar stop words with their rarity.
func (d *Dictionary) near(word queryTerm) ([]spelling, error) {
	byEdits := [][]spelling{{{weightedTerm: weightedTerm{term: word.term}}}, nil, nil}
	a, err := newAutomaton(word.term)
	if err != nil {
		return nil, err
	}
	first, _ := utf8.DecodeRuneInString(word.term)
	stems := stemsNear(word)
	for t := range strings.SplitSeq(d.beginning(first), "\n") {
		edits, similar := stems[t], stems[t] > 0
		if !similar && a != nil {
			edits, similar = a.match(t)
		}
		if similar {
			byEdits[edits] = append(byEdits[edits], spelling{weightedTerm: weightedTerm{term: t}, edits: edits})
		}
	}
	near := slices.Concat(byEdits...)
	near = near[:min(len(near), 1+maxSpellings)]
	if a != nil {
		near = append(near, a.stops()...)
	}
	return near, nil
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

// Has reports whether d holds a term, or would ignore it.
func (d *Dictionary) Has(term string) bool {
	first, _ := utf8.DecodeRuneInString(term)
	terms := d.beginning(first)
	return !Spellable(term) || strings.HasPrefix(terms, term+"\n") || strings.Contains(terms, "\n"+term+"\n")
}

// Misspelt reports whether a dictionary lacks a word of q.
func (q Query) Misspelt(d *Dictionary) bool {
	return slices.ContainsFunc(q.terms, func(w queryTerm) bool { return w.written != "" && !d.Has(w.term) })
}

// Near replaces terms by those that q accepts for them, as a search of Index does. idfs
// returns the inverse document frequencies of those terms that the store holds, by
// which it multiplies weights.
func (q Query) Near(d *Dictionary, idfs func(terms []string) (map[string]float64, error)) (Query, error) {
	n := len(q.terms)
	both := make([][]spelling, 2*n)
	similar, near := both[:n], both[n:]
	look := func(i int) (err error) {
		near[i], err = d.near(q.terms[i])
		return err
	}
	for i, w := range q.terms {
		similar[i] = []spelling{{weightedTerm: weightedTerm{term: w.term}}}
		if q.width != exact {
			similar[i] = d.longer(w.term)
		}
		if q.width == spellings {
			if err := look(i); err != nil {
				return q, err
			}
		}
	}
	if err := weigh(both, idfs); err != nil {
		return q, err
	}
	replaced := q.misspelt(similar)
	if q.width != spellings { // which words are misspelt was not known before
		for i := range near {
			if replaced[i] {
				if err := look(i); err != nil {
					return q, err
				}
			}
		}
		if err := weigh(near, idfs); err != nil {
			return q, err
		}
	}
	for i := range near {
		if replaced[i] {
			similar[i] = near[i]
		}
	}
	out := q
	out.terms = nil
	for _, s := range replacements(q.terms, similar) {
		out.terms = append(out.terms, queryTerm{term: s.term, count: s.weight / s.idf})
	}
	return out, nil
}

// weigh sets the rarities of the spellings and removes those that the store lacks.
func weigh(similar [][]spelling, idfs func(terms []string) (map[string]float64, error)) error {
	all := make(map[string]bool)
	for _, some := range similar {
		for _, s := range some {
			if s.idf == 0 {
				all[s.term] = true
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	held, err := idfs(slices.Sorted(maps.Keys(all)))
	for i, some := range similar {
		for j, s := range some {
			some[j].idf = max(s.idf, held[s.term])
		}
		similar[i] = slices.DeleteFunc(some, func(s spelling) bool { return s.idf <= 0 })
	}
	return err
}
