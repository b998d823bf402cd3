package keyword

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	"github.com/blevesearch/vellum/levenshtein"

	"cairn/internal/query"
)

// width is which terms answer for a term of a query.
type width uint8

const (
	exact     width = iota // itself; near spellings if no chunk holds it
	prefixes               // also those that begin with it
	spellings              // those if every term of the query has some, else near spellings
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

// misspelt reports which terms near spellings replace: all those of a fuzzy search for
// which the longer words do not suffice, else words that no chunk holds when some chunk
// holds another one. similar has what the index holds of each term and of longer words.
func (q Query) misspelt(similar [][]spelling) []bool {
	all := q.width == spellings && !haveOthers(similar)
	some := slices.ContainsFunc(similar, func(of []spelling) bool { return len(of) > 0 })
	out := make([]bool, len(similar))
	for i, of := range similar {
		out[i] = all || some && len(of) == 0 && q.terms[i].written != ""
	}
	return out
}

// vocabulary is what an index knows of its terms.
type vocabulary interface {
	// near adds the terms that match a to found, with their edits, and removes those
	// that the index does not hold.
	near(a *automaton, found map[string]int) error
	// longer returns the commonest terms that begin with term, without term itself.
	longer(term string) ([]string, error)
}

// Near replaces terms by those that q accepts for them. v has the terms of the store, and
// idfs returns the inverse document frequencies of those that some chunk holds, by which
// the store multiplies weights.
func (q Query) Near(v vocabulary, idfs func(terms []string) (map[string]float64, error)) (Query, error) {
	known := map[string]float64{} // rarities; 0 for a term that no chunk holds
	similar := make([][]spelling, len(q.terms))
	for i, w := range q.terms {
		similar[i] = []spelling{{weightedTerm: weightedTerm{term: w.term}}}
		if q.width == exact || !expandable(w.term) {
			continue
		}
		longer, err := v.longer(w.term)
		if err != nil {
			return q, err
		}
		for _, term := range longer {
			similar[i] = append(similar[i], spelling{weightedTerm: weightedTerm{term: term}, edits: 1})
		}
	}
	if err := weigh(similar, known, idfs); err != nil {
		return q, err
	}
	replaced := q.misspelt(similar)
	for i, w := range q.terms {
		if !replaced[i] {
			continue
		}
		var err error
		if similar[i], err = neighbours(v, w); err != nil {
			return q, err
		}
	}
	if err := weigh(similar, known, idfs); err != nil {
		return q, err
	}
	out := q
	out.terms = nil
	for _, s := range replacements(q.terms, similar) {
		out.terms = append(out.terms, queryTerm{term: s.term, count: s.weight / s.idf})
	}
	return out, nil
}

// weigh sets the rarities of the spellings, asks for those that are not known, and removes
// the spellings that no chunk holds.
func weigh(similar [][]spelling, known map[string]float64, idfs func(terms []string) (map[string]float64, error)) error {
	var ask []string
	for _, s := range slices.Concat(similar...) {
		if _, ok := known[s.term]; !ok && s.idf == 0 {
			known[s.term] = 0
			ask = append(ask, s.term)
		}
	}
	if len(ask) > 0 {
		held, err := idfs(ask)
		if err != nil {
			return err
		}
		maps.Copy(known, held)
	}
	for i, some := range similar {
		for j, s := range some {
			some[j].idf = max(s.idf, known[s.term])
		}
		similar[i] = slices.DeleteFunc(some, func(s spelling) bool { return s.idf <= 0 })
	}
	return nil
}

// neighbours returns a term of a query, the similar terms, and the similar stop words
// with their rarity.
func neighbours(v vocabulary, word queryTerm) (near []spelling, err error) {
	a, err := newAutomaton(word.term)
	if err != nil {
		return nil, err
	}
	edits := stemsNear(word)
	if a != nil {
		if err := v.near(a, edits); err != nil {
			return nil, err
		}
		near = a.stops()
	}
	edits[word.term] = 0
	for _, term := range slices.Sorted(maps.Keys(edits)) {
		near = append(near, spelling{weightedTerm: weightedTerm{term: term}, edits: edits[term]})
	}
	return near, nil
}

// stemsNear returns the stems of the words that are one edit from the written form of a
// term and begin as it does, each with 1. Stems alone would not do: "refrence" has the stem
// "refrenc", and "reference" has "refer".
func stemsNear(word queryTerm) map[string]int {
	edits := map[string]int{}
	n := utf8.RuneCountInString(word.written)
	if n <= fuzzyMinRunes || n > maxTermBytes/4 || !ascii(word.written) {
		return edits
	}
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	add := func(parts ...string) {
		w := strings.Join(parts, "")
		if stem := a.stem(w); stem != word.term && Spellable(stem) && !query.IsStopWord(w) {
			edits[stem] = 1
		}
	}
	for s, i := word.written, 1; i <= len(s); i++ {
		for c := 'a'; c <= 'z'; c++ {
			add(s[:i], string(c), s[i:])
			if i < len(s) {
				add(s[:i], string(c), s[i+1:])
			}
		}
		if i < len(s) {
			add(s[:i], s[i+1:])
		}
		if i+1 < len(s) {
			add(s[:i], s[i+1:i+2], s[i:i+1], s[i+2:])
		}
	}
	return edits
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

// snapshot is the vocabulary of an index on disk.
type snapshot struct{ *scorch.IndexSnapshot }

// longer implements vocabulary, with the first maxBeginning terms.
func (s snapshot) longer(term string) ([]string, error) {
	dict, err := s.FieldDictPrefix(textField, []byte(term))
	if err != nil {
		return nil, err
	}
	terms, err := commonest(dict, maxBeginning)
	terms = slices.DeleteFunc(terms, func(t string) bool { return t == term })
	return terms[:min(len(terms), maxLonger)], err
}

// commonest returns those of the first n terms that are Spellable, and closes dict.
func commonest(dict index.FieldDict, n int) (terms []string, err error) {
	defer dict.Close()
	type counted struct {
		term  string
		count uint64
	}
	var found []counted
	for range n {
		e, err := dict.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if Spellable(e.Term) {
			found = append(found, counted{e.Term, e.Count})
		}
	}
	slices.SortStableFunc(found, func(a, b counted) int { return cmp.Compare(b.count, a.count) })
	for _, f := range found {
		terms = append(terms, f.term)
	}
	return terms, nil
}

// Spellings returns the terms for which a misspelt word may stand, the commonest first.
func (x *Index) Spellings() (terms []string, err error) {
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		dict, err := snap.FieldDict(textField)
		if err == nil {
			terms, err = commonest(dict, math.MaxInt)
		}
		return err
	})
	return terms, err
}

// idfs returns the inverse document frequencies of the terms that some chunk holds.
func (s snapshot) idfs(terms []string, docs uint64) (map[string]float64, error) {
	held := map[string]float64{}
	for _, term := range terms {
		t, err := lookUp(s.IndexSnapshot, term)
		if err != nil {
			return nil, err
		}
		if t.freq > 0 {
			held[term] = idf(docs, t.freq)
		}
	}
	return held, nil
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
	a.first = firstOf(term)
	b, err := builders[a.edits]()
	if err == nil {
		a.dfa, err = b.BuildDfa(term, uint8(a.edits))
	}
	if err != nil {
		return nil, fmt.Errorf("finding spellings near %q: %w", term, err)
	}
	return a, nil
}

// near implements vocabulary.
func (s snapshot) near(a *automaton, found map[string]int) error {
	held, err := s.FieldDictContains(textField)
	if err != nil {
		return err
	}
	for term := range found {
		if ok, err := held.Contains([]byte(term)); err != nil {
			return err
		} else if !ok {
			delete(found, term)
		}
	}
	for _, s := range s.Segments() {
		dict, err := s.Segment().Dictionary(textField)
		if err != nil {
			return err
		}
		end := []byte(a.first)
		end[len(end)-1]++ // no byte of UTF-8 is 0xff
		for it := dict.AutomatonIterator(a.dfa, []byte(a.first), end); ; {
			e, err := it.Next()
			if err != nil {
				return err
			}
			if e == nil {
				break
			}
			if n, ok := a.match(e.Term); ok && Spellable(e.Term) && found[e.Term] == 0 {
				found[e.Term] = n
			}
		}
	}
	return nil
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
