package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store/docs"
	"cairn/internal/store/qdrant"
)

// State is what a store tells about the index as a whole.
type State struct {
	Meta   docs.Meta   `json:"meta"`
	Counts docs.Counts `json:"counts"`
}

// stateRecord is the record of the State.
const stateRecord = "state"

// readState returns the State of a store, zero when nothing was written to it,
// with the version of its record.
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

const (
	// stateAge is how old a State may be when it is used.
	stateAge = 500 * time.Millisecond
	// statAge is how long the size and time of a document that was read are used
	// again: an answer compares each of its documents with "the file".
	statAge = time.Second
	// maxStats bounds the sizes and times kept.
	maxStats = 4096
)

// Source is the documents of a store, as docs.Source and walk.Stored. It is safe
// for concurrent use.
type Source struct {
	documents *qdrant.Documents
	records   *qdrant.Records
	now       func() time.Time
	stats     *lru.Cache[string, fileInfo]

	mu    sync.Mutex
	state State
	read  time.Time // when state was read
}

// NewSource returns the documents that a store holds at the time of each call.
func NewSource(c *qdrant.Client, now func() time.Time) *Source {
	stats, _ := lru.New[string, fileInfo](maxStats) // the size is positive
	return &Source{documents: c.Current().Documents(), records: c.Records(), now: now, stats: stats}
}

// Open makes sure of the collection of documents.
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
	found, err := s.documents.Load(context.Background(), paths...)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		s.remember(d.Document.Path, d.Document.Hash, d.Document.Size, d.Document.ModTime)
	}
	return found, nil
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

// Stat implements walk.Stored.
func (s *Source) Stat(name string) (fs.FileInfo, error) {
	if info, ok := s.stats.Get(name); ok && s.now().Sub(info.seen) < statAge {
		return info, nil
	}
	h, ok, err := s.documents.Head(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return s.remember(name, h.HexHash(), h.Size, h.ModTime), nil
}

// Read implements walk.Stored.
func (s *Source) Read(name string) ([]byte, fs.FileInfo, error) {
	found, err := s.Load([]string{name})
	if err != nil {
		return nil, nil, err
	}
	d, ok := found[name]
	if !ok {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return d.Text, s.remember(name, d.Document.Hash, d.Document.Size, d.Document.ModTime), nil
}

func (s *Source) remember(name, hash string, size, modTime int64) fileInfo {
	info := fileInfo{path: name, hash: hash, size: size, modTime: modTime, seen: s.now()}
	s.stats.Add(name, info)
	return info
}

// fileInfo is the fs.FileInfo of a document in a store.
type fileInfo struct {
	path    string
	hash    string // of the file, hex
	size    int64
	modTime int64 // Unix nanoseconds
	seen    time.Time
}

func (i fileInfo) Name() string       { return path.Base(i.path) }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return 0o444 }
func (i fileInfo) ModTime() time.Time { return time.Unix(0, i.modTime) }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return i.hash }
