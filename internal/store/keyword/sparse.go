package keyword

import "cairn/internal/store"

// Weights returns the weight of each term of an entry without the inverse document
// frequency, f/(f + k1*(1-b+b*len/avg)) in the formula of score.go, where avg is the
// average number of words per chunk. A store that multiplies the weights by the query's
// counts and the inverse document frequencies ranks as Index does.
func Weights(e store.KeywordEntry, avg float64) map[string]float64 {
	freqs, length := Terms(e)
	for term, f := range freqs {
		freqs[term] = f / (f + k1*(1-b+b*float64(length)/avg))
	}
	return freqs
}
