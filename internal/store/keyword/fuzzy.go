package keyword

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/vellum/levenshtein"

	"cairn/internal/query"
)

// width is which terms answer for a term of a query.
type width uint8

const (
	exact     width = iota
	prefixes        // also those that begin with it
	spellings       // those if every term of the query has some, else near spellings
)

func widthOf(q query.Query) width {
	switch {
	case q.Fuzzy:
		return spellings
	case q.Prefixes:
		return prefixes
	}
	return exact
}

// Bounds of a fuzzy search: shorter terms have too many neighbours, and among
// many neighbours the near and common ones are the likely ones.
const (
	fuzzyMinRunes = 3
	fuzzyMaxTerms = 24 // expansions of one term
)

// stopIDF is the rarity of a stop word near a term of the query. A fuzzy search
// does not look for the stop word, but the term may be a misspelt one and then
// says little. On misspelt questions that gains cisi .009 nDCG@10, cacm .004 and
// cranfield .002, and costs kubefix .007.
const stopIDF = 0.3

// spelling is an indexed term that a term of a query may be misspelt for.
type spelling struct {
	weightedTerm
	edits int // 0 for the term as typed
	idf   float64
}

// replacements returns the spellings that replace a query's terms, each once, with
// their weights. similar has the candidates of each term. Only the nearest and
// then the commonest of a term are taken. All of them weigh by the rarity of the
// commonest, so that a rare misprint does not outweigh the intended word, and by
// 1/(1+edits). A stop word replaces nothing unless it was typed.
func replacements(words []queryTerm, similar [][]spelling) []spelling {
	at := make(map[string]int) // term -> its place in all
	var all []spelling
	for i, near := range similar {
		slices.SortFunc(near, func(a, b spelling) int {
			return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.idf, b.idf), cmp.Compare(a.term, b.term))
		})
		limit := fuzzyMaxTerms
		if len(near) > 0 && near[0].edits == 0 {
			limit++
		}
		near = near[:min(len(near), limit)]
		for _, s := range near {
			if s.edits > 0 && query.IsStopWord(s.term) {
				continue
			}
			commonest := slices.MinFunc(near, func(a, b spelling) int { return cmp.Compare(a.idf, b.idf) })
			s.weight = words[i].count * commonest.idf / float64(1+s.edits)
			if j, ok := at[s.term]; ok {
				all[j].weight = max(all[j].weight, s.weight)
				continue
			}
			at[s.term] = len(all)
			all = append(all, s)
		}
	}
	return all
}

// nearTerms replaces the terms of a query by indexed terms that are near.
func nearTerms(snap *scorch.IndexSnapshot, q Query, docs uint64) ([]weightedTerm, error) {
	similar := make([][]spelling, len(q.terms))
	for i, word := range q.terms {
		longer, err := beginning(snap, word.term)
		if err == nil {
			similar[i], err = spelled(snap, word.term, longer, docs)
		}
		if err != nil {
			return nil, err
		}
	}
	if q.width == spellings && !haveOthers(similar) {
		for i, word := range q.terms {
			var err error
			if similar[i], err = neighbours(snap, word.term, docs); err != nil {
				return nil, err
			}
		}
	}
	var terms []weightedTerm
	for _, s := range replacements(q.terms, similar) {
		terms = append(terms, s.weightedTerm)
	}
	return terms, nil
}

// neighbours returns those of term and the similar terms that some chunk holds.
func neighbours(snap *scorch.IndexSnapshot, term string, docs uint64) (near []spelling, err error) {
	add := func(term string, edits int) error {
		t, err := lookUp(snap, term)
		if err == nil && t.freq > 0 {
			near = append(near, spelling{t, edits, idf(docs, t.freq)})
		}
		return err
	}
	if err := add(term, 0); err != nil {
		return nil, err
	}
	a, err := newAutomaton(term)
	if a == nil || err != nil {
		return near, err
	}
	dict, err := snap.FieldDictFuzzy(textField, term, a.edits, a.first)
	if err != nil {
		return nil, err
	}
	defer dict.Close()
	near = append(near, a.stops()...)
	for {
		e, err := dict.Next()
		if e == nil || err != nil {
			return near, err
		}
		// The iterator's own distance is not always set for its first term.
		if edits, ok := a.match(e.Term); ok && Spellable(e.Term) {
			if err := add(e.Term, edits); err != nil {
				return nil, err
			}
		}
	}
}

const (
	// maxBeginning is how many terms that begin with one of a query are compared, and
	// maxLonger how many of them are looked up.
	maxBeginning = 1024
	maxLonger    = 128
)

// expandable reports whether terms that begin with term may answer for it.
func expandable(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return utf8.RuneCountInString(term) >= fuzzyMinRunes && unicode.IsLetter(r) && Spellable(term)
}

// beginning returns the commonest of the first maxBeginning terms that begin with
// term, without term itself.
func beginning(snap *scorch.IndexSnapshot, term string) ([]string, error) {
	if !expandable(term) {
		return nil, nil
	}
	dict, err := snap.FieldDictPrefix(textField, []byte(term))
	if err != nil {
		return nil, err
	}
	defer dict.Close()
	type counted struct {
		term  string
		count uint64
	}
	var found []counted
	for range maxBeginning {
		e, err := dict.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if e.Term != term && Spellable(e.Term) {
			found = append(found, counted{e.Term, e.Count})
		}
	}
	slices.SortStableFunc(found, func(a, b counted) int { return cmp.Compare(b.count, a.count) })
	var terms []string
	for _, f := range found[:min(len(found), maxLonger)] {
		terms = append(terms, f.term)
	}
	return terms, nil
}

// spelled looks a term up, and longer ones as if they were one edit away.
func spelled(snap *scorch.IndexSnapshot, term string, longer []string, docs uint64) (near []spelling, err error) {
	for i, one := range append([]string{term}, longer...) {
		t, err := lookUp(snap, one)
		if err != nil {
			return nil, err
		}
		if t.freq > 0 {
			near = append(near, spelling{t, min(i, 1), idf(docs, t.freq)})
		}
	}
	return near, nil
}

// haveOthers reports whether every list holds another term than the one typed.
func haveOthers(similar [][]spelling) bool {
	return !slices.ContainsFunc(similar, func(near []spelling) bool {
		return !slices.ContainsFunc(near, func(s spelling) bool { return s.edits > 0 })
	})
}

// Spellable reports whether a misspelt word may match term. It is false for stop
// words, which would match everything, for single characters and for the pairs by
// which ideographs are indexed.
func Spellable(term string) bool {
	r, size := utf8.DecodeRuneInString(term)
	return size < len(term) && !isCJK(r) && !query.IsStopWord(term)
}

// automaton finds the terms that begin as a term does and are up to edits
// insertions, deletions, substitutions and transpositions away from it.
type automaton struct {
	term  string
	first string // its first character
	edits int
	dfa   *levenshtein.DFA
}

// builders make automata of one edit and of two. Making one takes milliseconds.
var builders = [...]func() (*levenshtein.LevenshteinAutomatonBuilder, error){
	1: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(1, true)
	}),
	2: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(2, true)
	}),
}

// newAutomaton allows one edit, or two in a term of more than five letters. It
// returns nil for a term of less than fuzzyMinRunes.
func newAutomaton(term string) (*automaton, error) {
	n := utf8.RuneCountInString(term)
	if n < fuzzyMinRunes {
		return nil, nil
	}
	a := &automaton{term: term, edits: 2}
	if n <= 5 {
		a.edits = 1
	}
	_, size := utf8.DecodeRuneInString(term)
	a.first = term[:size]
	b, err := builders[a.edits]()
	if err == nil {
		a.dfa, err = b.BuildDfa(term, uint8(a.edits))
	}
	if err != nil {
		return nil, fmt.Errorf("finding spellings near %q: %w", term, err)
	}
	return a, nil
}

// match returns the edits to another term. ok is false for term itself and for
// terms too far away.
func (a *automaton) match(term string) (edits int, ok bool) {
	if len(term) < len(a.first) || term[:len(a.first)] != a.first || term == a.term {
		return 0, false
	}
	state := a.dfa.Start()
	for i := range len(term) {
		if state = a.dfa.Accept(state, term[i]); !a.dfa.CanMatch(state) {
			return 0, false
		}
	}
	return int(a.dfa.EditDistance(state)), a.dfa.IsMatch(state)
}

// stops returns the near stop words.
func (a *automaton) stops() (near []spelling) {
	for word := range query.StopWords() {
		if edits, ok := a.match(word); ok {
			near = append(near, spelling{weightedTerm{term: word}, edits, stopIDF})
		}
	}
	return near
}
