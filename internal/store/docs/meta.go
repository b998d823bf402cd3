package docs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cairn/internal/store/kv"
	"cairn/models"
)

// Meta describes the index as a whole.
type Meta struct {
	// Format is the version of the buckets.
	Format uint32
	// Model is the model for the vectors; zero if no caller of Open set one.
	Model models.Description
	// Chunks names the rules for chunks; "" if no caller of Open set them.
	Chunks string
	// Positions has the position of each derived index at its last Done; see store.Vectors.
	Positions [2]uint64
	// Generation counts the completed runs of the indexer.
	Generation uint64
	// Roots are the folders of the last completed run.
	Roots []string
	// BuiltAt is the time at which the last run completed; zero before the first.
	BuiltAt time.Time
}

// Counts holds the totals of the store. Every write updates them, so reading them takes
// one lookup.
type Counts struct {
	Files, Sections, Chunks int
	// Bytes is the total length of the texts.
	Bytes   int64
	Skipped int
	// Tasks counts the documents with a section for tasks, see store.Document.HasTasks.
	Tasks int
	// Keyword and Vectors count what is pending for the derived indexes.
	Keyword, Vectors PendingCounts
}

// PendingCounts counts the documents whose current version is not in a derived index.
// Files includes deleted files, whose chunks are still in the index.
type PendingCounts struct{ Files, Sections, Chunks int }

// Pending returns the counts of a derived index.
func (c *Counts) Pending(k Kind) *PendingCounts {
	if k == Keyword {
		return &c.Keyword
	}
	return &c.Vectors
}

// Meta returns the description of the index as a whole.
func (s *Store) Meta() (Meta, error) {
	if s.source != nil {
		m, _, err := s.source.State()
		return m, err
	}
	var m Meta
	err := s.db.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket("meta")
		if err != nil {
			return err
		}
		m, err = decodeMeta(b)
		return err
	})
	return m, err
}

func decodeMeta(b *kv.Bucket) (m Meta, err error) {
	stored := b.Get(metaKey)
	if earlier := b.Get([]byte("format")); stored == nil && len(earlier) == 4 {
		return m, &FormatError{Have: binary.LittleEndian.Uint32(earlier), Want: FormatVersion}
	} else if stored == nil {
		return m, ErrNoIndex
	}
	if err := json.Unmarshal(stored, &m); err != nil {
		return m, fmt.Errorf("the stored description of the index is damaged: %w", err)
	}
	if m.Format != FormatVersion {
		return m, &FormatError{Have: m.Format, Want: FormatVersion}
	}
	return m, nil
}

func decodeCounts(b *kv.Bucket) (c Counts, err error) {
	if stored := b.Get(countsKey); stored != nil {
		if err = json.Unmarshal(stored, &c); err != nil {
			err = fmt.Errorf("the stored counts are damaged: %w", err)
		}
	}
	return c, err
}

// The keys of the bucket meta.
var metaKey, countsKey = []byte("meta"), []byte("counts")

// changeMeta changes the description of the index, which is empty in a new store.
func (w *writer) changeMeta(change func(*Meta)) error {
	m, err := decodeMeta(w.meta)
	if err != nil && !errors.Is(err, ErrNoIndex) {
		return err
	}
	change(&m)
	encoded, err := json.Marshal(m)
	if err != nil {
		return err // unreachable: a Meta always marshals
	}
	return w.meta.Put(metaKey, encoded)
}

// Counts returns the number of files, sections, chunks and pending marks.
func (s *Store) Counts() (Counts, error) { return view(s, (*Reader).Counts) }

// Advance records that a run over roots completed at the given time. It returns the new
// generation.
func (s *Store) Advance(ctx context.Context, roots []string, at time.Time) (generation uint64, err error) {
	err = s.update(ctx, 1, func(w *writer, _ int) error {
		return w.changeMeta(func(m *Meta) {
			m.Generation++
			m.BuiltAt, m.Roots, generation = at, roots, m.Generation
		})
	})
	return generation, err
}
