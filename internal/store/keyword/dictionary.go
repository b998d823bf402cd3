package keyword

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Dictionary finds near spellings for a store that can look up a term but not
// those near it. It has the terms by their first character, the commonest first, each
// ended by a line feed.
type Dictionary map[string]string

// NewDictionary returns the dictionary of the terms in text, the commonest first, each on
// a line.
func NewDictionary(text string) Dictionary {
	lists := map[string][]byte{}
	for term := range strings.SplitSeq(text, "\n") {
		if Spellable(term) {
			first := firstOf(term)
			lists[first] = append(append(lists[first], term...), '\n')
		}
	}
	d := Dictionary{}
	for first, list := range lists {
		d[strings.Clone(first)] = string(list)
	}
	return d
}

func firstOf(term string) string {
	_, size := utf8.DecodeRuneInString(term)
	return term[:size]
}

// HasAll reports whether d holds all terms, or would ignore them.
func (d Dictionary) HasAll(terms []string) bool {
	held := map[string]bool{}
	for _, list := range d {
		for term := range strings.SplitSeq(list, "\n") {
			held[term] = true
		}
	}
	return !slices.ContainsFunc(terms, func(t string) bool { return !held[t] && Spellable(t) })
}

func (d Dictionary) has(term string) bool {
	list := d[firstOf(term)]
	return strings.HasPrefix(list, term+"\n") || strings.Contains(list, "\n"+term+"\n")
}

// maxSpellings is how many similar terms are looked up for one of a query at
// most, the nearest and then the commonest.
const maxSpellings = 1024

// near implements vocabulary.
func (d Dictionary) near(a *automaton, found map[string]int) error {
	var byEdits [3][]string
	for t := range strings.SplitSeq(d[a.first], "\n") {
		edits, similar := found[t], found[t] > 0
		if !similar {
			edits, similar = a.match(t)
		}
		if similar {
			byEdits[edits] = append(byEdits[edits], t)
		}
	}
	clear(found)
	for edits, terms := range byEdits {
		for _, t := range terms[:min(len(terms), maxSpellings-len(found))] {
			found[t] = edits
		}
	}
	return nil
}

// longer implements vocabulary.
func (d Dictionary) longer(term string) (terms []string, err error) {
	for t := range strings.SplitSeq(d[firstOf(term)], "\n") {
		if t != term && strings.HasPrefix(t, term) && len(terms) < maxLonger {
			terms = append(terms, t)
		}
	}
	return terms, nil
}

// Misspelt reports whether a dictionary lacks a word of q.
func (q Query) Misspelt(d Dictionary) bool {
	return slices.ContainsFunc(q.terms, func(w queryTerm) bool {
		return w.written != "" && Spellable(w.term) && !d.has(w.term)
	})
}
