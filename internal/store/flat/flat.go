// Package flat is a vector store. A search considers every vector of up to 262,144, and
// the nearest parts of a larger store, unless it has a filter.
//
// A search first scans 8-bit codes in memory, with SIMD, and then scores the best
// candidates again with 16 bits a coordinate; the lower 8 bits come from the file. In
// large stores, sketches of one and four bits a coordinate rule out most vectors before, and
// the codes of the rest come from the file too.
//
// The file holds each vector once, keyed by the hash of its text. The vector of a
// removed chunk stays in the file until compaction, so that text that was moved, copied
// or restored need not be embedded again: see Get and Put.
//
// The caller ensures that only one process opens a store for writing.
package flat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"cairn/internal/store"
)

// MaxDimension is the largest dimension. 8-bit dot products then stay below 2^31.
const MaxDimension = 1 << 15

// DefaultMaxCached is the default of Options.MaxCached: 200 MB at 384 dimensions.
const DefaultMaxCached = 256 << 10

// Options configures Open. Nil and the zero value select the defaults.
type Options struct {
	// ReadOnly opens an existing store for searching.
	ReadOnly bool
	// MaxCached is the number of vectors without a chunk that the store keeps. 0 means
	// DefaultMaxCached. The vectors of a cleared store do not count until they are used
	// again.
	MaxCached int
	// sealedFrom and partitionedFrom are the constants of these names if they are 0.
	sealedFrom, partitionedFrom int
	// Logger receives a warning when Open truncates the file and when a compaction
	// fails. Nil discards them.
	Logger *slog.Logger
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the vector store is closed")

// ErrReadOnly is returned by Update, Put and Clear on a store opened read-only.
var ErrReadOnly = errors.New("the vector store is opened read-only")

// DimensionError reports a vector or a store of another dimension.
type DimensionError struct{ Have, Want int }

func (e *DimensionError) Error() string {
	return fmt.Sprintf("vector of dimension %d, want %d", e.Have, e.Want)
}

// ModelError reports vectors that another model made.
type ModelError struct{ Have, Want string }

func (e *ModelError) Error() string {
	return fmt.Sprintf("the vectors were made by model %s, not %s", e.Have, e.Want)
}

// FormatError reports a file of another format.
type FormatError struct{ Have, Want uint32 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the vectors have format %d, this version reads format %d", e.Have, e.Want)
}

// CorruptError reports a file that is not a vector file, or is damaged in a way that no
// crash explains. Open leaves the file unchanged; Salvage reads its undamaged vectors.
type CorruptError struct{ Path, Reason string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged or not a vector file: %s", e.Path, e.Reason)
}

// Unusable reports whether err, an error of Open, means that the file is damaged or has
// another format, model or dimension. Other errors, such as a missing permission, say
// nothing about the file.
func Unusable(err error) bool {
	_, corrupt := errors.AsType[*CorruptError](err)
	_, format := errors.AsType[*FormatError](err)
	return corrupt || format || OtherModel(err)
}

// OtherModel reports whether err, an error of Open, means that the vectors have another
// model or dimension.
func OtherModel(err error) bool {
	_, model := errors.AsType[*ModelError](err)
	_, dimension := errors.AsType[*DimensionError](err)
	return model || dimension
}

// Store holds vectors of one dimension. It implements store.Vectors. A search
// works on a snapshot and never waits for an Update.
type Store struct {
	dim       int
	model     string
	path      string // "" in memory
	options   Options
	kernel    kernel
	scratch   sync.Pool // of *scratch
	estimates sync.Pool // of pointers to scan.estimates

	searches  atomic.Int64 // that found blocks without sketches
	sketching atomic.Bool  // sketches are being made

	snap atomic.Pointer[snapshot] // nil after Close

	mu       sync.Mutex        // held by writers; guards the fields below
	docIndex map[string]uint32 // payloads of the newest snapshot; nil before the first update
	contents contents          // the vectors in the file
	broken   error             // of a failed compaction; the store can no longer be written
	imaged   int               // slots that the image has, or would have without an error
	dropped  int64
}

var _ store.Vectors = (*Store)(nil)

// Memory returns an empty store of dimension dim that is kept in memory only. It panics
// unless 1 <= dim <= MaxDimension.
func Memory(dim int) *Store {
	if dim < 1 || dim > MaxDimension {
		panic(fmt.Sprintf("flat.Memory: dimension %d, want 1 to %d", dim, MaxDimension))
	}
	s, _ := newStore(dim, "", "", nil) // if the machine lacks the kernel, the portable one
	s.snap.Store(newSnapshot(dim, nil))
	return s
}

func newStore(dim int, model, path string, o *Options) (*Store, error) {
	k, err := chooseKernel()
	s := &Store{dim: dim, model: model, path: path, kernel: k, options: *cmp.Or(o, &Options{})}
	s.options.Logger = cmp.Or(s.options.Logger, slog.New(slog.DiscardHandler))
	s.options.sealedFrom = cmp.Or(s.options.sealedFrom, sealedFrom)
	s.options.partitionedFrom = cmp.Or(s.options.partitionedFrom, partitionedFrom)
	if s.options.MaxCached <= 0 {
		s.options.MaxCached = DefaultMaxCached
	}
	return s, err
}

// Open opens the store in folder dir, and creates it unless Options.ReadOnly is set. It
// truncates a partial record that a crash left at the end of the file.
//
// Open returns a *FormatError, *DimensionError or *ModelError for a store of another
// format, dimension or model, a *CorruptError for a damaged one, and an error that is
// fs.ErrNotExist for a missing one. It does not change such a store.
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

// OpenOrReplace is Open for caches: it replaces a store that is Unusable with an empty
// one.
func OpenOrReplace(dir string, dim int, model string, o *Options) (*Store, error) {
	s, err := Open(dir, dim, model, o)
	if !Unusable(err) {
		return s, err
	}
	if removeErr := os.RemoveAll(filepath.Join(dir, fileName)); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return Open(dir, dim, model, o)
}

// snapshot returns the newest snapshot.
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

// Count returns the number of chunks.
func (s *Store) Count() (int, error) {
	snap, err := s.snapshot(context.Background())
	if err != nil {
		return 0, err
	}
	return snap.live, nil
}

// Position implements store.Vectors.
func (s *Store) Position() uint64 {
	if snap := s.snap.Load(); snap != nil && snap.log != nil {
		return snap.log.position
	}
	return 0
}

// Scores returns the cosine of the unit vector query with each chunk, and NaN for a
// chunk without a vector.
func (s *Store) Scores(ctx context.Context, query []float32, chunks []string) (scores []float64, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	if err := s.checkVector(query); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	slots := make([]int, len(chunks))
	for i, id := range chunks {
		slots[i] = snap.lookup(id)
	}
	defer runtime.KeepAlive(snap) // and its table
	return snap.exact(s.kernel, query, slots, snap.threads())
}

// Close closes the store. Searches in progress finish or return an error. Further calls
// of Close do nothing.
func (s *Store) Close() (err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snap.Swap(nil)
	if snap == nil || snap.log == nil {
		return nil
	}
	if s.broken == nil {
		s.saveImage(snap, imageLacksAtClose)
	}
	return snap.log.file.Close()
}

// checkVector returns an error unless v has the store's dimension and a length of 1,
// within 1 % for the rounding of models.
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
