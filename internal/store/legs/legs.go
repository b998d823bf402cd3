// Package legs indexes small sets of texts, such as the tools of a catalogue, and searches
// them by words and by vectors. It is not for documents: package indexer divides them into
// chunks, and updates their indexes in a way that a killed process can resume.
//
// A Legs is a keyword index and, for each text of an entry, a vector store in memory. An
// entry is searchable by words at once, and by vectors when all its texts are embedded.
package legs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/text/query"
	"cairn/models"
)

// Keyword is the part of a keyword.Index that a Legs uses.
type Keyword interface {
	Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error
	Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error)
	Chunks() ([]string, error)
}

// Cache keeps vectors by the SHA-256 of the embedded text.
type Cache interface {
	// Get returns the vectors of keys, nil for an unknown key.
	Get(keys []store.Key) ([][]float32, error)
	Put(keys []store.Key, vectors [][]float32) error
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Keyword indexes the words. It may have entries of an earlier process. Nil means a
	// search by vectors alone.
	Keyword Keyword
	// Embedder computes the vectors. Nil means a search by words alone.
	Embedder models.Embedder
	// Cache keeps the vectors between processes; nil keeps none.
	Cache Cache
	// Logger receives a warning if the cache fails. Nil discards it.
	Logger *slog.Logger
}

// Entry is a set of texts with an identity.
type Entry struct {
	// ID must not contain a zero byte.
	ID string
	// Words are indexed by keyword. Legs sets the chunk.
	Words store.KeywordEntry
	// Texts are embedded. The vectors of the n-th texts of all entries are in one store.
	Texts []string
}

// chunk returns the identity of an entry in the indexes: its ID and a digest of its texts.
// So an index that was written by an earlier process shows which entries are current.
func (e *Entry) chunk() string {
	h := sha256.New()
	for _, text := range append(slices.Clone(e.Texts), e.Words.Title, e.Words.Body) {
		h.Write([]byte(text + "\x00"))
	}
	return e.ID + "\x00" + hex.EncodeToString(h.Sum(nil)[:8])
}

func idOf(chunk string) string {
	id, _, _ := strings.Cut(chunk, "\x00")
	return id
}

// Legs searches entries. It is safe for concurrent use.
type Legs struct {
	o       Options
	vectors []*flat.Store // by position in Entry.Texts; none without an embedder

	embedding sync.Mutex // held by Embed
	write     sync.Mutex // held while the indexes change

	mu      sync.RWMutex
	chunks  map[string]string   // by ID
	missing map[string][]string // texts of the entries without vectors, by chunk
	changes int                 // number of changes of the vectors
}

// New returns a Legs for entries with a number of texts each. It is empty until the first
// Sync or Add.
func New(texts int, o Options) *Legs {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l := &Legs{o: o, chunks: map[string]string{}, missing: map[string][]string{}}
	for range texts {
		if o.Embedder != nil {
			l.vectors = append(l.vectors, flat.Memory(o.Embedder.Description().Dimension))
		}
	}
	return l
}

// HasVectors reports whether every entry has its vectors.
func (l *Legs) HasVectors() bool { return l.o.Embedder != nil && l.Missing() == 0 }

// Missing returns the number of entries without vectors. It is 0 without an embedder.
func (l *Legs) Missing() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.missing)
}

// Changes returns the number of changes of the vectors.
func (l *Legs) Changes() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changes
}

// Hits holds the scores of the entries that a search found, by ID.
type Hits struct {
	Words   map[string]float64   // BM25
	Cosines []map[string]float64 // by position in Entry.Texts; NaN for an entry without vectors
}

// Search returns the best k entries of each index. A query without words has no hits by
// words. A nil vector has none by vectors.
func (l *Legs) Search(ctx context.Context, q query.Query, vector []float32, k int) (h Hits, err error) {
	h.Words = map[string]float64{}
	if q.Words != "" && l.o.Keyword != nil {
		hits, err := l.o.Keyword.Search(ctx, q, k, store.Filter{})
		if err != nil {
			return h, fmt.Errorf("searching keywords: %w", err)
		}
		addScores(h.Words, hits)
	}
	for _, s := range l.vectors {
		found := map[string]float64{}
		h.Cosines = append(h.Cosines, found)
		if vector == nil {
			continue
		}
		hits, err := s.Search(ctx, vector, k, store.Filter{})
		if err != nil {
			return h, fmt.Errorf("searching vectors: %w", err)
		}
		addScores(found, hits)
	}
	return h, nil
}

func addScores(to map[string]float64, hits []store.Hit) {
	for _, hit := range hits {
		to[idOf(hit.Chunk)] = hit.Score
	}
}

// Complete adds the cosines of entries that a Search has not returned.
func (l *Legs) Complete(ctx context.Context, h *Hits, vector []float32, ids []string) error {
	for n, s := range l.vectors {
		var wanted []string
		for _, id := range ids {
			if _, known := h.Cosines[n][id]; !known {
				wanted = append(wanted, id)
			}
		}
		scores, err := s.Scores(ctx, vector, l.chunksOf(wanted))
		if err != nil {
			return fmt.Errorf("comparing vectors: %w", err)
		}
		for i, id := range wanted {
			h.Cosines[n][id] = scores[i]
		}
	}
	return nil
}

// Vectors returns the vectors of the n-th texts of entries, nil for an entry without one.
func (l *Legs) Vectors(ctx context.Context, n int, ids []string) ([][]float32, error) {
	return l.vectors[n].Vectors(ctx, l.chunksOf(ids))
}

// chunksOf returns the current chunks of entries, "" for an unknown one.
func (l *Legs) chunksOf(ids []string) []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	chunks := make([]string, len(ids))
	for i, id := range ids {
		chunks[i] = l.chunks[id]
	}
	return chunks
}
