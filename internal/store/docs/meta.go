package docs

import (
	"context"
	"encoding/binary"
	"encoding/json"
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

// numbers returns the counts in the order in which they are stored.
func (c *Counts) numbers() []*int {
	return []*int{
		&c.Files, &c.Sections, &c.Chunks, &c.Skipped,
		&c.Keyword.Files, &c.Keyword.Sections, &c.Keyword.Chunks,
		&c.Vectors.Files, &c.Vectors.Sections, &c.Vectors.Chunks, &c.Tasks,
	}
}

// Pending returns the counts of a derived index.
func (c *Counts) Pending(k Kind) *PendingCounts {
	if k == Keyword {
		return &c.Keyword
	}
	return &c.Vectors
}

func (c *Counts) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(c.Bytes))
	for _, n := range c.numbers() {
		b = binary.LittleEndian.AppendUint64(b, uint64(*n))
	}
	return b
}

func decodeCounts(b []byte) (c Counts, err error) {
	if b == nil {
		return c, nil
	}
	numbers := c.numbers()
	if len(b) != 8*(1+len(numbers)) {
		return c, fmt.Errorf("the stored counts are damaged: %d bytes", len(b))
	}
	c.Bytes = int64(binary.LittleEndian.Uint64(b))
	for i, n := range numbers {
		*n = int(binary.LittleEndian.Uint64(b[8*(i+1):]))
	}
	return c, nil
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
	format := b.Get([]byte("format"))
	if format == nil {
		return m, ErrNoIndex
	}
	if len(format) != 4 {
		return m, fmt.Errorf("the stored format version is damaged: %d bytes", len(format))
	}
	if m.Format = binary.LittleEndian.Uint32(format); m.Format != FormatVersion {
		return m, &FormatError{Have: m.Format, Want: FormatVersion}
	}
	for key, value := range map[string]any{"model": &m.Model, "roots": &m.Roots} {
		if stored := b.Get([]byte(key)); stored != nil {
			if err := json.Unmarshal(stored, value); err != nil {
				return m, fmt.Errorf("the stored %s is damaged: %w", key, err)
			}
		}
	}
	for kind := range m.Positions {
		if stored := b.Get([]byte("position of " + Kind(kind).String())); len(stored) == 8 {
			m.Positions[kind] = binary.LittleEndian.Uint64(stored)
		}
	}
	m.Chunks = string(b.Get([]byte("chunks")))
	if stored := b.Get([]byte("generation")); len(stored) == 8 {
		m.Generation = binary.LittleEndian.Uint64(stored)
	}
	if stored := b.Get([]byte("built_at")); len(stored) == 8 {
		m.BuiltAt = time.Unix(0, int64(binary.LittleEndian.Uint64(stored)))
	}
	return m, nil
}

// Counts returns the number of files, sections, chunks and pending marks.
func (s *Store) Counts() (Counts, error) { return view(s, (*Reader).Counts) }

// Advance records that a run over roots completed at the given time. It returns the new
// generation.
func (s *Store) Advance(ctx context.Context, roots []string, at time.Time) (generation uint64, err error) {
	if s.source != nil {
		return 0, kv.ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	encoded, err := json.Marshal(roots)
	if err != nil {
		return 0, err // unreachable: strings always marshal
	}
	err = s.db.Update(func(tx *kv.Tx) error {
		b, err := tx.Bucket("meta")
		if err != nil {
			return err
		}
		m, err := decodeMeta(b)
		if err != nil {
			return err
		}
		generation = m.Generation + 1
		for key, value := range map[string][]byte{
			"generation": binary.LittleEndian.AppendUint64(nil, generation),
			"built_at":   binary.LittleEndian.AppendUint64(nil, uint64(at.UnixNano())),
			"roots":      encoded,
		} {
			if err := b.Put([]byte(key), value); err != nil {
				return err
			}
		}
		return nil
	})
	return generation, err
}
