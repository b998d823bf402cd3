package legs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
)

// Numbers of entries in a batch: to index or to look up in the cache, and to embed.
const (
	updateBatch = 4096
	embedBatch  = 128
)

// item is an entry with its chunk.
type item struct {
	Entry
	chunk string
}

// Sync makes n entries with distinct IDs the contents. It indexes the words of new and
// changed entries, and stores the vectors that the cache has; Embed computes the others.
// entry returns the entry of a number below n. Sync may call it several times. After an
// error the next Sync continues. indexed, which may be nil, receives the progress.
func (l *Legs) Sync(ctx context.Context, n int, entry func(i int) Entry, indexed func(done, total int)) error {
	l.write.Lock()
	defer l.write.Unlock()
	stored, err := l.o.Keyword.Chunks()
	if err != nil {
		return fmt.Errorf("reading keywords: %w", err)
	}
	has := make(map[string]bool, len(stored))
	for _, c := range stored {
		has[c] = true
	}
	chunks := make(map[string]string, n) // by ID
	var changed []int
	words := 0 // entries whose words are not indexed
	for i := range n {
		e := entry(i)
		c := e.chunk()
		if chunks[e.ID] = c; !has[c] {
			words++
		}
		if !has[c] || l.chunks[e.ID] != c {
			changed = append(changed, i)
		}
	}
	current := func(c string) bool { return chunks[idOf(c)] == c }
	if err := l.remove(ctx, slices.DeleteFunc(slices.Collect(maps.Values(l.chunks)), current)); err != nil {
		return err
	}
	stale := slices.DeleteFunc(stored, current)
	for done := 0; len(changed) > 0 || len(stale) > 0; {
		batch := changed[:min(updateBatch, len(changed))]
		items := make([]item, len(batch))
		for k, i := range batch {
			e := entry(i)
			items[k] = item{e, chunks[e.ID]}
		}
		fresh := slices.DeleteFunc(slices.Clone(items), func(m item) bool { return has[m.chunk] })
		if err := l.add(ctx, items, fresh, stale); err != nil {
			return err
		}
		if done += len(fresh); indexed != nil && words > 0 {
			indexed(done, words)
		}
		changed, stale = changed[len(batch):], nil
	}
	return ctx.Err()
}

// Add adds entries and stores the vectors that the cache has. An entry with a known ID must
// have the same texts, and has no effect.
func (l *Legs) Add(ctx context.Context, entries []Entry) error {
	l.write.Lock()
	defer l.write.Unlock()
	var items []item
	for _, e := range entries {
		if l.chunks[e.ID] == "" {
			items = append(items, item{e, e.chunk()})
		}
	}
	return l.add(ctx, items, items, nil)
}

// add adds items. words are the items whose words are not indexed, stale the chunks whose
// words are to be removed.
func (l *Legs) add(ctx context.Context, items, words []item, stale []string) error {
	if l.o.Keyword != nil && len(words)+len(stale) > 0 {
		entries := make([]store.KeywordEntry, len(words))
		for i := range words {
			entries[i] = words[i].Words
			entries[i].Chunk = words[i].chunk
		}
		if err := l.o.Keyword.Update(ctx, entries, stale); err != nil {
			return fmt.Errorf("indexing keywords: %w", err)
		}
	}
	l.mu.Lock()
	for _, m := range items {
		if l.chunks[m.ID] = m.chunk; len(l.vectors) > 0 {
			m.Words = store.KeywordEntry{} // Embed does not need them
			l.missing[m.chunk] = m
		}
	}
	l.mu.Unlock()
	vectors, err := l.vectorsOf(ctx, items, false)
	if err != nil {
		return err
	}
	return l.put(ctx, items, vectors)
}

// remove removes chunks from the vectors.
func (l *Legs) remove(ctx context.Context, chunks []string) error {
	for _, s := range l.vectors {
		if err := s.Update(ctx, nil, chunks); err != nil {
			return fmt.Errorf("removing vectors: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range chunks {
		delete(l.chunks, idOf(c))
		delete(l.missing, c)
	}
	l.changes += min(1, len(chunks))
	return nil
}

// put stores the vectors of the items that are missing, by item and text. It ignores items
// without all vectors.
func (l *Legs) put(ctx context.Context, items []item, vectors [][][]float32) error {
	entries := make([][]store.VectorEntry, len(l.vectors))
	var done []string
	for i, m := range items {
		_, missing := l.missing[m.chunk]
		if !missing || slices.ContainsFunc(vectors[i], func(v []float32) bool { return v == nil }) {
			continue
		}
		done = append(done, m.chunk)
		for n, v := range vectors[i] {
			entries[n] = append(entries[n], store.VectorEntry{Chunk: m.chunk, Path: m.chunk, Vector: v})
		}
	}
	g, running := errgroup.WithContext(ctx)
	for n, s := range l.vectors {
		g.Go(func() error { return s.Update(running, entries[n], nil) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("indexing vectors: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range done {
		delete(l.missing, c)
	}
	l.changes++
	return nil
}

// Embed computes the missing vectors. Other calls can run at the same time. After an error,
// or the end of ctx, the next Embed continues. embedded, which may be nil, receives the
// progress.
func (l *Legs) Embed(ctx context.Context, embedded func(done, total int)) error {
	l.embedding.Lock()
	defer l.embedding.Unlock()
	for order := l.toEmbed(); len(order) > 0; order = l.toEmbed() {
		done := 0
		for batch := range slices.Chunk(order, embedBatch) {
			vectors, err := l.vectorsOf(ctx, batch, true)
			if err != nil {
				return err
			}
			l.write.Lock()
			err = l.put(ctx, batch, vectors)
			l.write.Unlock()
			if err != nil {
				return err
			}
			if done += len(batch); embedded != nil {
				embedded(done, len(order))
			}
		}
	}
	return nil
}

// toEmbed returns the entries without vectors, sorted by length, because a batch of texts
// of similar length needs the least padding.
func (l *Legs) toEmbed() []item {
	l.mu.RLock()
	defer l.mu.RUnlock()
	last := len(l.vectors) - 1
	return slices.SortedFunc(maps.Values(l.missing), func(a, b item) int {
		return cmp.Or(cmp.Compare(len(a.Texts[last]), len(b.Texts[last])), cmp.Compare(a.ID, b.ID))
	})
}

// vectorsOf returns the vectors of items, by item and text. If compute is set, it embeds
// the texts that the cache lacks. Otherwise their vectors are nil.
func (l *Legs) vectorsOf(ctx context.Context, items []item, compute bool) ([][][]float32, error) {
	var texts []string
	var keys []store.Key
	for n := range l.vectors {
		for i := range items {
			texts, keys = append(texts, items[i].Texts[n]), append(keys, store.KeyOf(items[i].Texts[n]))
		}
	}
	all := make([][]float32, len(keys))
	if l.o.Cache != nil && len(keys) > 0 {
		if cached, err := l.o.Cache.Get(keys); err == nil {
			all = cached
		} else {
			l.o.Logger.Warn("reading cached vectors", "error", err)
		}
	}
	if compute {
		if err := l.compute(ctx, texts, keys, all); err != nil {
			return nil, err
		}
	}
	vectors := make([][][]float32, len(items))
	for i := range all {
		vectors[i%len(items)] = append(vectors[i%len(items)], all[i])
	}
	return vectors, nil
}

// compute sets the vectors that are nil, and adds them to the cache. It embeds equal texts
// once.
func (l *Legs) compute(ctx context.Context, texts []string, keys []store.Key, vectors [][]float32) error {
	made := map[store.Key][]float32{}
	var wanted []int
	for i, v := range vectors {
		if _, twice := made[keys[i]]; v == nil && !twice {
			made[keys[i]] = nil
			wanted = append(wanted, i)
		}
	}
	for batch := range slices.Chunk(wanted, 2*embedBatch) {
		batchTexts, batchKeys := make([]string, len(batch)), make([]store.Key, len(batch))
		for k, i := range batch {
			batchTexts[k], batchKeys[k] = texts[i], keys[i]
		}
		some, err := l.o.Embedder.EmbedDocuments(ctx, batchTexts)
		if err != nil {
			return err
		}
		if l.o.Cache != nil {
			if err := l.o.Cache.Put(batchKeys, some); err != nil {
				l.o.Logger.Warn("caching vectors", "error", err)
			}
		}
		for k, key := range batchKeys {
			made[key] = some[k]
		}
	}
	for i, v := range vectors {
		if v == nil {
			vectors[i] = made[keys[i]]
		}
	}
	return nil
}
