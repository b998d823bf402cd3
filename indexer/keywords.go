package indexer

import (
	"context"
	"fmt"

	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// The keyword index builds two segments at a time of some 4,000 chunks; one
// batch feeds both. Its text is bounded too, since chunks are held in memory.
const (
	keywordEntries = 8192
	keywordBytes   = 16 << 20
	pendingPage    = 512 // marks read at a time
)

// Keywords brings the keyword index up to the documents: every pending one is
// handed over in batches, and its mark cleared when the index holds it.
// Documents that change meanwhile stay pending. Calls wait for each other.
func (x *Indexer) Keywords(ctx context.Context, progress func(Progress)) error {
	x.keywords.Lock()
	defer x.keywords.Unlock()
	return x.inStep(ctx, docs.Text, x.stores.Text.Count, func() error { return x.updateKeywords(ctx, progress) })
}

func (x *Indexer) updateKeywords(ctx context.Context, progress func(Progress)) error {
	counts, err := x.stores.Docs.Counts()
	if err != nil || counts.Text.Files == 0 {
		return err
	}
	m := newMeter(progress, x.now, Progress{Phase: PhaseKeywords, FilesTotal: counts.Text.Files, ChunksTotal: counts.Text.Chunks})
	defer m.end()
	for after := ""; ; {
		b, err := x.keywordBatch(after)
		if err != nil {
			return fmt.Errorf("reading documents for the keyword index: %w", err)
		}
		if len(b.marks) == 0 {
			return nil
		}
		after = b.marks[len(b.marks)-1].Path
		x.reached("keywords read")
		if err := x.stores.Text.Update(ctx, b.entries, b.stale); err != nil {
			return fmt.Errorf("updating the keyword index: %w", err)
		}
		x.reached("keywords updated")
		if err := x.stores.Docs.Done(ctx, docs.Text, b.marks); err != nil {
			return fmt.Errorf("clearing marks of the keyword index: %w", err)
		}
		x.reached("keywords done")
		m.add(len(b.marks), len(b.entries), 0)
	}
}

// keywordBatch is a number of pending documents as the keyword index takes them.
type keywordBatch struct {
	marks   []docs.Mark
	entries []store.TextEntry
	stale   []string
}

// keywordBatch reads pending documents above after until a batch is full.
// Document, text and mark are of one moment.
func (x *Indexer) keywordBatch(after string) (b keywordBatch, err error) {
	err = x.stores.Docs.View(func(r *docs.Reader) error {
		size := 0
		for {
			pending, err := r.Pending(docs.Text, after, pendingPage)
			if err != nil || len(pending) == 0 {
				return err
			}
			for _, p := range pending {
				after = p.Path
				b.marks = append(b.marks, p.Mark)
				b.stale = append(b.stale, p.Stale...)
				if !p.Deleted {
					doc, text, err := readDocument(r, p.Path)
					if err != nil {
						return err
					}
					for i := range doc.Sections {
						for n := range doc.Sections[i].Chunks {
							e := x.chunker.TextEntry(doc, i, n, text)
							size += len(e.Body)
							b.entries = append(b.entries, e)
						}
					}
				}
				if len(b.entries) >= keywordEntries || size >= keywordBytes {
					return nil
				}
			}
		}
	})
	return b, err
}

// readDocument returns the document at path with its text. A mark without
// either is a damaged store.
func readDocument(r *docs.Reader, path string) (*store.Document, string, error) {
	doc, err := r.Document(path)
	if err != nil {
		return nil, "", err
	}
	text := r.Text(path)
	if doc == nil || text == nil {
		return nil, "", &docs.CorruptError{Path: path, Reason: "it is pending but not stored"}
	}
	return doc, string(text), nil
}
