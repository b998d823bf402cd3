package indexer

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"cairn/internal/job"
	"cairn/internal/secret"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
	"cairn/models"
)

// Stores are what an Indexer reads and writes. The caller closes them.
type Stores struct {
	// Files are the roots of the workspace.
	Files   *walk.Tree
	Docs    *docs.Store
	Keyword store.Keyword
	Vectors store.Vectors
	// Cache holds embeddings by text. Without it the text of a renamed file, and
	// texts embedded but not committed before a crash, are embedded again.
	Cache Cache
}

// Cache holds vectors by the text that they were made from.
type Cache interface {
	// Get returns the vectors of keys in their order, nil for one it does not hold.
	Get(keys []store.Key) ([][]float32, error)
	// Put stores vectors under keys, of which there are as many.
	Put(keys []store.Key, vectors [][]float32) error
}

// Options are the knobs of New. Nil and the zero value give the defaults.
type Options struct {
	// Walk says which files are indexed.
	Walk *walk.Options
	// Masks are the secrets that the index must not hold; nil masks nothing.
	Masks *secret.Masks
	// Chunk sets the size of chunks.
	Chunk *ChunkOptions
	// Attempts is a file that names the documents in work, for the next process to set
	// those aside that end it; "" is none.
	Attempts string
	// Held, unless nil, is called before each write to a derived index, and fails when the
	// stores must not be written any more.
	Held func() error
	// Parallel is the number of files read and parsed at a time; 0 is GOMAXPROCS.
	Parallel int
	// BatchTexts is the most texts that the encoder gets at a time; 0 is 128 for
	// each processor, at least 256. It gets fewer while they take long.
	BatchTexts int
	// WindowChunks is the number of chunks sorted by length together; 0 is 4096.
	WindowChunks int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Reached, when not nil, is called at the named points between the steps of
	// a run, possibly by several goroutines concurrently. Tests interrupt runs
	// with it.
	Reached func(point string)
}

// Indexer brings an index up to date with its files. It is safe for concurrent
// use; calls of the same phase wait for each other.
type Indexer struct {
	stores   Stores
	embedder models.Embedder
	options  Options
	chunker  *Chunker
	attempts *attempts

	// One lock for each phase: files can be refreshed while vectors are made.
	scanning, keywords, vectors sync.Mutex

	preferences preferences
}

// New returns an Indexer that writes to the stores.
func New(s Stores, e models.Embedder, o *Options) *Indexer {
	x := &Indexer{stores: s, embedder: e}
	if o != nil {
		x.options = *o
	}
	if x.options.Walk == nil {
		x.options.Walk = &walk.Options{}
	}
	if x.options.Parallel <= 0 {
		x.options.Parallel = runtime.GOMAXPROCS(0)
	}
	if x.options.BatchTexts <= 0 {
		x.options.BatchTexts = max(256, 128*runtime.GOMAXPROCS(0))
	}
	if x.options.WindowChunks <= 0 {
		x.options.WindowChunks = 4096
	}
	x.attempts = openAttempts(x.options.Attempts)
	x.chunker = NewChunker(e.Description(), e.Tokenizer(), x.options.Chunk)
	return x
}

// Chunker returns the Chunker that cuts the documents.
func (x *Indexer) Chunker() *Chunker { return x.chunker }

func (x *Indexer) held() error {
	if x.options.Held == nil {
		return nil
	}
	return x.options.Held()
}

func (x *Indexer) now() time.Time {
	if x.options.Now != nil {
		return x.options.Now()
	}
	return time.Now()
}

func (x *Indexer) reached(point string) {
	if x.options.Reached != nil {
		x.options.Reached(point)
	}
}

// Run brings everything up to date: Scan, Keywords, Vectors, and then the
// generation, if anything changed. The next run resumes one that was interrupted,
// by ctx or by the end of the process. The Report is complete also when there is
// an error. progress may be nil; one goroutine at a time calls it, at most ten
// times a second, and the run waits until it returns.
func (x *Indexer) Run(ctx context.Context, progress func(job.Progress)) (*Report, error) {
	return x.run(ctx, nil, true, progress)
}

// RunKeywords is Run without the vectors, which stay pending.
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

// Refresh is Run without the vectors and for the given files alone, relative to the
// workspace and slash-separated: it returns once keyword search sees the current files.
// A folder stands for every file that is or was below it, nil for all files. Embed
// makes the vectors, concurrently or later.
func (x *Indexer) Refresh(ctx context.Context, paths []string) (*Report, error) {
	var only *pathSet
	if paths != nil {
		var err error
		if only, err = newPathSet(paths); err != nil {
			return nil, fmt.Errorf("indexing: %w", err)
		}
	}
	t := &Report{Skipped: map[string]int{}}
	err := x.scan(ctx, only, nil, t)
	if err == nil {
		err = x.Keywords(ctx, nil)
	}
	return x.finish(t, err)
}

// Embed makes the vectors of pending documents, and counts a completed run.
func (x *Indexer) Embed(ctx context.Context) (*Report, error) {
	t := &Report{}
	err := x.makeVectors(ctx, nil, t)
	if err == nil {
		err = x.advance(ctx)
	}
	return x.finish(t, err)
}

// Scan brings the documents up to date with the files and marks what changed
// as pending. Searches do not see the changes yet.
func (x *Indexer) Scan(ctx context.Context, progress func(job.Progress)) (*Report, error) {
	t := &Report{Skipped: map[string]int{}}
	return x.finish(t, x.scan(ctx, nil, progress, t))
}

// advance counts the run as completed.
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
	if err == nil {
		err = countErr
	}
	meta, metaErr := x.stores.Docs.Meta()
	if err == nil {
		err = metaErr
	}
	t.Files, t.Sections, t.Chunks, t.Generation = counts.Files, counts.Sections, counts.Chunks, meta.Generation
	if err != nil {
		return t, fmt.Errorf("indexing: %w", err)
	}
	return t, nil
}
