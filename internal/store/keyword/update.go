package keyword

import (
	"context"
	"fmt"

	index "github.com/blevesearch/bleve_index_api"
	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
)

// The limits of a batch. Scorch builds a segment from each batch in memory, about 500
// bytes per word and 1,000 per distinct term. The limits bound this memory, but are large
// enough that merging takes little time. Since building a segment uses one core, writers
// segments are built concurrently.
const (
	batchEntries = 2048
	batchWords   = 1 << 15
	batchTerms   = 1 << 14
	writers      = 2
)

// Update applies one batch: it removes stale chunks and adds or replaces entries. An entry
// takes precedence over a stale id and over an earlier entry for the same chunk. When
// Update returns without error, the batch is durable and searchable. Concurrent searches
// may see any part of it. Large batches are indexed fastest, since Update divides them
// into segments that it builds concurrently.
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

	if err := x.checkSegments(); err != nil { // a merge would write a new checksum for damaged bytes
		return fmt.Errorf("updating keyword index %s: %w", x.dir, err)
	}

	last := make(map[string]int, len(entries)) // chunk -> index of its last entry
	for i, e := range entries {
		if e.Chunk == "" {
			return fmt.Errorf("updating keyword index %s: entry %d has no chunk id", x.dir, i)
		}
		last[e.Chunk] = i
	}
	if len(entries)+len(stale) == 0 {
		return ctx.Err()
	}
	x.generation = store.NextPosition(x.generation)
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

// Optimize merges the index into one segment, which makes queries as fast as possible. It
// is worthwhile after a large indexing run; later updates merge automatically.
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
