package indexer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/outline"
)

// The time between two commits, which is the most embedding that a killed process loses.
// It is short at first, since many sessions last a few seconds. It grows because each
// commit waits for the disk.
const (
	firstCommit   = time.Second
	longestCommit = 4 * time.Second
)

// A cancelled run loses the batch that is being embedded. The first batches are
// small, and they grow only if the encoder is fast, so that a slow machine completes
// some within a short session.
const (
	firstBatch  = 8   // texts
	firstWindow = 128 // chunks; the encoder waits until the window is read
	quickBatch  = 400 * time.Millisecond
)

// lastWrite is how long a cancelled run continues to write vectors that it has. It does
// not interrupt a write that waits for the disk.
const lastWrite = 250 * time.Millisecond

// Vectors updates the vector store to match the documents. While one window is
// embedded, the next window is read and the vectors of the previous one are written: to
// the cache, to the vector store, and then the marks. Documents that change during the
// call stay pending. Calls wait for each other.
func (x *Indexer) Vectors(ctx context.Context, progress func(job.Progress)) error {
	return x.makeVectors(ctx, progress, &Report{})
}

func (x *Indexer) makeVectors(ctx context.Context, progress func(job.Progress), t *Report) error {
	x.vectors.Lock()
	defer x.vectors.Unlock()
	return x.reconcile(ctx, docs.Vectors, x.stores.Vectors, func() error { return x.updateVectors(ctx, progress, t) })
}

func (x *Indexer) updateVectors(ctx context.Context, progress func(job.Progress), t *Report) error {
	counts, err := x.stores.Docs.Counts()
	if err != nil || counts.Vectors.Files == 0 {
		return err
	}
	m := newProgressReporter(progress, x.now, PhaseVectors, counts.Vectors.Files, counts.Vectors.Chunks)
	defer m.flush()
	// At most four windows are in memory: one being read or waiting, one being
	// embedded, one in the queue and one being written.
	windows := make(chan *window)
	commits := make(chan commit, 1)
	g, ctx := errgroup.WithContext(ctx)
	writing, stop := outlive(ctx)
	defer stop()
	p := newBatchSize(x.options.BatchTexts)
	g.Go(func() error {
		defer close(windows)
		return x.readWindows(ctx, windows)
	})
	g.Go(func() error {
		defer close(commits)
		for w := range windows {
			if err := x.embedWindow(ctx, w, p, t, func(c commit) error {
				select {
				case commits <- c:
					return nil
				case <-writing.Done():
					return context.Cause(writing)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for c := range commits {
			completed, err := x.writeVectors(writing, c)
			if err != nil {
				return err
			}
			m.add(completed, len(c.jobs))
		}
		return nil
	})
	return g.Wait()
}

// readWindows reads the pending documents in three turns: the files that searches waited
// for, then all others, and test code last.
func (x *Indexer) readWindows(ctx context.Context, windows chan<- *window) error {
	wanted := x.preferences.takeWanted()
	size := min(firstWindow, x.options.WindowChunks)
	for turn := range 3 {
		if turn == 0 && len(wanted) == 0 {
			continue
		}
		if err := x.readTurn(ctx, windows, &size, func(path string) bool {
			switch {
			case wanted[path]:
				return turn == 0
			case outline.IsTest(path):
				return turn == 2
			}
			return turn == 1
		}); err != nil {
			return err
		}
	}
	return nil
}

func (x *Indexer) readTurn(ctx context.Context, windows chan<- *window, size *int, inTurn func(path string) bool) error {
	for after := ""; ; *size = min(2**size, x.options.WindowChunks) {
		w, err := x.readWindow(after, *size, inTurn)
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

// fromCache sets the vectors of the jobs whose text is in the cache.
func (x *Indexer) fromCache(w *window) error {
	keys := make([]store.Key, len(w.jobs))
	for i := range w.jobs {
		keys[i] = w.jobs[i].entry.Key
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

// commit is a set of vectors to write together, followed by the marks of the documents
// that they complete.
type commit struct {
	w     *window
	jobs  []*pendingChunk // with their vectors
	fresh []*pendingChunk // one for each text that the encoder embedded, for the cache
}

// embedWindow embeds the texts without a vector and sends commits. If it is cancelled or
// the encoder fails, it sends the vectors that it has before it returns.
func (x *Indexer) embedWindow(ctx context.Context, w *window, p *batchSize, t *Report, send func(commit) error) error {
	c := commit{w: w}
	for i := range w.jobs {
		if w.jobs[i].entry.Vector != nil {
			c.jobs = append(c.jobs, &w.jobs[i])
		}
	}
	t.FromCache += len(c.jobs)
	q := newQueue(w.jobs)
	for batch := q.next(p.texts); len(batch) > 0; batch = q.next(p.texts) {
		begin := x.now()
		if err := x.embedBatch(ctx, batch); err != nil {
			if len(c.fresh) > 0 {
				// The writer returns its own error.
				_ = send(c)
			}
			return err
		}
		t.Embedded += len(batch)
		for _, same := range batch {
			c.fresh = append(c.fresh, same[0])
			c.jobs = append(c.jobs, same...)
		}
		x.reached("vectors embedded")
		if p.embedded(x.now().Sub(begin)) {
			if err := send(c); err != nil {
				return err
			}
			c = commit{w: w}
		}
	}
	return send(c) // even if empty, since it completes documents without chunks
}

// embedBatch sets the vector of every job of a batch.
func (x *Indexer) embedBatch(ctx context.Context, batch [][]*pendingChunk) error {
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
	for i, same := range batch {
		for _, j := range same {
			j.entry.Vector = vectors[i]
		}
	}
	return nil
}

// batchSize adapts the size of batches and the interval between commits to the
// speed of the encoder.
type batchSize struct {
	texts, most int           // size of the next batch, and the largest size
	interval    time.Duration // embedding time between two commits
	since       time.Duration // embedding time since the last commit
}

func newBatchSize(most int) *batchSize {
	return &batchSize{texts: min(firstBatch, most), most: most, interval: firstCommit}
}

// embedded records how long a batch took and reports whether a commit is due.
func (p *batchSize) embedded(took time.Duration) (commit bool) {
	if took < quickBatch {
		p.texts = min(2*p.texts, p.most)
	}
	if p.since += took; p.since < p.interval {
		return false
	}
	p.since = 0
	p.interval = min(p.interval+p.interval/2, longestCommit)
	return true
}

// outlive returns a context that ends lastWrite after ctx does, with the cause of ctx.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWrite, func() { cancel(context.Cause(ctx)) })
	})
	return late, func() {
		stop()
		cancel(context.Canceled)
	}
}

// writeVectors makes a commit durable and returns the number of documents that it
// completed. It clears the marks last, so that after a crash the next run repeats the
// commit from the cache.
func (x *Indexer) writeVectors(ctx context.Context, c commit) (completed int, err error) {
	if x.stores.Cache != nil && len(c.fresh) > 0 {
		keys := make([]store.Key, len(c.fresh))
		vectors := make([][]float32, len(c.fresh))
		for i, j := range c.fresh {
			keys[i], vectors[i] = j.entry.Key, j.entry.Vector
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
	// The store writes only what an id does not share with the one before.
	slices.SortFunc(entries, func(a, b store.VectorEntry) int { return cmp.Compare(a.Chunk, b.Chunk) })
	var marks []docs.Mark
	var stale []string
	for i := range c.w.docs {
		if d := &c.w.docs[i]; d.left == 0 && !d.done {
			d.done = true
			marks = append(marks, d.mark)
			stale = append(stale, d.stale...)
		}
	}
	if err = x.held(); err == nil {
		err = x.stores.Vectors.Update(ctx, entries, stale)
	}
	if err != nil {
		return 0, fmt.Errorf("updating the vectors: %w", err)
	}
	x.reached("vectors updated")
	if err := x.stores.Docs.Done(ctx, docs.Vectors, marks, x.stores.Vectors.Position()); err != nil {
		return 0, fmt.Errorf("clearing marks of the vectors: %w", err)
	}
	x.reached("vectors done")
	return len(marks), nil
}
