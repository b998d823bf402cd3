package flat_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"cairn/internal/store"
	"cairn/internal/store/flat"
)

// A store in a folder keeps its vectors over restarts.
func Example() {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := flat.Open(dir, 3, "model", nil)
	if err != nil {
		log.Fatal(err)
	}
	entries := []store.VectorEntry{
		{Chunk: "oak.md#.0", Path: "oak.md", Vector: []float32{1, 0, 0}},
		{Chunk: "elm.md#.0", Path: "elm.md", Vector: []float32{0.8, 0.6, 0}},
		{Chunk: "ash.md#.0", Path: "ash.md", Vector: []float32{0, 0, 1}},
	}
	if err := s.Update(ctx, entries, nil); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
	if s, err = flat.Open(dir, 3, "model", nil); err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	hits, err := s.Search(ctx, []float32{1, 0, 0}, 2, store.Filter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%s %.2f\n", h.Chunk, h.Score)
	}
	// Output:
	// oak.md#.0 1.00
	// elm.md#.0 0.80
}

// A store in memory has no files. Scores returns the cosine of given chunks.
func ExampleMemory() {
	ctx := context.Background()
	s := flat.Memory(2)
	defer s.Close()
	entry := store.VectorEntry{Chunk: "a.md#.0", Path: "a.md", Vector: []float32{0, 1}}
	if err := s.Update(ctx, []store.VectorEntry{entry}, nil); err != nil {
		log.Fatal(err)
	}
	scores, err := s.Scores(ctx, []float32{0, 1}, []string{"a.md#.0"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f\n", scores[0])
	// Output: 1.00
}
