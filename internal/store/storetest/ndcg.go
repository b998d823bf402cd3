package storetest

import (
	"maps"
	"math"
	"slices"
	"testing"

	"cairn/internal/store"
)

// NDCG returns nDCG@10 of hits as trec_eval computes it, where the rank of a document is
// that of its best chunk. grades holds the gains of the relevant documents, at least one.
func NDCG(t *testing.T, hits []store.Hit, grades map[string]float64) float64 {
	t.Helper()
	seen := map[string]bool{}
	var gains []float64
	for _, h := range hits {
		doc, _, _, ok := store.SplitChunkID(h.Chunk)
		if !ok {
			t.Fatalf("hit %q is no chunk id", h.Chunk)
		}
		if !seen[doc] {
			seen[doc] = true
			gains = append(gains, grades[doc])
		}
	}
	ideal := slices.Sorted(maps.Values(grades))
	slices.Reverse(ideal)
	return dcg(gains) / dcg(ideal)
}

func dcg(gains []float64) float64 {
	var sum float64
	for i, g := range gains[:min(10, len(gains))] {
		sum += g / math.Log2(float64(i)+2)
	}
	return sum
}
