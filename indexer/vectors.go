package indexer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/vectorcache"
)

// commitInterval is how much embedding is at stake when the process is killed.
const commitInterval = 2 * time.Second

// Vectors brings the vector store up to the documents. While one window is
// embedded, the next one is read and the vectors before it are written: cache,
// vector store, then marks. Documents that change meanwhile stay pending. Calls
// wait for each other.
func (x *Indexer) Vectors(ctx context.Context, progress func(Progress)) error {
	return x.makeVectors(ctx, progress, newTally())
}

func (x *Indexer) makeVectors(ctx context.Context, progress func(Progress), t *tally) error {
	x.vectors.Lock()
	defer x.vectors.Unlock()
	return x.inStep(ctx, docs.Vectors, x.stores.Vectors.Count, func() error { return x.updateVectors(ctx, progress, t) })
}

func (x *Indexer) updateVectors(ctx context.Context, progress func(Progress), t *tally) error {
	counts, err := x.stores.Docs.Counts()
	if err != nil || counts.Vectors.Files == 0 {
		return err
	}
	m := newMeter(progress, x.now, Progress{Phase: PhaseVectors, FilesTotal: counts.Vectors.Files, ChunksTotal: counts.Vectors.Chunks})
	defer m.end()
	// At most four windows are in memory: one being read or waiting, one being
	// embedded, one in the queue and one being written.
	windows := make(chan *window)
	commits := make(chan commit, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(windows)
		return x.readWindows(ctx, windows)
	})
	g.Go(func() error {
		defer close(commits)
		for w := range windows {
			if err := x.embedWindow(ctx, w, commits, t); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for c := range commits {
			completed, err := x.writeVectors(ctx, c)
			if err != nil {
				return err
			}
			m.add(completed, len(c.jobs), c.embedded)
		}
		return nil
	})
	return g.Wait()
}

func (x *Indexer) readWindows(ctx context.Context, windows chan<- *window) error {
	for after := ""; ; {
		w, err := x.readWindow(after)
		if err != nil {
			return fmt.Errorf("reading documents to embed: %w", err)
		}
		if len(w.docs) == 0 {
			return nil
		}
		after = w.docs[len(w.docs)-1].mark.Path
		if x.stores.Cache != nil {
			if err := x.fromCache(w); err != nil {
				return err
			}
		}
		x.reached("vectors read")
		select {
		case windows <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fromCache gives every job of the window its vector if its text was embedded
// before.
func (x *Indexer) fromCache(w *window) error {
	keys := make([]vectorcache.Key, len(w.jobs))
	for i := range w.jobs {
		keys[i] = w.jobs[i].key
	}
	vectors, err := x.stores.Cache.Get(keys)
	if err != nil {
		return fmt.Errorf("reading the cache of embeddings: %w", err)
	}
	for i, v := range vectors {
		w.jobs[i].entry.Vector = v
	}
	return nil
}

// commit is what is written at once: vectors, then the marks of the documents
// they complete.
type commit struct {
	w     *window
	jobs  []*job // with their vectors
	fresh []*job // one for each text embedded just now, for the cache
	// embedded is how many of jobs have a vector that is not from the cache.
	embedded int
}

// embedWindow embeds what the cache does not know and sends commits.
func (x *Indexer) embedWindow(ctx context.Context, w *window, commits chan<- commit, t *tally) error {
	c := commit{w: w}
	for i := range w.jobs {
		if w.jobs[i].entry.Vector != nil {
			c.jobs = append(c.jobs, &w.jobs[i])
		}
	}
	t.do(func(r *Report) { r.FromCache += len(c.jobs) })
	send := func() error {
		select {
		case commits <- c:
			c = commit{w: w}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	flushed := x.now()
	for _, batch := range batches(w.jobs, x.options.BatchTexts) {
		texts := make([]string, len(batch))
		for i, same := range batch {
			texts[i] = same[0].text
		}
		vectors, err := x.embedder.EmbedDocuments(ctx, texts)
		if err != nil {
			return fmt.Errorf("embedding %d texts: %w", len(texts), err)
		}
		if len(vectors) != len(texts) {
			return fmt.Errorf("embedding %d texts: the encoder returned %d vectors", len(texts), len(vectors))
		}
		t.do(func(r *Report) { r.Embedded += len(texts) })
		for i, same := range batch {
			for _, j := range same {
				j.entry.Vector = vectors[i]
			}
			c.fresh = append(c.fresh, same[0])
			c.jobs = append(c.jobs, same...)
			c.embedded += len(same)
		}
		x.reached("vectors embedded")
		if now := x.now(); now.Sub(flushed) >= commitInterval {
			flushed = now
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send() // even an empty one: it completes documents without chunks
}

// writeVectors makes a commit durable and returns the number of documents it
// completed. The marks go last: without them the work is done again, from the
// cache.
func (x *Indexer) writeVectors(ctx context.Context, c commit) (completed int, err error) {
	if x.stores.Cache != nil && len(c.fresh) > 0 {
		keys := make([]vectorcache.Key, len(c.fresh))
		vectors := make([][]float32, len(c.fresh))
		for i, j := range c.fresh {
			keys[i], vectors[i] = j.key, j.entry.Vector
		}
		if err := x.stores.Cache.Put(keys, vectors); err != nil {
			return 0, fmt.Errorf("writing the cache of embeddings: %w", err)
		}
		x.reached("vectors cached")
	}
	entries := make([]store.VectorEntry, len(c.jobs))
	for i, j := range c.jobs {
		entries[i] = j.entry
		c.w.docs[j.doc].left--
	}
	var marks []docs.Mark
	var stale []string
	for i := range c.w.docs {
		if d := &c.w.docs[i]; d.left == 0 && !d.done {
			d.done = true
			marks = append(marks, d.mark)
			stale = append(stale, d.stale...)
		}
	}
	if err := x.stores.Vectors.Update(ctx, entries, stale); err != nil {
		return 0, fmt.Errorf("updating the vectors: %w", err)
	}
	x.reached("vectors updated")
	if err := x.stores.Docs.Done(ctx, docs.Vectors, marks); err != nil {
		return 0, fmt.Errorf("clearing marks of the vectors: %w", err)
	}
	x.reached("vectors done")
	return len(marks), nil
}
