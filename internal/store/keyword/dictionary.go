package keyword

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Dictionary finds near spellings for a store that can only look up exact terms. It maps
// a first character to the terms that begin with it, most common first, each followed by
// a line feed.
type Dictionary map[string]string

// NewDictionary returns the dictionary of the terms in text, one per line, most common
// first.
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

// HasAll reports whether d contains all terms that are Spellable.
func (d Dictionary) HasAll(terms []string) bool {
	known := map[string]bool{}
	for _, list := range d {
		for term := range strings.SplitSeq(list, "\n") {
			known[term] = true
		}
	}
	return !slices.ContainsFunc(terms, func(t string) bool { return !known[t] && Spellable(t) })
}

func (d Dictionary) has(term string) bool {
	list := d[firstOf(term)]
	return strings.HasPrefix(list, term+"\n") || strings.Contains(list, "\n"+term+"\n")
}

// maxSpellings is the most similar terms to look up for a term of a query, nearest first,
// then most common first.
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

// Misspelt reports whether a word of q is missing from a dictionary.
func (q Query) Misspelt(d Dictionary) bool {
	return slices.ContainsFunc(q.terms, func(w queryTerm) bool {
		return w.written != "" && Spellable(w.term) && !d.has(w.term)
	})
}
