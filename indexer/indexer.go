package indexer

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
	"cairn/models"
)

// Stores are the stores that an Indexer reads and writes. The caller closes them.
type Stores struct {
	// Files holds the files of the workspace.
	Files   *walk.Tree
	Docs    *docs.Store
	Keyword store.Keyword
	Vectors store.Vectors
	// Cache caches embeddings by text. If it is nil, the indexer embeds the text of a
	// renamed file again, and also texts whose vectors were not committed before a crash.
	Cache Cache
}

// Cache stores vectors by the text that they represent.
type Cache interface {
	// Get returns the vectors of keys in order, nil for a key without a vector.
	Get(keys []store.Key) ([][]float32, error)
	// Put stores each vector under the key with the same index.
	Put(keys []store.Key, vectors [][]float32) error
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Walk selects the files to index; nil means all documents.
	Walk *walk.Options
	// Masks selects the secrets to mask in the index; nil masks nothing.
	Masks *secret.Masks
	// Chunk sets the size of chunks.
	Chunk *ChunkOptions
	// Attempts is the name of a file that records the documents being indexed, so that
	// the next process can skip those that crash it; "" records nothing.
	Attempts string
	// Held, if not nil, is called before each write to a derived index. It returns an
	// error if the process must no longer write to the stores.
	Held func() error
	// BatchTexts is the maximum number of texts to embed at a time; 0 means 128 for
	// each processor, at least 256. Batches are smaller if the encoder is slow.
	BatchTexts int
	// WindowChunks is the number of chunks to sort by length together; 0 means 4096.
	WindowChunks int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Reached, if not nil, is called at the named points between the steps of a run,
	// possibly by several goroutines concurrently. Tests use it to interrupt runs.
	Reached func(point string)
}

// Indexer updates an index to match its files. It is safe for concurrent use; calls of
// the same phase wait for each other.
type Indexer struct {
	stores   Stores
	embedder models.Embedder
	options  Options
	chunker  func() (*Chunker, error) // opens the model at the first call
	attempts *attempts
	now      func() time.Time
	held     func() error
	reached  func(point string)
	textOf   func(name string, data []byte, masks *secret.Masks) (text []byte, masked int, err error)

	// One lock for each phase, so that files can be refreshed while texts are embedded.
	scanning, keywords, vectors sync.Mutex

	preferences preferences
	makers      sync.Pool // of *ngram.Maker
}

// New returns an Indexer that writes to the stores.
func New(s Stores, e models.Embedder, o *Options) *Indexer {
	x := &Indexer{stores: s, embedder: e, textOf: markdown.TextOf, options: *cmp.Or(o, &Options{})}
	x.makers.New = func() any { return new(ngram.Maker) }
	if x.options.Walk == nil {
		x.options.Walk = &walk.Options{Extensions: markdown.Extensions(), MaxSize: markdown.MaxSize}
	}
	if x.options.BatchTexts <= 0 {
		x.options.BatchTexts = max(256, 128*runtime.GOMAXPROCS(0))
	}
	if x.options.WindowChunks <= 0 {
		x.options.WindowChunks = 4096
	}
	if x.now, x.held, x.reached = x.options.Now, x.options.Held, x.options.Reached; x.now == nil {
		x.now = time.Now
	}
	if x.held == nil {
		x.held = func() error { return nil }
	}
	if x.reached == nil {
		x.reached = func(string) {}
	}
	x.attempts = openAttempts(x.options.Attempts)
	x.chunker = sync.OnceValues(func() (*Chunker, error) { return NewChunker(e, x.options.Chunk) })
	return x
}

// Run updates the whole index: it scans the files, runs Keywords and Vectors, and advances the
// generation if anything changed. The next run resumes a run that was interrupted by ctx
// or by the end of the process. The Report is complete even if Run fails. progress may be
// nil; Run calls it from one goroutine at a time, at most ten times a second, and waits
// until it returns.
func (x *Indexer) Run(ctx context.Context, progress func(job.Progress)) (*Report, error) {
	return x.run(ctx, nil, true, progress)
}

// RunKeywords is Run without Vectors; the documents stay pending there.
func (x *Indexer) RunKeywords(ctx context.Context, progress func(job.Progress)) (*Report, error) {
	return x.run(ctx, nil, false, progress)
}

func (x *Indexer) run(ctx context.Context, only *pathSet, vectors bool, progress func(job.Progress)) (*Report, error) {
	t := &Report{Skipped: map[string]int{}}
	err := x.scan(ctx, only, progress, t)
	if err == nil {
		err = x.Keywords(ctx, progress)
	}
	if err == nil && vectors {
		err = x.makeVectors(ctx, progress, t)
	}
	if err == nil {
		err = x.advance(ctx)
	}
	return x.finish(t, err)
}

// Refresh scans the given files only and runs Keywords, so that keyword search finds
// their current text when it returns. Paths are slash-separated and relative to the
// workspace. A folder stands for every file that is or was below it; nil stands for all
// files. Embed computes the vectors, concurrently or later.
func (x *Indexer) Refresh(ctx context.Context, paths []string) (*Report, error) {
	only, err := newPathSet(paths)
	if err != nil {
		return nil, fmt.Errorf("indexing: %w", err)
	}
	t := &Report{Skipped: map[string]int{}}
	if err = x.scan(ctx, only, nil, t); err == nil {
		err = x.Keywords(ctx, nil)
	}
	return x.finish(t, err)
}

// Embed computes the vectors of pending documents and advances the generation, since
// this completes a run.
func (x *Indexer) Embed(ctx context.Context) (*Report, error) {
	t := &Report{}
	err := x.makeVectors(ctx, nil, t)
	if err == nil {
		err = x.advance(ctx)
	}
	return x.finish(t, err)
}

// advance records a completed run, which advances the generation if anything changed.
func (x *Indexer) advance(ctx context.Context) error {
	var roots []string
	for _, r := range x.stores.Files.Roots() {
		roots = append(roots, r.Dir)
	}
	x.reached("before the generation")
	_, err := x.stores.Docs.Advance(ctx, roots, x.now())
	return err
}

// finish adds the state of the whole index to the report.
func (x *Indexer) finish(t *Report, err error) (*Report, error) {
	counts, countErr := x.stores.Docs.Counts()
	meta, metaErr := x.stores.Docs.Meta()
	t.Files, t.Sections, t.Chunks, t.Generation = counts.Files, counts.Sections, counts.Chunks, meta.Generation
	if err = cmp.Or(err, countErr, metaErr); err != nil {
		return t, fmt.Errorf("indexing: %w", err)
	}
	return t, nil
}
