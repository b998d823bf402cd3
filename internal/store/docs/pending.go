package docs

import "context"

// Kind names a derived index.
type Kind int

// The derived indexes.
const (
	Keyword Kind = iota
	Vectors
)

// String returns "keywords" or "vectors".
func (k Kind) String() string {
	return [...]string{"keywords", "vectors"}[k]
}

// Mark identifies a version of a document.
type Mark struct {
	Path string
	// Seq is the number of the transaction that wrote the mark.
	Seq uint64
}

// PendingDoc is a document whose current version is not in an index yet.
type PendingDoc struct {
	Mark
	// Deleted reports whether the document was deleted, so that only Stale matters.
	Deleted bool
	// Sections and Chunks count the sections and chunks of the current version.
	Sections, Chunks int
	// Stale lists the ids of chunks to remove from the index, sorted.
	Stale []string
}

// IsPending reports whether the document at path is pending for an index.
func (r *Reader) IsPending(kind Kind, path string) bool {
	return r.marks[kind].Get([]byte(path)) != nil
}

// Pending returns, in path order, at most limit pending documents with paths above
// after. "" is below every path, and a limit below 1 means all.
func (r *Reader) Pending(kind Kind, after string, limit int) ([]PendingDoc, error) {
	var pending []PendingDoc
	var err error
	r.marks[kind].Seek([]byte(after), func(k, v []byte) bool {
		path := string(k)
		if path == after {
			return true
		}
		var p PendingDoc
		if p, err = decodeMark(path, v); err != nil {
			return false
		}
		p.Deleted = r.files.Get(k) == nil
		pending = append(pending, p)
		return len(pending) != limit
	})
	return pending, err
}

// Done clears marks after the index of the kind was updated, and records its position. It
// ignores unknown marks and marks that were renewed after the caller read them.
func (s *Store) Done(ctx context.Context, kind Kind, marks []Mark, position uint64) error {
	return s.update(ctx, len(marks), func(w *writer, i int) error {
		if i == 0 {
			if err := w.setPosition(kind, position); err != nil {
				return err
			}
		}
		key := []byte(marks[i].Path)
		value := w.marks[kind].Get(key)
		if value == nil {
			return nil
		}
		m, err := decodeMark(marks[i].Path, value)
		if err != nil || m.Seq != marks[i].Seq {
			return err
		}
		w.counts.Pending(kind).add(-1, &m)
		return w.marks[kind].Delete(key)
	})
}

// Renew marks every document as pending for one index, so that the index is filled again
// after its files were lost or damaged, and forgets its position. Existing marks keep their
// stale ids.
func (s *Store) Renew(ctx context.Context, kind Kind) error {
	return s.update(ctx, 1, func(w *writer, _ int) error {
		err := w.setPosition(kind, 0)
		w.files.ForEach(func(k, v []byte) bool {
			var f File
			if f, err = decodeFile(string(k), v); err != nil {
				return false
			}
			m := PendingDoc{Mark: Mark{Seq: w.seq}, Sections: f.Sections, Chunks: f.Chunks}
			if m.Stale, err = w.unmark(kind, f.Path); err == nil {
				err = w.marks[kind].Put([]byte(f.Path), m.encode())
			}
			w.counts.Pending(kind).add(1, &m)
			return err == nil && ctx.Err() == nil
		})
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
}

func (w *writer) setPosition(kind Kind, position uint64) error {
	return w.changeMeta(func(m *Meta) { m.Positions[kind] = position })
}
