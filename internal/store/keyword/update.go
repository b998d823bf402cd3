package keyword

import (
	"context"
	"fmt"

	index "github.com/blevesearch/bleve_index_api"
	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
)

// Scorch turns each batch into a segment. batchEntries bounds the memory of one
// and is large enough that merging costs little. As building one uses a single
// core, writers batches are built concurrently.
const (
	batchEntries = 8192
	writers      = 2
)

// Update applies one batch: it removes stale chunks and adds or replaces entries.
// An entry wins over a stale id and over an earlier entry of the same chunk. When
// Update returns without error, the batch is durable and searches see it; before
// that they may see any part of it. A large batch is the fastest way to index: it
// is cut into pieces that are built concurrently.
func (x *Index) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	x.write.Lock()
	defer x.write.Unlock()
	x.open.RLock()
	defer x.open.RUnlock()
	if x.done {
		return ErrClosed
	}
	if x.readOnly {
		return fmt.Errorf("updating keyword index %s: opened read-only", x.dir)
	}

	if err := x.checkSegments(); err != nil { // merging would give damaged ones a new checksum
		return fmt.Errorf("updating keyword index %s: %w", x.dir, err)
	}

	last := make(map[string]int, len(entries)) // chunk -> its last entry
	for i, e := range entries {
		if e.Chunk == "" {
			return fmt.Errorf("updating keyword index %s: entry %d has no chunk id", x.dir, i)
		}
		last[e.Chunk] = i
	}
	var batches []*index.Batch
	b := index.NewBatch()
	for _, id := range stale {
		if _, ok := last[id]; !ok {
			b.Delete(id)
		}
	}
	n := 0
	for i, e := range entries {
		if last[e.Chunk] != i {
			continue
		}
		if n == batchEntries {
			batches = append(batches, b)
			b, n = index.NewBatch(), 0
		}
		b.Update(newDocument(e))
		n++
	}
	if len(b.IndexOps) > 0 {
		batches = append(batches, b)
	}

	if len(batches) == 0 {
		return ctx.Err()
	}

	x.generation++
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, b := range batches {
		if running.Err() != nil {
			break
		}
		b.SetInternal(stateKey, x.state())
		g.Go(func() error { return x.scorch.Batch(b) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("updating keyword index %s: %w", x.dir, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.writeState(); err != nil {
		return fmt.Errorf("updating keyword index: %w", err)
	}
	return nil
}

// Optimize merges the index into one segment, for the fastest queries. It pays
// after a large indexing run; later updates merge by themselves.
func (x *Index) Optimize(ctx context.Context) error {
	x.write.Lock()
	defer x.write.Unlock()
	x.open.RLock()
	defer x.open.RUnlock()
	if x.done {
		return ErrClosed
	}
	if x.readOnly || x.dir == "" {
		return nil
	}
	if err := x.scorch.ForceMerge(ctx, nil); err != nil {
		return fmt.Errorf("optimizing keyword index %s: %w", x.dir, err)
	}
	return ctx.Err()
}
