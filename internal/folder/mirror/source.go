package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/store/docs"
	"cairn/internal/store/qdrant"
)

// State describes the index in a store.
type State struct {
	Meta   docs.Meta   `json:"meta"`
	Counts docs.Counts `json:"counts"`
}

// stateRecord is the name of the record that holds the State.
const stateRecord = "state"

// readState returns the State of a store and the version of its record. Both are zero if the
// store was never written.
func readState(ctx context.Context, r *qdrant.Records) (s State, version int64, err error) {
	value, version, err := r.Get(ctx, stateRecord)
	if err != nil || version == 0 {
		return s, 0, err
	}
	if err := json.Unmarshal(value, &s); err != nil {
		return s, version, fmt.Errorf("reading the state of the store: %w", err)
	}
	return s, version, nil
}

// stateAge bounds the age of a cached State.
const stateAge = 500 * time.Millisecond

// Source is a docs.Source of the documents in a store. It is safe for concurrent use.
type Source struct {
	documents *qdrant.Documents
	records   *qdrant.Records
	now       func() time.Time

	mu    sync.Mutex
	state State
	read  time.Time // when state was read
}

// NewSource returns the Source of a store. Each of its calls reads the current documents.
func NewSource(c *qdrant.Client, now func() time.Time) *Source {
	return &Source{documents: c.Current().Documents(), records: c.Records(), now: now}
}

// Open checks the collection of documents.
func (s *Source) Open(ctx context.Context) error { return s.documents.Open(ctx) }

// State implements docs.Source.
func (s *Source) State() (docs.Meta, docs.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.state.Meta.Format == 0 || now.Sub(s.read) > stateAge {
		state, _, err := readState(context.Background(), s.records)
		if err != nil {
			return docs.Meta{}, docs.Counts{}, err
		}
		s.state, s.read = state, now
	}
	return s.state.Meta, s.state.Counts, nil
}

// Load implements docs.Source.
func (s *Source) Load(paths []string) (map[string]docs.Loaded, error) {
	return s.documents.Load(context.Background(), paths...)
}

// File implements docs.Source.
func (s *Source) File(path string) (docs.File, bool, error) {
	h, ok, err := s.documents.Head(context.Background(), path)
	return h.File, ok, err
}

// Files implements docs.Source.
func (s *Source) Files(prefix string, fn func(docs.File) bool) error {
	var files []docs.File
	if err := s.documents.List(context.Background(), prefix, func(h qdrant.DocumentHead) bool { files = append(files, h.File); return true }); err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b docs.File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		if !fn(f) {
			return nil
		}
	}
	return nil
}
