package indexer

import (
	"context"
	"errors"
	"fmt"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// The bounds of a batch for the keyword index. keywordEntries fills two segments of about
// 4,000 chunks, which the index builds concurrently. keywordBytes bounds memory.
const (
	keywordEntries = 8192
	keywordBytes   = 16 << 20
	pendingPage    = 512 // marks to read at a time
)

// An optimizer merges its segments after a run that wrote most of the index, of at most
// mergedChunks chunks. It takes some .03 ms a chunk.
type optimizer interface{ Optimize(context.Context) error }

const mergedChunks = 1 << 16

// Keywords updates the keyword index with the pending documents in batches, and clears
// the marks of each batch. Documents that change during the call stay pending. Calls wait
// for each other.
func (x *Indexer) Keywords(ctx context.Context, progress func(job.Progress)) error {
	x.keywords.Lock()
	defer x.keywords.Unlock()
	return x.reconcile(ctx, docs.Keyword, x.stores.Keyword, func() error { return x.updateKeywords(ctx, progress) })
}

func (x *Indexer) updateKeywords(ctx context.Context, progress func(job.Progress)) error {
	counts, err := x.stores.Docs.Counts()
	if err != nil {
		return err
	}
	if pending := counts.Keyword; pending.Files > 0 {
		m := newProgressReporter(progress, x.now, PhaseKeywords, pending.Files, pending.Chunks)
		defer m.flush()
		if err := x.indexKeywords(ctx, m, nil); err != nil {
			return err
		}
		if o, ok := x.stores.Keyword.(optimizer); ok && pending.Chunks > counts.Chunks/2 && pending.Chunks <= mergedChunks {
			if err := o.Optimize(ctx); err != nil {
				return err
			}
		}
	}
	x.preferences.end()
	return nil
}

// keywordsOf updates the keyword index with the pending documents among paths.
func (x *Indexer) keywordsOf(ctx context.Context, paths map[string]bool) error {
	x.keywords.Lock()
	defer x.keywords.Unlock()
	return x.indexKeywords(ctx, newProgressReporter(nil, x.now, PhaseKeywords, 0, 0), paths)
}

// indexKeywords updates the keyword index with the pending documents among paths. If
// paths is nil, it indexes all of them and begins with those that searches prefer.
func (x *Indexer) indexKeywords(ctx context.Context, m *progressReporter, paths map[string]bool) error {
	for after := ""; ; {
		if paths == nil {
			if err := x.preferKeywords(ctx, m); err != nil {
				return err
			}
		}
		b, err := x.keywordBatch(after, paths)
		if err != nil {
			return fmt.Errorf("reading documents for the keyword index: %w", err)
		}
		if len(b.marks) == 0 {
			return nil
		}
		after = b.marks[len(b.marks)-1].Path
		if err := x.attempts.begin(b.large...); err != nil {
			return fmt.Errorf("recording the files being indexed: %w", err)
		}
		x.reached("keywords read")
		err = x.writeKeywords(ctx, &b)
		if err := errors.Join(err, x.attempts.end(err == nil, b.large...)); err != nil {
			return fmt.Errorf("updating the keyword index: %w", err)
		}
		x.reached("keywords updated")
		if err := x.stores.Docs.Done(ctx, docs.Keyword, b.marks, x.stores.Keyword.Position()); err != nil {
			return fmt.Errorf("clearing marks of the keyword index: %w", err)
		}
		x.reached("keywords done")
		m.add(len(b.marks), b.chunks)
	}
}

// preferKeywords updates the keyword index with the documents that searches prefer.
func (x *Indexer) preferKeywords(ctx context.Context, m *progressReporter) error {
	for p := x.preferences.next(); p != nil; p = x.preferences.next() {
		if err := x.prefer(ctx, p, nil, func(chosen map[string]bool) error { return x.indexKeywords(ctx, m, chosen) }); err != nil {
			return err
		}
	}
	return nil
}

// writeKeywords writes the chunks of a batch to the keyword index, keywordEntries at a time.
func (x *Indexer) writeKeywords(ctx context.Context, b *keywordBatch) error {
	entries, stale := make([]store.KeywordEntry, 0, min(b.chunks, keywordEntries)), b.stale
	write := func() error {
		err := x.held()
		if err == nil {
			err = x.stores.Keyword.Update(ctx, entries, stale)
		}
		entries, stale = entries[:0], nil
		return err
	}
	chunker, err := x.chunker()
	if err != nil {
		return err
	}
	for _, d := range b.docs {
		searched := wordsEnd(d.text)
		for i := range d.doc.Sections {
			for n, c := range d.doc.Sections[i].Chunks {
				e := chunker.KeywordEntry(d.doc, i, n, d.text)
				if c.Start >= searched {
					e.Body = ""
				}
				if entries = append(entries, e); len(entries) < keywordEntries {
					continue
				}
				if err := write(); err != nil {
					return err
				}
			}
		}
	}
	return write()
}

// keywordBatch is an update of the keyword index with some pending documents.
type keywordBatch struct {
	marks        []docs.Mark
	docs         []pendingText
	stale        []string
	large        []string // paths of the documents to record as attempts
	chunks, size int      // size is in bytes of text
}

// pendingText is a pending document with its text.
type pendingText struct {
	doc  *store.Document
	text string
}

// keywordBatch reads pending documents with paths above after, and in paths if that is
// not nil, until the batch is full. A document that may have ended the last process gets
// a batch of its own. Documents, texts and marks come from one transaction.
func (x *Indexer) keywordBatch(after string, paths map[string]bool) (b keywordBatch, err error) {
	err = x.stores.Docs.View(func(r *docs.Reader) error {
		for {
			pending, err := r.Pending(docs.Keyword, after, pendingPage)
			if err != nil || len(pending) == 0 {
				return err
			}
			for _, p := range pending {
				after = p.Path
				if paths != nil && !paths[p.Path] {
					continue
				}
				suspect := x.attempts.count(p.Path) > 0
				if suspect && len(b.marks) > 0 {
					return nil
				}
				if err := x.addKeywords(&b, r, &p); err != nil {
					return err
				}
				if suspect || b.chunks >= keywordEntries || b.size >= keywordBytes {
					return nil
				}
			}
		}
	})
	return b, err
}

// addKeywords adds a pending document to a batch.
func (x *Indexer) addKeywords(b *keywordBatch, r *docs.Reader, p *docs.PendingDoc) error {
	b.marks = append(b.marks, p.Mark)
	b.stale = append(b.stale, p.Stale...)
	if p.Deleted {
		return nil
	}
	doc, text, err := readDocument(r, p.Path)
	if err != nil {
		return err
	}
	if len(text) >= minAttempted {
		b.large = append(b.large, p.Path)
	}
	b.docs = append(b.docs, pendingText{doc, text})
	b.chunks += p.Chunks
	b.size += len(text)
	return nil
}

// maxTerms is the most distinct words of a file in the keyword index. Each takes about
// eight microseconds. Ten megabytes of English have about 100,000.
const maxTerms = 200_000

// maxWords is the most words of a file in the keyword index. Each takes about two
// microseconds. Ten megabytes of English have about 1,500,000.
const maxWords = 2_000_000

// wordsEnd returns the offset up to which the words of a text are indexed.
func wordsEnd(text string) int {
	const step = 64 << 10
	if len(text) <= maxTerms {
		return len(text) // a word has more than one byte
	}
	var v store.Vocabulary
	for at := 0; at < len(text); at += step {
		if v.Distinct >= maxTerms || v.Words >= maxWords {
			return at
		}
		v.Add(text[at:min(at+step, len(text))])
	}
	return len(text)
}

// readDocument returns the document at path with its text. It fails with
// *docs.CorruptError if either is missing, because path is marked as pending.
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
