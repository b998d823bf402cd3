package keyword

import (
	"slices"

	index "github.com/blevesearch/bleve_index_api"

	"cairn/internal/store"
)

// Weights returns what each term of an entry contributes to its score before
// the term's rarity, f/(f + k1*(1-b+b*len/avg)) of the formula in score.go, for
// chunks of avg words on average. A store that multiplies by the query's counts
// and by the inverse document frequency ranks as Index does.
func Weights(e store.TextEntry, avg float64) map[string]float64 {
	freqs, length := Terms(e)
	for term, f := range freqs {
		freqs[term] = f / (f + k1*(1-b+b*float64(length)/avg))
	}
	return freqs
}

// Question is a query taken apart, for a store that holds weights but neither
// positions nor a dictionary. See Dictionary for fuzzy ones.
type Question struct{ query query }

// Ask parses the text of a store.KeywordQuery.
func Ask(s string) Question { return Question{parse(s)} }

// Resolve decides what each dashed word is: a term if held says that the store
// has it with its dash, else an exclusion.
func (q Question) Resolve(held func(term string) (bool, error)) (Question, error) {
	out := q.query
	out.words, out.excluded, out.flags = slices.Clone(out.words), slices.Clone(out.excluded), nil
	for _, f := range q.query.flags {
		is, err := held(f.term)
		if err != nil {
			return q, err
		}
		if is {
			out.words = ask(out.words, f.words)
		} else if len(f.not) > 0 {
			out.excluded = append(out.excluded, f.not)
		}
	}
	return Question{out}, nil
}

// Terms returns the scored terms with their weighted counts.
func (q Question) Terms() map[string]float64 {
	terms := make(map[string]float64, len(q.query.words))
	for _, w := range q.query.words {
		terms[w.term] = w.count
	}
	return terms
}

// Restricted reports whether there are phrases or exclusions, so that Admits
// can say no.
func (q Question) Restricted() bool { return len(q.query.phrases) > 0 || len(q.query.excluded) > 0 }

// Admits reports whether an entry holds every phrase and nothing excluded.
func (q Question) Admits(e store.TextEntry) bool {
	freqs := newEntryTerms(e).freqs
	for _, p := range q.query.phrases {
		if !occurs(freqs, p) {
			return false
		}
	}
	return !slices.ContainsFunc(q.query.excluded, func(p phrase) bool { return occurs(freqs, p) })
}

// occurs reports whether a phrase stands in an entry, by the rules of holding.
func occurs(freqs index.TokenFrequencies, p phrase) bool {
	for _, t := range p {
		if freqs[t.term] == nil {
			return false
		}
	}
	if len(p) == 1 || p[0].kind == stop {
		return true
	}
	for _, first := range freqs[p[0].term].Locations {
		if !slices.ContainsFunc(p[1:], func(t token) bool {
			at := first.Position + t.pos - p[0].pos
			return !slices.ContainsFunc(freqs[t.term].Locations, func(l *index.TokenLocation) bool { return l.Position == at })
		}) {
			return true
		}
	}
	return false
}
