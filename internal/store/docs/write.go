package docs

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"cairn/internal/store"
	"cairn/internal/store/kv"
	"cairn/internal/store/ngram"
)

// Put is a document to store with its text.
type Put struct {
	Document store.Document
	// Text is the file's bytes as indexed. The offsets of sections refer to it. It must
	// not change before Store.Put returns.
	Text []byte
	// ChangeTime is the file's change time in Unix nanoseconds; 0 if unknown.
	ChangeTime int64
	// Grams is the filter of the file.
	Grams ngram.Filter
}

// Put adds or replaces documents with their texts, and marks them as pending for both
// derived indexes, in one transaction that is durable when Put returns. Chunk ids of the
// previous version that the new version does not have become stale. If two documents have
// the same path, the later one wins.
func (s *Store) Put(ctx context.Context, puts []Put) error {
	for i := range puts {
		if err := puts[i].Check(); err != nil {
			return err
		}
	}
	return s.update(ctx, len(puts), func(w *writer, i int) error {
		p := &puts[i]
		_, stale, err := w.remove(p.Document.Path)
		if err != nil {
			return err
		}
		f := File{
			Path: p.Document.Path, Size: p.Document.Size, ModTime: p.Document.ModTime, ChangeTime: p.ChangeTime,
			Sections: len(p.Document.Sections), seq: w.seq,
		}
		_, _ = hex.Decode(f.Hash[:], []byte(p.Document.Hash)) // never fails: Check accepts only valid hex
		ids := p.Document.ChunkIDs()
		f.Chunks = len(ids)
		key := []byte(p.Document.Path)
		for _, put := range []struct {
			bucket *kv.Bucket
			value  []byte
		}{{w.files, f.encode()}, {w.documents, encodeDocument(&p.Document)}, {w.texts, p.Text}, {w.grams, []byte(p.Grams)}} {
			if err := put.bucket.Put(key, put.value); err != nil {
				return err
			}
		}
		w.counts.Files++
		w.counts.Sections += f.Sections
		w.counts.Chunks += f.Chunks
		w.counts.Bytes += int64(len(p.Text))
		if p.Document.HasTasks() {
			w.counts.Tasks++
		}
		return w.mark(&f, stale, ids)
	})
}

// Delete removes documents with their texts, and marks them as pending with all their
// chunk ids as stale. It ignores unknown paths.
func (s *Store) Delete(ctx context.Context, paths []string) error {
	return s.update(ctx, len(paths), func(w *writer, i int) error {
		existed, stale, err := w.remove(paths[i])
		if err != nil || !existed {
			return err
		}
		key := []byte(paths[i])
		for _, b := range []*kv.Bucket{w.files, w.documents, w.texts, w.grams} {
			if err := b.Delete(key); err != nil {
				return err
			}
		}
		return w.mark(&File{Path: paths[i], seq: w.seq}, stale, nil)
	})
}

// Touch records new sizes and times of files whose bytes did not change. It ignores
// unknown paths and does not mark documents as pending.
func (s *Store) Touch(ctx context.Context, touched []File) error {
	return s.update(ctx, len(touched), func(w *writer, i int) error {
		key := []byte(touched[i].Path)
		value := w.files.Get(key)
		if value == nil {
			return nil
		}
		f, err := decodeFile(touched[i].Path, value)
		if err != nil {
			return err
		}
		f.Size, f.ModTime, f.ChangeTime = touched[i].Size, touched[i].ModTime, touched[i].ChangeTime
		return w.files.Put(key, f.encode())
	})
}

// Skipped is a file that is not indexed, with the reason.
type Skipped struct {
	Path, Reason string
	// Size (bytes), ModTime and ChangeTime (Unix nanoseconds) are set only if the content
	// is the reason, so that the file need not be read again. ChangeTime is 0 if unknown.
	Size, ModTime, ChangeTime int64
	// Retry is when to read the file again although it has not changed, in Unix
	// nanoseconds; 0 means never.
	Retry int64
	// Grams is the filter of a file that was read.
	Grams ngram.Filter
}

// encode returns the value in the bucket skipped.
func (f *Skipped) encode() []byte {
	b := []byte(f.Reason)
	if f.ModTime == 0 && f.Grams == "" {
		return b
	}
	b = binary.LittleEndian.AppendUint64(append(b, 0), uint64(f.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.ModTime))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.ChangeTime))
	return append(binary.LittleEndian.AppendUint64(b, uint64(f.Retry)), f.Grams...)
}

// decodeSkipped is the inverse of encode. It ignores a truncated time.
func decodeSkipped(path string, value []byte) Skipped {
	reason, rest, _ := bytes.Cut(value, []byte{0})
	f := Skipped{Path: path, Reason: string(reason)}
	if len(rest) >= 32 {
		f.Size = int64(binary.LittleEndian.Uint64(rest))
		f.ModTime = int64(binary.LittleEndian.Uint64(rest[8:]))
		f.ChangeTime = int64(binary.LittleEndian.Uint64(rest[16:]))
		f.Retry = int64(binary.LittleEndian.Uint64(rest[24:]))
		f.Grams = ngram.Filter(rest[32:])
	}
	return f
}

// SetSkipped replaces the list of skipped files. It writes nothing if the list has not
// changed. If two files have the same path, the later one wins.
func (s *Store) SetSkipped(ctx context.Context, skipped []Skipped) error {
	for _, f := range skipped {
		if err := checkPath(f.Path); err != nil {
			return err
		}
	}
	want := make(map[string]Skipped, len(skipped))
	for _, f := range skipped {
		want[f.Path] = f
	}
	have, err := s.Skipped()
	if err != nil {
		return err
	}
	var removed []string
	for _, f := range have {
		if now, ok := want[f.Path]; !ok {
			removed = append(removed, f.Path)
		} else if now == f {
			delete(want, f.Path)
		}
	}
	if len(removed)+len(want) == 0 {
		return ctx.Err()
	}
	return s.update(ctx, 1, func(w *writer, _ int) error {
		for _, path := range removed {
			if err := w.skipped.Delete([]byte(path)); err != nil {
				return err
			}
		}
		for path, f := range want {
			if w.skipped.Get([]byte(path)) == nil {
				w.counts.Skipped++
			}
			if err := w.skipped.Put([]byte(path), f.encode()); err != nil {
				return err
			}
		}
		w.counts.Skipped -= len(removed)
		return nil
	})
}

// writer is a write transaction.
type writer struct {
	buckets
	counts Counts
	seq    uint64 // larger than in any earlier transaction
}

// update calls step with 0 to n-1 in one transaction. If n is 0, it writes nothing.
func (s *Store) update(ctx context.Context, n int, step func(w *writer, i int) error) error {
	if err := ctx.Err(); err != nil || n == 0 {
		return err
	}
	if s.source != nil {
		return kv.ErrReadOnly
	}
	return s.db.Update(func(tx *kv.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		w := &writer{buckets: b}
		if w.counts, err = decodeCounts(w.meta); err != nil {
			return err
		}
		if w.seq, err = w.meta.NextSequence(); err != nil {
			return err
		}
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := step(w, i); err != nil {
				return err
			}
		}
		counts, _ := json.Marshal(w.counts) // never fails: they are numbers
		return w.meta.Put(countsKey, counts)
	})
}

// remove subtracts the document at path from the counts and returns its chunk ids.
// existed reports whether there is such a document.
func (w *writer) remove(path string) (existed bool, ids []string, err error) {
	value := w.files.Get([]byte(path))
	if value == nil {
		return false, nil, nil
	}
	f, err := decodeFile(path, value)
	if err != nil {
		return false, nil, err
	}
	d, err := decodeDocument(&f, w.documents.Need([]byte(path)))
	if err != nil {
		return false, nil, err
	}
	w.counts.Files--
	w.counts.Sections -= f.Sections
	w.counts.Chunks -= f.Chunks
	w.counts.Bytes -= int64(len(w.texts.Get([]byte(path))))
	if d.HasTasks() {
		w.counts.Tasks--
	}
	return true, d.ChunkIDs(), nil
}

// mark renews the marks of a file for both indexes. The stale ids are those of the
// previous version (stale) and of an earlier mark, except those of the new version (ids).
func (w *writer) mark(f *File, stale, ids []string) error {
	have := make(map[string]bool, len(ids))
	for _, id := range ids {
		have[id] = true
	}
	for _, kind := range []Kind{Keyword, Vectors} {
		m := PendingDoc{Mark: Mark{Seq: f.seq}, Sections: f.Sections, Chunks: f.Chunks}
		var err error
		if m.Stale, err = w.unmark(kind, f.Path); err != nil {
			return err
		}
		m.Stale = append(m.Stale, stale...)
		slices.Sort(m.Stale)
		m.Stale = slices.DeleteFunc(slices.Compact(m.Stale), func(id string) bool { return have[id] })
		if err := w.marks[kind].Put([]byte(f.Path), m.encode()); err != nil {
			return fmt.Errorf("marking %q: %w", f.Path, err)
		}
		w.counts.Pending(kind).add(1, &m)
	}
	return nil
}

// unmark subtracts an existing mark from the counts and returns its stale ids.
func (w *writer) unmark(kind Kind, path string) (stale []string, err error) {
	value := w.marks[kind].Get([]byte(path))
	if value == nil {
		return nil, nil
	}
	m, err := decodeMark(path, value)
	if err != nil {
		return nil, err
	}
	w.counts.Pending(kind).add(-1, &m)
	return m.Stale, nil
}

func (p *PendingCounts) add(sign int, m *PendingDoc) {
	p.Files += sign
	p.Sections += sign * m.Sections
	p.Chunks += sign * m.Chunks
}
