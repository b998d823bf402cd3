package keyword

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// Query is an analysed query.Query. A store that has weights but neither positions nor a
// dictionary can execute it with Resolve, Near, Terms and Admits.
type Query struct {
	terms    []queryTerm  // scored, in order, without repetitions
	phrases  []phrase     // required
	excluded []phrase     // forbidden
	dashed   []dashedWord // terms or exclusions: see Resolve
	// A term that no chunk contains also matches near spellings. With longer, a term matches
	// those that begin with it; with fuzzy too, all match near spellings unless every term has
	// longer ones.
	longer, fuzzy bool
}

// queryTerm is a term of a query with its weighted count.
type queryTerm struct {
	term  string
	count float64
	// written is the word, or the part of a compound, whose stem is the term. It consists
	// of letters and may be misspelt. It is empty for a compound as a whole, a number or
	// an error code.
	written string
}

// phrase is a sequence of consecutive tokens. A compound word is a phrase, too.
type phrase []token

// dashedWord is a word after a single dash. If a document contains it in this form (so
// that the term with its dash is in the index), it is a command's flag, otherwise an
// exclusion. This way, a pasted command finds the pages about its flags.
type dashedWord struct {
	term     string      // with the dash
	asTerms  []queryTerm // the terms of a flag
	asPhrase phrase      // the phrase to exclude
}

// NewQuery analyses q. If the words of q have no terms, the Query is empty.
func NewQuery(q query.Query) Query {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query = true
	out := Query{terms: scoredTerms(a.tokens(q.Words)), longer: q.Prefixes || q.Fuzzy, fuzzy: q.Fuzzy}
	if len(out.terms) == 0 {
		return out
	}
	out.phrases, out.excluded = phrasesOf(a, q.Phrases), phrasesOf(a, q.Excluded)
	for _, w := range q.Dashed {
		out.dashed = append(out.dashed, dashedWord{
			term:     string(lower([]byte{'-'}, w)),
			asTerms:  scoredTerms(a.tokens("-" + w)),
			asPhrase: phraseOf(a, w),
		})
	}
	return out
}

// QueryTerms returns the terms of q, in the form of Analyze, without the exclusions. If q
// has only stop words, it returns them.
func QueryTerms(q query.Query) []string {
	// QueryTerms cannot tell whether a dashed word is a flag, and includes it.
	resolved, _ := NewQuery(q).Resolve(func(string) (bool, error) { return true, nil })
	terms := make([]string, len(resolved.terms))
	for i, t := range resolved.terms {
		terms[i] = t.term
	}
	return terms
}

// scoredTerms returns the terms other than stop words, or the stop words if there are no
// others.
func scoredTerms(tokens []token) []queryTerm {
	var terms, stops []queryTerm
	for _, t := range tokens {
		one := []queryTerm{{term: t.term, count: queryWeight[t.kind]}}
		if (t.kind == word || t.kind == part) && !strings.ContainsFunc(t.text, notLetter) {
			one[0].written = t.text
		}
		if t.kind == stop {
			stops = addTerms(stops, one)
		} else {
			terms = addTerms(terms, one)
		}
	}
	if len(terms) == 0 {
		return stops
	}
	return terms
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// addTerms adds more to terms and sums the counts of equal terms.
func addTerms(terms, more []queryTerm) []queryTerm {
	for _, m := range more {
		i := slices.IndexFunc(terms, func(t queryTerm) bool { return t.term == m.term })
		if i < 0 {
			terms = append(terms, m)
		} else {
			terms[i].count += m.count
			terms[i].written = cmp.Or(terms[i].written, m.written)
		}
	}
	return terms
}

func phrasesOf(a *analyzer, texts []string) []phrase {
	var phrases []phrase
	for _, text := range texts {
		if p := phraseOf(a, text); len(p) > 0 {
			phrases = append(phrases, p)
		}
	}
	return phrases
}

// phraseOf returns the tokens of text that form a phrase: the words, or the stop words if
// there are no others.
func phraseOf(a *analyzer, text string) phrase {
	var words, stops phrase
	for _, t := range a.tokens(text) {
		switch t.kind {
		case word, part, single:
			words = append(words, t)
		case stop:
			stops = append(stops, t)
		}
	}
	if len(words) == 0 {
		return stops
	}
	return words
}

// Resolve converts each dashed word to terms if contains reports that the store contains
// it with its dash, otherwise to an exclusion.
func (q Query) Resolve(contains func(term string) (bool, error)) (Query, error) {
	out := q
	out.terms, out.excluded, out.dashed = slices.Clone(q.terms), slices.Clone(q.excluded), nil
	for _, d := range q.dashed {
		isFlag, err := contains(d.term)
		if err != nil {
			return q, err
		}
		if isFlag {
			out.terms = addTerms(out.terms, d.asTerms)
		} else if len(d.asPhrase) > 0 {
			out.excluded = append(out.excluded, d.asPhrase)
		}
	}
	return out, nil
}

// Terms returns the scored terms with their weighted counts.
func (q Query) Terms() map[string]float64 {
	terms := make(map[string]float64, len(q.terms))
	for _, t := range q.terms {
		terms[t.term] = t.count
	}
	return terms
}

// Restricted reports whether there are phrases or exclusions, so that Admits can return
// false.
func (q Query) Restricted() bool { return len(q.phrases) > 0 || len(q.excluded) > 0 }

// Admits reports whether an entry contains every phrase and nothing excluded.
func (q Query) Admits(e store.KeywordEntry) bool {
	t := newEntryTerms(e)
	words := t.sequence()
	occurs := func(p phrase) bool {
		return !slices.ContainsFunc(p, func(w token) bool { return t.freqs[w.term] == nil }) && (p.anywhere() || p.in(words))
	}
	return !slices.ContainsFunc(q.phrases, func(p phrase) bool { return !occurs(p) }) && !slices.ContainsFunc(q.excluded, occurs)
}
