package legs

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
)

// Numbers of entries in a batch: to index, to look up in the cache, and to embed.
const (
	updateBatch = 4096
	cachedBatch = 512
	embedBatch  = 128
)

// item is an entry to embed.
type item struct {
	chunk string
	texts []string
}

// Sync makes entries, which have distinct IDs, the contents. It indexes the words of new and
// changed entries, and stores the vectors that the cache has; Embed computes the others.
// After an error the next Sync continues. indexed, which may be nil, receives the progress.
func (l *Legs) Sync(ctx context.Context, entries iter.Seq[Entry], indexed func(done, total int)) error {
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
	chunks := map[string]string{}  // by ID
	var words []store.KeywordEntry // that are not indexed
	var changed []item
	for e := range entries {
		c := e.chunk()
		if chunks[e.ID] = c; !has[c] {
			e.Words.Chunk = c
			words = append(words, e.Words)
		}
		if l.chunks[e.ID] != c {
			changed = append(changed, item{c, e.Texts})
		}
	}
	current := func(c string) bool { return chunks[idOf(c)] == c }
	if err := l.remove(ctx, slices.DeleteFunc(slices.Collect(maps.Values(l.chunks)), current)); err != nil {
		return err
	}
	stale := slices.DeleteFunc(stored, current)
	for done := 0; done < len(words) || len(stale) > 0; {
		batch := words[done:min(done+updateBatch, len(words))]
		if err := l.updateWords(ctx, batch, stale); err != nil {
			return err
		}
		if stale, done = nil, done+len(batch); indexed != nil {
			indexed(done, len(words))
		}
	}
	if err := l.fill(ctx, changed); err != nil {
		return err
	}
	return ctx.Err()
}

// Add adds entries and stores the vectors that the cache has. An entry with a known ID must
// have the same texts, and has no effect.
func (l *Legs) Add(ctx context.Context, entries []Entry) error {
	l.write.Lock()
	defer l.write.Unlock()
	var words []store.KeywordEntry
	var items []item
	for _, e := range entries {
		if l.chunks[e.ID] == "" {
			e.Words.Chunk = e.chunk()
			words, items = append(words, e.Words), append(items, item{e.Words.Chunk, e.Texts})
		}
	}
	if l.o.Keyword != nil {
		if err := l.updateWords(ctx, words, nil); err != nil {
			return err
		}
	}
	return l.fill(ctx, items)
}

func (l *Legs) updateWords(ctx context.Context, words []store.KeywordEntry, stale []string) error {
	if err := l.o.Keyword.Update(ctx, words, stale); err != nil {
		return fmt.Errorf("indexing keywords: %w", err)
	}
	return nil
}

// fill adds items and their vectors in the cache. Items without vectors become missing.
func (l *Legs) fill(ctx context.Context, items []item) error {
	for batch := range slices.Chunk(items, cachedBatch) {
		l.mu.Lock()
		for _, m := range batch {
			if l.chunks[idOf(m.chunk)] = m.chunk; len(l.vectors) > 0 {
				l.missing[m.chunk] = m.texts
			}
		}
		l.mu.Unlock()
		vectors, err := l.vectorsOf(ctx, batch, false)
		if err == nil {
			err = l.put(ctx, batch, vectors)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	items := make([]item, 0, len(l.missing))
	for c, texts := range l.missing {
		items = append(items, item{c, texts})
	}
	slices.SortFunc(items, func(a, b item) int {
		last := len(a.texts) - 1
		return cmp.Or(cmp.Compare(len(a.texts[last]), len(b.texts[last])), cmp.Compare(a.chunk, b.chunk))
	})
	return items
}

// vectorsOf returns the vectors of items, by item and text. If compute is set, it embeds
// the texts that the cache lacks. Otherwise their vectors are nil.
func (l *Legs) vectorsOf(ctx context.Context, items []item, compute bool) ([][][]float32, error) {
	var texts []string
	var keys []store.Key
	for n := range l.vectors {
		for i := range items {
			texts, keys = append(texts, items[i].texts[n]), append(keys, store.KeyOf(items[i].texts[n]))
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
	wanted, made := map[store.Key]string{}, map[store.Key][]float32{}
	for i, v := range vectors {
		if v == nil {
			wanted[keys[i]] = texts[i]
		}
	}
	for batch := range slices.Chunk(slices.Collect(maps.Keys(wanted)), 2*embedBatch) {
		batchTexts := make([]string, len(batch))
		for i, key := range batch {
			batchTexts[i] = wanted[key]
		}
		some, err := l.o.Embedder.EmbedDocuments(ctx, batchTexts)
		if err != nil {
			return err
		}
		if l.o.Cache != nil {
			if err := l.o.Cache.Put(batch, some); err != nil {
				l.o.Logger.Warn("caching vectors", "error", err)
			}
		}
		for i, key := range batch {
			made[key] = some[i]
		}
	}
	for i, v := range vectors {
		if v == nil {
			vectors[i] = made[keys[i]]
		}
	}
	return nil
}
