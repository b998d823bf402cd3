package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/store/qdrant"
)

// TestOverlapWithFlat puts the same queries to the embedded store: the best ten overlap by
// .98 at least. With exact search they are the same, up to the order of cosines that the
// embedded store's 16 bits a coordinate do not tell apart. CAIRN_OVERLAP sets the number of
// chunks; there are a tenth as many queries.
func TestOverlapWithFlat(t *testing.T) {
	chunks := 2000
	if v := os.Getenv("CAIRN_OVERLAP"); v != "" {
		var err error
		if chunks, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	servers(t, func(t *testing.T, addr string) {
		const dim = 384
		rng := rand.New(rand.NewPCG(11, 12))
		// Topics with some texts around each, as in a corpus: neighbours are near.
		topics := make([][]float32, max(1, chunks/20))
		for i := range topics {
			topics[i] = around(rng, make([]float32, dim), 1)
		}
		embedded := flat.Memory(dim)
		// The fake compares with every vector, which may take a busy machine long.
		collection := newName()
		c := dial(t, addr, collection, &qdrant.Options{ReadTimeout: time.Minute})
		approximate := vectored{c.Current().Chunks(dim, "m").Vectors()}
		exactly := vectored{dial(t, addr, collection, &qdrant.Options{Exact: true, ReadTimeout: time.Minute}).Current().Chunks(dim, "m").Vectors()}
		entries := make([]store.VectorEntry, chunks)
		for i := range entries {
			path := fmt.Sprintf("p%05d", i/4)
			entries[i] = store.VectorEntry{Chunk: store.ChunkID(path, "a", i%4), Path: path, Vector: around(rng, topics[rng.IntN(len(topics))], 0.6)}
		}
		for piece := range slices.Chunk(entries, 1000) {
			for _, s := range []store.Vectors{embedded, approximate} {
				if err := s.Update(background, piece, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		same, total, identical, queries := 0, 0, 0, chunks/10
		for range queries {
			q := around(rng, topics[rng.IntN(len(topics))], 0.6)
			var lists [3][]string
			var scores [3][]float64
			for i, s := range []store.Vectors{embedded, approximate, exactly} {
				hits, err := s.Search(background, q, 10, store.Filter{})
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range hits {
					lists[i], scores[i] = append(lists[i], h.Chunk), append(scores[i], h.Score)
				}
			}
			for _, id := range lists[0] {
				total++
				if slices.Contains(lists[1], id) {
					same++
				}
			}
			const alike = 1e-5
			if slices.EqualFunc(scores[0], scores[2], func(x, y float64) bool { return math.Abs(x-y) < alike }) {
				identical++
			}
		}
		t.Logf("%d chunks, %d queries: overlap of the best ten %.4f; with exact search %d lists are identical", chunks, queries, float64(same)/float64(total), identical)
		if float64(same) < .98*float64(total) {
			t.Errorf("overlap %.4f, want .98", float64(same)/float64(total))
		}
		if identical != queries {
			t.Errorf("%d of %d lists are identical with exact search", identical, queries)
		}
	})
}

// around is a random unit vector near v.
func around(rng *rand.Rand, v []float32, spread float64) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(float64(v[i]) + spread*rng.NormFloat64()/19.6) // of length spread in 384 dimensions
	}
	return unit(out)
}
