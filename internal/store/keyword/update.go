package keyword

import (
	"context"
	"fmt"

	index "github.com/blevesearch/bleve_index_api"
	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
)

// Scorch turns each batch into a segment, in memory of some 500 bytes a word and
// 1,000 a term. The limits bound it, and are large enough that merging costs little. As
// building one uses a single core, writers batches are built concurrently.
const (
	batchEntries = 2048
	batchWords   = 1 << 16
	batchTerms   = 1 << 14
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
	if len(entries)+len(stale) == 0 {
		return ctx.Err()
	}
	x.generation++
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	b, n := index.NewBatch(), 0
	var v store.Vocabulary
	flush := func() {
		full := b
		full.SetInternal(stateKey, x.state())
		g.Go(func() error { return x.scorch.Batch(full) })
		b, n = index.NewBatch(), 0
		v.Reset()
	}
	for _, id := range stale {
		if _, ok := last[id]; !ok {
			b.Delete(id)
		}
	}
	var d *document
	for i, e := range entries {
		if last[e.Chunk] != i {
			continue
		}
		if n == batchEntries || v.Words >= batchWords || v.Distinct >= batchTerms {
			flush()
		}
		if running.Err() != nil {
			break
		}
		d = newDocument(e, d)
		b.Update(d)
		n++
		v.Add(e.Body)
		for _, h := range e.Trail {
			v.Add(h)
		}
	}
	flush()
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
