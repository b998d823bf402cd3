package indexer

import (
	"cmp"
	"slices"

	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// window is a set of pending documents whose chunks are sorted by length and embedded
// together.
type window struct {
	docs []docState
	jobs []pendingChunk
}

// docState is a pending document of a window.
type docState struct {
	mark  docs.Mark
	stale []string
	left  int  // chunks whose vector is not stored yet
	done  bool // writeVectors clears or cleared the mark
}

// pendingChunk is a chunk that needs its vector.
type pendingChunk struct {
	doc   int // index in window.docs
	entry store.VectorEntry
	text  string // for the encoder
}

// readWindow reads pending documents of a turn with paths above after until the window has
// size chunks. A document with more chunks gets a window of its own. Documents, texts and
// marks come from one transaction.
func (x *Indexer) readWindow(after string, size int, inTurn func(path string) bool) (w *window, err error) {
	w = &window{}
	err = x.stores.Docs.View(func(r *docs.Reader) error {
		for {
			pending, err := r.Pending(docs.Vectors, after, pendingPage)
			if err != nil || len(pending) == 0 {
				return err
			}
			for _, p := range pending {
				if !inTurn(p.Path) {
					after = p.Path
					continue
				}
				if len(w.docs) > 0 && len(w.jobs)+p.Chunks > size {
					return nil
				}
				after = p.Path
				w.docs = append(w.docs, docState{mark: p.Mark, stale: p.Stale})
				if p.Deleted {
					continue
				}
				if err := x.addJobs(w, r, p.Path); err != nil {
					return err
				}
			}
		}
	})
	return w, err
}

// addJobs adds the chunks of the last document in the window.
func (x *Indexer) addJobs(w *window, r *docs.Reader, path string) error {
	doc, text, err := readDocument(r, path)
	if err != nil {
		return err
	}
	chunker, err := x.chunker()
	if err != nil {
		return err
	}
	before := len(w.jobs)
	for i := range doc.Sections {
		s := &doc.Sections[i]
		for n := range s.Chunks {
			t := chunker.EmbedText(doc, i, n, text)
			w.jobs = append(w.jobs, pendingChunk{
				doc:   len(w.docs) - 1,
				entry: store.VectorEntry{Chunk: store.ChunkID(doc.Path, s.Anchor, n), Path: doc.Path, Labels: doc.Labels, Key: store.KeyOf(t)},
				text:  t,
			})
		}
	}
	w.docs[len(w.docs)-1].left = len(w.jobs) - before
	return nil
}

// queue holds the texts of a window that have no vector yet.
type queue struct {
	texts [][]*pendingChunk // sorted by length, grouped by text
	back  bool              // the next batch comes from the end
}

// newQueue groups the jobs without a vector by text, so that equal texts are embedded
// once, and sorts the groups by length.
func newQueue(jobs []pendingChunk) *queue {
	groups := map[store.Key]int{}
	q := &queue{}
	for i := range jobs {
		j := &jobs[i]
		if j.entry.Vector != nil {
			continue
		}
		g, ok := groups[j.entry.Key]
		if !ok {
			g = len(q.texts)
			groups[j.entry.Key] = g
			q.texts = append(q.texts, nil)
		}
		q.texts[g] = append(q.texts[g], j)
	}
	slices.SortStableFunc(q.texts, func(a, b []*pendingChunk) int { return cmp.Compare(len(b[0].text), len(a[0].text)) })
	return q
}

// next removes and returns at most size texts; it returns none if the queue is empty.
// Batches of long and of short texts alternate, so that the speed so far predicts the
// remaining time.
func (q *queue) next(size int) (batch [][]*pendingChunk) {
	size = min(size, len(q.texts))
	if q.back {
		at := len(q.texts) - size
		q.texts, batch = q.texts[:at], q.texts[at:]
	} else {
		batch, q.texts = q.texts[:size], q.texts[size:]
	}
	q.back = !q.back
	return batch
}
