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

	"cairn/internal/text/query"
)

// The bounds of a fuzzy search. Shorter terms have too many near spellings. Of many near
// spellings, the nearest and most common ones are the most likely.
const (
	fuzzyMinRunes = 3
	fuzzyMaxTerms = 24 // spellings of one term
)

// stopIDF is the inverse document frequency of a stop word that is near a term of the
// query. A fuzzy search does not match the stop word, but gives the term a lower weight,
// since it may be a misspelt stop word. On misspelt questions this gains .009 nDCG@10 on
// cisi, .004 on cacm and .002 on cranfield, and loses .007 on kubefix.
const stopIDF = 0.3

// spelling is an indexed term that a term of a query may stand for.
type spelling struct {
	weightedTerm
	edits int // 0 for the term as typed
	idf   float64
}

// replacements returns the spellings that replace a query's terms, without repetitions,
// with their weights. similar has the candidates for each term, of which replacements
// takes the nearest ones, then the most common ones. Their weight is proportional to the
// inverse document frequency of the most common one, so that a rare misprint does not
// outweigh the intended word, and to 1/(1+edits). A stop word matches only if it was typed.
func replacements(words []queryTerm, similar [][]spelling) []spelling {
	at := make(map[string]int) // term -> index in all
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

// misspelt reports which terms to replace by near spellings: all terms of a fuzzy search
// unless every term has longer ones, otherwise the words that no chunk contains, if a
// chunk contains another word of the query. similar has the indexed terms for each term:
// the term itself and longer ones.
func (q Query) misspelt(similar [][]spelling) []bool {
	all := q.fuzzy && slices.ContainsFunc(similar, func(near []spelling) bool {
		return !slices.ContainsFunc(near, func(s spelling) bool { return s.edits > 0 })
	})
	some := slices.ContainsFunc(similar, func(of []spelling) bool { return len(of) > 0 })
	out := make([]bool, len(similar))
	for i, of := range similar {
		out[i] = all || some && len(of) == 0 && q.terms[i].written != ""
	}
	return out
}

// vocabulary finds terms of an index.
type vocabulary interface {
	// near adds the terms that match a to found, with their edits, and removes the terms
	// that are not in the index.
	near(a *automaton, found map[string]int) error
	// longer returns the most common terms that begin with term, without term itself.
	longer(term string) ([]string, error)
}

// Near replaces the terms of q by the indexed terms that match them. v finds the terms of the
// store. idfs returns the inverse document frequencies of terms, by which the store multiplies
// weights, without those that no chunk contains.
func (q Query) Near(v vocabulary, idfs func(terms []string) (map[string]float64, error)) (Query, error) {
	known := map[string]float64{} // inverse document frequencies; 0 for a term that no chunk contains
	similar := make([][]spelling, len(q.terms))
	for i, w := range q.terms {
		similar[i] = []spelling{{weightedTerm: weightedTerm{term: w.term}}}
		if !q.longer || !expandable(w.term) {
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

// weigh sets the inverse document frequencies of the spellings, requests those that are
// not known, and removes the spellings that no chunk contains.
func weigh(similar [][]spelling, known map[string]float64, idfs func(terms []string) (map[string]float64, error)) error {
	var ask []string
	for _, s := range slices.Concat(similar...) {
		if _, ok := known[s.term]; !ok && s.idf == 0 {
			known[s.term] = 0
			ask = append(ask, s.term)
		}
	}
	if len(ask) > 0 {
		found, err := idfs(ask)
		if err != nil {
			return err
		}
		maps.Copy(known, found)
	}
	for i, some := range similar {
		for j, s := range some {
			some[j].idf = max(s.idf, known[s.term])
		}
		similar[i] = slices.DeleteFunc(some, func(s spelling) bool { return s.idf <= 0 })
	}
	return nil
}

// neighbours returns the spellings for a term of a query: the term itself, similar terms,
// and similar stop words with stopIDF.
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

// stemsNear returns the stems of the words at one edit from the written form of a term
// that have the same first letter, each with 1 edit. The distance of stems is not enough:
// "refrence" has the stem "refrenc", but "reference" has "refer".
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
	// maxBeginning is the most terms with a common prefix to compare, and maxLonger the
	// most of them to look up.
	maxBeginning = 1024
	maxLonger    = 128
)

// expandable reports whether terms that begin with term may match in its place.
func expandable(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return utf8.RuneCountInString(term) >= fuzzyMinRunes && unicode.IsLetter(r) && Spellable(term)
}

// snapshot is the vocabulary of an index on disk.
type snapshot struct{ *scorch.IndexSnapshot }

// longer implements vocabulary. It compares the first maxBeginning terms.
func (s snapshot) longer(term string) ([]string, error) {
	dict, err := s.FieldDictPrefix(textField, []byte(term))
	if err != nil {
		return nil, err
	}
	terms, err := commonest(dict, maxBeginning)
	terms = slices.DeleteFunc(terms, func(t string) bool { return t == term })
	return terms[:min(len(terms), maxLonger)], err
}

// commonest returns the Spellable terms among the first n terms of dict, most common
// first. It closes dict.
func commonest(dict index.FieldDict, n int) (terms []string, err error) {
	defer dict.Close()
	var found []index.DictEntry
	for range n {
		e, err := dict.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if Spellable(e.Term) {
			found = append(found, *e)
		}
	}
	slices.SortStableFunc(found, func(a, b index.DictEntry) int { return cmp.Compare(b.Count, a.Count) })
	for _, f := range found {
		terms = append(terms, f.Term)
	}
	return terms, nil
}

// Spellings returns the Spellable terms of the index, most common first.
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

// idfs returns the inverse document frequencies of terms, without those that no chunk
// contains.
func (s snapshot) idfs(terms []string, docs uint64) (map[string]float64, error) {
	found := map[string]float64{}
	for _, term := range terms {
		t, err := lookUp(s.IndexSnapshot, term)
		if err != nil {
			return nil, err
		}
		if t.freq > 0 {
			found[term] = idf(docs, t.freq)
		}
	}
	return found, nil
}

// Spellable reports whether a misspelt word may match term. It is false for stop words,
// which would match everything, single characters, and CJK bigrams.
func Spellable(term string) bool {
	r, size := utf8.DecodeRuneInString(term)
	return size < len(term) && !isCJK(r) && !query.IsStopWord(term)
}

// automaton matches the terms that have the same first character as term and differ from
// it by a few insertions, deletions, substitutions and transpositions.
type automaton struct {
	term  string
	first string // first character of term
	dfa   *levenshtein.DFA
}

// builders build automata for one and for two edits. Creating a builder takes
// milliseconds.
var builders = [...]func() (*levenshtein.LevenshteinAutomatonBuilder, error){
	1: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(1, true)
	}),
	2: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(2, true)
	}),
}

// newAutomaton returns an automaton for one edit, or for two if the term has more than
// five letters. It returns nil for a term of fewer than fuzzyMinRunes.
func newAutomaton(term string) (*automaton, error) {
	n := utf8.RuneCountInString(term)
	if n < fuzzyMinRunes {
		return nil, nil
	}
	a, edits := &automaton{term: term, first: firstOf(term)}, 2
	if n <= 5 {
		edits = 1
	}
	b, err := builders[edits]()
	if err == nil {
		a.dfa, err = b.BuildDfa(term, uint8(edits))
	}
	if err != nil {
		return nil, fmt.Errorf("finding spellings near %q: %w", term, err)
	}
	return a, nil
}

// near implements vocabulary.
func (s snapshot) near(a *automaton, found map[string]int) error {
	all, err := s.FieldDictContains(textField)
	if err != nil {
		return err
	}
	for term := range found {
		if ok, err := all.Contains([]byte(term)); err != nil {
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
		end[len(end)-1]++ // does not overflow: UTF-8 has no byte 0xff
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

// match returns the number of edits to another term. ok is false for a.term itself and
// for terms with too many edits.
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

// stops returns the stop words that match.
func (a *automaton) stops() (near []spelling) {
	for word := range query.StopWords() {
		if edits, ok := a.match(word); ok {
			near = append(near, spelling{weightedTerm{term: word}, edits, stopIDF})
		}
	}
	return near
}
