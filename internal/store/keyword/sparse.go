package keyword

import "cairn/internal/store"

// Weights returns what each term of an entry contributes to its score before
// the term's rarity, f/(f + k1*(1-b+b*len/avg)) of the formula in score.go, for
// chunks of avg words on average. A store that multiplies by the query's counts
// and by the inverse document frequency ranks as Index does.
func Weights(e store.KeywordEntry, avg float64) map[string]float64 {
	freqs, length := Terms(e)
	for term, f := range freqs {
		freqs[term] = f / (f + k1*(1-b+b*float64(length)/avg))
	}
	return freqs
}
