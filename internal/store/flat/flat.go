// Package flat is an exact vector store: every search looks at every vector.
// A first pass scans them as 8-bit codes in memory, with SIMD; the best are
// scored again in 16 bits, of which the lower 8 come from the file. Large stores are first scanned
// as sketches of one bit a coordinate, which leave out what cannot be among the
// best. It is not an approximate index.
//
// The file holds each vector once, under the hash of the text it was made from.
// The vector of a chunk that was removed stays in the file until compaction, so
// that moved, copied and restored text is not embedded again: see Get and Put.
//
// The caller makes sure that only one process has a store open for writing.
package flat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"cairn/internal/store"
)

// MaxDimension is the longest vector: its 8-bit dot products stay below 2^31.
const MaxDimension = 1 << 15

// DefaultMaxCached bounds the vectors kept without a chunk: at 384 dimensions
// some 400 MB.
const DefaultMaxCached = 256 << 10

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// ReadOnly opens an existing store for searching.
	ReadOnly bool
	// MaxCached bounds the vectors kept that no chunk refers to. 0 means
	// DefaultMaxCached.
	MaxCached int
	// Threads is how many goroutines one search may use. 0 means GOMAXPROCS.
	Threads int
	// Logger hears of a torn tail and of a compaction that went wrong. Nil is silent.
	Logger *slog.Logger
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the vector store is closed")

// ErrReadOnly is returned by Update, Put and Clear on a store opened read-only.
var ErrReadOnly = errors.New("the vector store is opened read-only")

// DimensionError says that a vector or a store has another dimension.
type DimensionError struct{ Have, Want int }

func (e *DimensionError) Error() string {
	return fmt.Sprintf("vector of dimension %d, want %d", e.Have, e.Want)
}

// ModelError says that the vectors were made by another model.
type ModelError struct{ Have, Want string }

func (e *ModelError) Error() string {
	return fmt.Sprintf("the vectors were made by model %s, not %s", e.Have, e.Want)
}

// FormatError says that the file was written in another format.
type FormatError struct{ Have, Want uint32 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the vectors have format %d, this version reads format %d", e.Have, e.Want)
}

// CorruptError says that the file is not one of ours or is damaged in a way
// that no crash explains. The file is left as it is; Salvage reads what is whole.
type CorruptError struct{ Path, Reason string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged or not a vector file: %s", e.Path, e.Reason)
}

// Unusable reports whether err, of Open, says that the file holds nothing for the
// wanted model: it is damaged, or of another format, model or dimension. Another
// error, such as a missing permission, says nothing about the file.
func Unusable(err error) bool {
	_, corrupt := errors.AsType[*CorruptError](err)
	_, format := errors.AsType[*FormatError](err)
	return corrupt || format || OtherModel(err)
}

// OtherModel reports whether err, of Open, says that the vectors were made by
// another model or have another dimension.
func OtherModel(err error) bool {
	_, model := errors.AsType[*ModelError](err)
	_, dimension := errors.AsType[*DimensionError](err)
	return model || dimension
}

// Store holds vectors of one dimension. It implements store.Vectors. A search
// works on a snapshot and never waits for an Update.
type Store struct {
	dim     int
	model   string
	path    string // "" in memory
	options Options
	kernel  kernel
	scratch sync.Pool // of *scratch

	searches  atomic.Int64 // that would have liked more sketches
	sketching atomic.Bool  // a search makes sketches

	snap atomic.Pointer[snapshot] // nil after Close

	mu       sync.Mutex        // held while the next snapshot is made; guards what follows
	docIndex map[string]uint32 // payloads of the newest snapshot
	contents contents          // the vectors in the file
	broken   error             // why nothing can be written any more
	dropped  int64
}

var _ store.Vectors = (*Store)(nil)

// Memory returns an empty store of vectors of length dim that lives in memory
// only. It panics unless 1 <= dim <= MaxDimension.
func Memory(dim int) *Store {
	if dim < 1 || dim > MaxDimension {
		panic(fmt.Sprintf("flat.Memory: dimension %d, want 1 to %d", dim, MaxDimension))
	}
	s, _ := newStore(dim, "", "", nil) // a kernel that the machine lacks becomes the portable one
	s.snap.Store(newSnapshot(dim, nil))
	return s
}

func newStore(dim int, model, path string, o *Options) (*Store, error) {
	k, err := chooseKernel()
	s := &Store{dim: dim, model: model, path: path, kernel: k, docIndex: map[string]uint32{}}
	if o != nil {
		s.options = *o
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.MaxCached <= 0 {
		s.options.MaxCached = DefaultMaxCached
	}
	return s, err
}

// Open opens the store in the folder dir, and unless read-only creates it. A
// store of another format, dimension or model is a *FormatError,
// *DimensionError or *ModelError and left as it is; a damaged one a
// *CorruptError. What a crash left half-written at the end is dropped. A
// read-only store that is absent is an error that is fs.ErrNotExist.
func Open(dir string, dim int, model string, o *Options) (*Store, error) {
	if dim < 1 || dim > MaxDimension {
		return nil, fmt.Errorf("opening vectors in %s: dimension %d, want 1 to %d", dir, dim, MaxDimension)
	}
	s, err := newStore(dim, model, filepath.Join(dir, fileName), o)
	if err != nil {
		return nil, fmt.Errorf("opening vectors in %s: %w", dir, err)
	}
	if !s.options.ReadOnly {
		if err := s.create(); err != nil {
			return nil, fmt.Errorf("opening vectors %s: %w", s.path, err)
		}
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("opening vectors %s: %w", s.path, err)
	}
	return s, nil
}

// OpenOrReplace is Open, but puts an empty store in the place of one that is Unusable. It
// is for caches.
func OpenOrReplace(dir string, dim int, model string, o *Options) (*Store, error) {
	s, err := Open(dir, dim, model, o)
	if !Unusable(err) {
		return s, err
	}
	if removeErr := os.Remove(filepath.Join(dir, fileName)); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return Open(dir, dim, model, o)
}

// snapshot returns the newest state.
func (s *Store) snapshot(ctx context.Context) (*snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snap := s.snap.Load()
	if snap == nil {
		return nil, ErrClosed
	}
	return snap, nil
}

// Count is the number of vectors held.
func (s *Store) Count() (int, error) {
	snap, err := s.snapshot(context.Background())
	if err != nil {
		return 0, err
	}
	return snap.live, nil
}

// Dimension is the length of every vector.
func (s *Store) Dimension() int { return s.dim }

// Kernel names the code that scans: avx512vnni, avx2 or portable.
func (s *Store) Kernel() string { return s.kernel.name }

// Scores returns the cosine of each chunk with the unit vector query, NaN for a
// chunk that has no vector.
func (s *Store) Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error) {
	if err := s.checkVector(query); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	slots := make([]int, len(chunks))
	for i, id := range chunks {
		slots[i] = -1
		if slot, ok := snap.lookup(id); ok {
			slots[i] = slot
		}
	}
	return snap.exact(s.kernel, query, slots, s.threads(snap))
}

// Close ends the store. Searches under way finish or return an error. Closing
// twice is not an error.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snap.Swap(nil)
	if snap == nil || snap.log == nil {
		return nil
	}
	return snap.log.file.Close()
}

// checkVector accepts vectors of our dimension, finite and of unit length
// within 1 %: a model's rounding, not another scale.
func (s *Store) checkVector(v []float32) error {
	if len(v) != s.dim {
		return &DimensionError{Have: len(v), Want: s.dim}
	}
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if !(math.Abs(math.Sqrt(norm)-1) <= 0.01) { // false for NaN too
		return fmt.Errorf("vector of length %g, want 1", math.Sqrt(norm))
	}
	return nil
}
