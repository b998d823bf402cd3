package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/qdrant"
	"cairn/internal/store/qdrant/qdranttest"
)

func TestFlat(t *testing.T) {
	disk := func(t *testing.T, dir string, dim int) store.Vectors {
		t.Helper()
		s, err := flat.Open(dir, dim, "model@1", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Run("Memory", func(t *testing.T) {
		testVectors(t, func(t *testing.T, dim int) store.Vectors { return flat.Memory(dim) })
		t.Run("Concurrent", func(t *testing.T) { concurrent(t, flat.Memory(8)) })
	})
	t.Run("Disk", func(t *testing.T) {
		testVectors(t, func(t *testing.T, dim int) store.Vectors { return disk(t, t.TempDir(), dim) })
		t.Run("Concurrent", func(t *testing.T) { concurrent(t, disk(t, t.TempDir(), 8)) })
		t.Run("Reopen", func(t *testing.T) { reopen(t, disk) })
	})
}

func TestKeyword(t *testing.T) {
	testKeyword(t, func(t *testing.T) store.Keyword { return memory(t) })
}

func memory(t *testing.T) *keyword.Index {
	t.Helper()
	x, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func TestQdrantVectors(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("Exact=%v", exact), func(t *testing.T) {
				testVectors(t, func(t *testing.T, dim int) store.Vectors {
					return vectored{dial(t, addr, newName(), &qdrant.Options{Exact: exact}).Current().Chunks(dim, "model@1").Vectors()}
				})
			})
		}
		t.Run("Reopen", func(t *testing.T) {
			collection := newName()
			reopen(t, func(t *testing.T, _ string, dim int) store.Vectors {
				return vectored{dial(t, addr, collection, nil).Current().Chunks(dim, "model@1").Vectors()}
			})
		})
	})
}

func TestQdrantKeyword(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		testKeyword(t, func(t *testing.T) store.Keyword { return index(t, dial(t, addr, newName(), nil)) })
	})
}

// servers runs a test on the fake, in each way the engine is known to behave, and on a real
// server where QDRANT_ADDR names one.
func servers(t *testing.T, test func(t *testing.T, addr string)) {
	for name, o := range map[string]*qdranttest.Options{"Fake": nil, "FakeUnquantised": {Unquantised: true}} {
		t.Run(name, func(t *testing.T) { test(t, qdranttest.New(t, o).Addr()) })
	}
	t.Run("Real", func(t *testing.T) {
		addr := os.Getenv("QDRANT_ADDR")
		if addr == "" {
			t.Skip("QDRANT_ADDR is not set: no real Qdrant to test against")
		}
		test(t, addr)
	})
}

var names atomic.Int64

// newName returns a collection that no other test has.
func newName() string { return fmt.Sprintf("cairn-storetest-%d-%d", os.Getpid(), names.Add(1)) }

// dial connects to addr for a collection, which it removes at the end.
func dial(t *testing.T, addr, collection string, o *qdrant.Options) *qdrant.Client {
	t.Helper()
	target, err := qdrant.ParseTarget("qdrant://" + addr + "/" + collection)
	if err != nil {
		t.Fatal(err)
	}
	c, err := qdrant.Dial(target, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Create()
	t.Cleanup(func() {
		defer c.Close()
		if os.Getenv("QDRANT_ADDR") != addr {
			return
		}
		// The new generation removes the current one, and then itself.
		next, err := c.Next(background)
		if err == nil {
			err = errors.Join(next.Chunks(1, "m").Open(background), next.Documents().Open(background), next.Activate(background), next.Remove(background))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return c
}

// vectored is a vector store whose chunks have no text.
type vectored struct{ qdrant.Vectors }

func (v vectored) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	chunks := make([]qdrant.Chunk, len(entries))
	for i, e := range entries {
		if e.Vector == nil {
			return fmt.Errorf("%s has no vector", e.Chunk)
		}
		chunks[i] = qdrant.Chunk{KeywordEntry: store.KeywordEntry{Chunk: e.Chunk, Path: e.Path, Labels: e.Labels}, Vector: e.Vector}
	}
	return v.Chunks.Update(ctx, chunks, stale, 1)
}

func (v vectored) Position() uint64 { return 0 }

func (v vectored) Close() error { return nil }

// indexed is a keyword index in a store, with the writer's own index of the same chunks,
// of which the average length and the dictionary are, as in package mirror.
type indexed struct {
	qdrant.Keyword
	own *keyword.Index
}

func index(t *testing.T, c *qdrant.Client) *indexed {
	return &indexed{c.Current().Chunks(1, "m").Keyword(), memory(t)}
}

func (x *indexed) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	err := x.own.Update(ctx, entries, stale)
	if err != nil {
		return err
	}
	chunks := make([]qdrant.Chunk, len(entries))
	for i, e := range entries {
		chunks[i].KeywordEntry = e
	}
	average, err := x.own.AverageLength()
	if err == nil {
		err = x.Chunks.Update(ctx, chunks, stale, average)
	}
	if err != nil {
		return err
	}
	terms, err := x.own.Spellings()
	if err != nil {
		return err
	}
	return x.Complete(ctx, terms)
}

func (x *indexed) Position() uint64 { return 0 }

func (x *indexed) Close() error { return nil }
