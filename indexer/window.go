package indexer

import (
	"cmp"
	"slices"

	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// window is a number of pending documents whose chunks are sorted by length and
// embedded together.
type window struct {
	docs []docState
	jobs []pendingChunk
}

// docState is a pending document of a window.
type docState struct {
	mark  docs.Mark
	stale []string
	left  int  // chunks whose vector is not stored yet
	done  bool // writeVectors clears, or has cleared, the mark
}

// pendingChunk is a chunk that needs its vector.
type pendingChunk struct {
	doc   int // in window.docs
	entry store.VectorEntry
	text  string // for the encoder
}

// readWindow reads pending documents above after until the window has size chunks. A
// single document larger than a window is a window of its own. Document, text and
// mark belong to one transaction.
func (x *Indexer) readWindow(after string, size int) (w *window, err error) {
	w = &window{}
	err = x.stores.Docs.View(func(r *docs.Reader) error {
		for {
			pending, err := r.Pending(docs.Vectors, after, pendingPage)
			if err != nil || len(pending) == 0 {
				return err
			}
			for _, p := range pending {
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

// addJobs appends the chunks of the document that was added last.
func (x *Indexer) addJobs(w *window, r *docs.Reader, path string) error {
	doc, text, err := readDocument(r, path)
	if err != nil {
		return err
	}
	before := len(w.jobs)
	for i := range doc.Sections {
		s := &doc.Sections[i]
		for n := range s.Chunks {
			t := x.chunker.EmbedText(doc, i, n, text)
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

// queue holds the texts of a window that lack a vector, in the order in which
// they are embedded.
type queue struct {
	texts [][]*pendingChunk // sorted by length; jobs of equal text together
	back  bool              // which end is next
}

// newQueue groups jobs that lack a vector by text, so that equal texts are
// embedded once, and sorts the groups by length.
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

// next takes at most size texts out of the queue; none means that it is empty.
// Long and short ones take turns, so that the speed so far predicts the remaining
// time.
func (q *queue) next(size int) [][]*pendingChunk {
	size = min(size, len(q.texts))
	from, to := 0, size
	if q.back {
		from, to = len(q.texts)-size, len(q.texts)
	}
	batch := q.texts[from:to]
	if q.back {
		q.texts = q.texts[:from]
	} else {
		q.texts = q.texts[to:]
	}
	q.back = !q.back
	return batch
}
