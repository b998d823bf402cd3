package storetest

import (
	"fmt"
	"testing"

	"cairn/internal/store"
)

func TestNDCG(t *testing.T) {
	hit := func(path string, chunk int) store.Hit { return store.Hit{Chunk: store.ChunkID(path, "", chunk)} }
	hits := []store.Hit{hit("a", 2), hit("a", 0), hit("b", 0), hit("c", 1)}
	// a gains 3, b nothing, c 1 in the third place; at best c came second, and d
	// was never found: (3 + 1/log2(4)) / (3 + 1/log2(3) + 1/log2(4)).
	got := NDCG(t, hits, map[string]float64{"a": 3, "c": 1, "d": 1})
	if got, want := fmt.Sprintf("%.4f", got), "0.8473"; got != want {
		t.Errorf("NDCG = %s, want %s", got, want)
	}
	if got := NDCG(t, hits[:1], map[string]float64{"a": 2}); got != 1 {
		t.Errorf("NDCG of the one relevant document = %g, want 1", got)
	}
}
