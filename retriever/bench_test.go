package retriever

import (
	"context"
	"fmt"
	"testing"

	"cairn/internal/store"
)

// BenchmarkRanking is the retriever's own share of a query: blending and
// grouping the most that two legs bring.
func BenchmarkRanking(b *testing.B) {
	var l legs
	for i := range DefaultDepth {
		l.keyword = append(l.keyword, store.Hit{Chunk: fmt.Sprintf("folder/file%d.md#section-%d.0", i%90, i), Score: 40 - float64(i)/10})
		l.cosines = append(l.cosines, .5)
		l.vector = append(l.vector, store.Hit{Chunk: fmt.Sprintf("folder/file%d.md#section-%d.0", i%110, i*2), Score: .9 - float64(i)/1000})
	}
	for b.Loop() {
		bl := blender{mode: Hybrid, vectorWeight: .7, keywordWeight: .3, minSimilarity: .3}
		group(bl.blend(&l))
	}
}

// BenchmarkPage is the rest: reading five documents and describing them.
func BenchmarkPage(b *testing.B) {
	f := open(b, numbered(300), nil)
	ctx := context.Background()
	q := Query{Text: "needle number 7", Mode: Hybrid}
	ranking, err := f.Rank(ctx, q)
	must(b, err)
	for b.Loop() {
		if _, err := f.Present(ctx, q, ranking, 5); err != nil {
			b.Fatal(err)
		}
	}
}
