// Package index opens, searches and updates the index of one folder in the process
// that owns its files. It does not decide which process that is: see owner.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"cairn/graphrank"
	"cairn/internal/config"
	"cairn/internal/job"
	"cairn/internal/mirror"
	"cairn/internal/owner"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// Progress is how far a run is.
type Progress = job.Progress

// Options are what New needs. Selection, Config, Dir, Description and Model must be set.
type Options struct {
	Selection config.Selection
	Config    config.Config
	// Dir holds the files of the index.
	Dir string
	// Holder is this process when it owns Dir; nil when it may only read.
	Holder *owner.Holder
	// Held, unless nil, reports whether this process still owns Dir.
	Held func() bool
	// Write opens the index for writing at once, and makes it where it is missing.
	// Otherwise that happens when Index or Watch is first called, or with Refresh at the
	// first use.
	Write, Refresh bool
	// Description is the model's. Model opens it, once, when it is first needed.
	Description models.Description
	Model       func() (models.Embedder, error)
	// Reranker, unless nil, returns the re-ranker of all searches, which stays the caller's.
	Reranker func() (models.Reranker, error)
	// Warm opens the model at once, in the background.
	Warm bool
	// Background starts a run of the indexer, Watch keeps the index up to date with
	// the files, and Poll finds changes by walking even where the system reports them.
	Background, Watch, Poll bool
	// VerifyEvery is how often a process that indexes by itself verifies and repairs the
	// index; 0 means once a day.
	VerifyEvery time.Duration
	// Rebuild removes an index that cannot be opened as it is.
	Rebuild bool
	// Store, unless nil, is kept up to date with the index by the process that writes it.
	Store *mirror.Store
	// Remote, unless nil, are the stores that answer instead of Dir, for reading.
	Remote *Stores
	// ReadUsage, unless nil, calls a function with the graph of what was used together,
	// for queries that name what is in use.
	ReadUsage func(func(*graphrank.Graph) error) error
	// Notice receives a line for people when an index was unusable and is made
	// again; nil sends it to Logger.
	Notice func(line string)
	// Logger receives what happens in the background.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Index is the index of one folder. It opens its files at their first use. It is
// safe for concurrent use.
type Index struct {
	o     Options
	model *models.Lazy
	warm  sync.WaitGroup
	turns *semaphore.Weighted // to search; nil without a bound
	// started is closed when New's work has begun; calls wait for it.
	started chan struct{}

	// mu is held for reading while the stores are in use, and for writing to
	// replace them.
	mu        sync.RWMutex
	opened    bool
	stores    *Stores // nil when there is no index
	retriever *retriever.Retriever
	unusable  error // why the stores are not open
	// damage is what is wrong with parts of the index. The owner removes a part that it
	// rebuilds. met is damage of vectors that the last search has met.
	damage  Damage
	met     atomic.Pointer[error]
	counted ofDocuments[counted] // for Status

	// swap is held for reading by writes outside a run, and for writing to replace
	// the stores; it is locked before mu.
	swap sync.RWMutex

	runs    sync.Mutex // guards what follows
	current *run       // the newest run; nil before the first
	problem error      // of the newest run, unless a caller waited for it
	watcher *watcher   // nil unless the folder is watched
	closed  bool
	// updates ends the writes outside a run, before a rebuild; it is replaced while
	// swap is held for writing.
	updates     context.Context
	stopUpdates context.CancelFunc
	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

// New returns the index in o.Dir and starts the work that o asks for.
func New(o Options) *Index {
	x := &Index{o: o, model: models.NewLazy(o.Description, o.Model), damage: Damage{}, started: make(chan struct{})}
	x.updates, x.stopUpdates = context.WithCancel(context.Background())
	x.life, x.end = context.WithCancel(context.Background())
	if o.Remote == nil { // a server is mostly waited for
		x.turns = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
	}
	if o.Warm {
		x.warm.Go(func() { _, _ = x.model.Open() }) // the first use gets the same error again
	}
	if o.Holder == nil || !o.Write {
		close(x.started)
		return x
	}
	x.warm.Go(func() {
		defer close(x.started)
		x.start()
	})
	return x
}

// start opens the stores and begins the work in the background.
func (x *Index) start() {
	if err := x.open(true); err != nil {
		return // the first use gets the same error again
	}
	x.mu.RLock()
	s, usable := x.stores, x.unusable == nil
	x.mu.RUnlock()
	indexes := x.o.Background && usable
	if x.o.Watch && x.o.Config.Watcher.Enabled {
		x.runs.Lock()
		if x.watcher == nil && !x.closed {
			x.watcher = x.startWatching(!indexes)
		}
		x.runs.Unlock()
	}
	switch {
	case indexes:
		x.background(x.indexAll, false)
		x.warm.Go(x.verifyRegularly)
	case usable && s != nil && len(s.damage) > 0:
		x.background(x.repair, true)
	}
}

// open opens the stores unless they are open; with write, for writing. An index that
// has to be rebuilt counts as open: every use but Status returns the reason.
func (x *Index) open(write bool) error {
	write = write && x.o.Holder != nil
	x.mu.RLock()
	done := x.isOpen(write)
	x.mu.RUnlock()
	if done {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isOpen(write) {
		return nil
	}
	if err := x.closeStores(); err != nil {
		return err
	}
	err := x.openStores(write, false)
	if rebuild, _ := errors.AsType[*RebuildError](err); rebuild != nil && rebuild.part == documentsFile {
		x.damage[documentsFile] = errors.New(rebuild.Reason)
		err = x.openStores(write, false)
	}
	if write && x.o.Rebuild {
		if _, ok := errors.AsType[*RebuildError](err); ok {
			err = x.replaceStores()
		}
	}
	if _, ok := errors.AsType[*RebuildError](err); ok {
		x.unusable, err = err, nil
	} else if errors.Is(err, ErrNoIndex) {
		err = nil
	}
	x.opened = err == nil
	return err
}

// isOpen reports whether nothing is left for open to do. x.mu is held.
func (x *Index) isOpen(write bool) bool {
	return x.opened && (!write || x.unusable != nil || x.stores != nil && x.stores.writable)
}

// openStores opens the stores and the retriever. With fresh, the mirror begins new
// collections. x.mu is held for writing.
func (x *Index) openStores(write, fresh bool) error {
	s, err := x.findStores(write)
	if err != nil {
		return err
	}
	if write && x.o.Store != nil {
		if err := s.MirrorTo(x.o.Store, x.o.Description, x.model.Open, &mirror.Options{Rebuild: fresh, Log: x.o.Logger}); err != nil {
			return errors.Join(err, s.Close())
		}
		s.Mirror.Follow()
	}
	o := RetrieverOptions(x.o.Config, x.o.Logger)
	o.Reranker = x.o.Reranker
	if x.o.ReadUsage != nil {
		o.Reweigher, o.ReweighLimit = retriever.CoUsage{Read: x.o.ReadUsage, Log: x.o.Logger}, retriever.CoUsageLimit
	}
	sources := s.Sources(x.model, &bpe.Counter{})
	if s.own && s.Vectors != nil {
		sources.Vectors = noticing{s.Vectors, &x.met}
	}
	sources.Building = x.building
	r, err := retriever.New(sources, o)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	x.stores, x.retriever, x.unusable = s, r, nil
	return nil
}

// RetrieverOptions are the settings of c for a retriever.
func RetrieverOptions(c config.Config, log *slog.Logger) *retriever.Options {
	return &retriever.Options{
		VectorWeight: c.Search.SemanticWeight, KeywordWeight: c.Search.KeywordWeight,
		QueryCache: c.Search.EmbeddingCacheMaxEntries, TokenLimit: c.Core.TokenLimit,
		Extensions: c.Extensions(), Masks: c.Masks(), Contexts: c.Search.Contexts(), Log: log,
		RerankBudget: time.Duration(c.Retrieval.RerankMS) * time.Millisecond,
	}
}

// findStores opens the files of the folder, or returns the remote stores.
func (x *Index) findStores(write bool) (*Stores, error) {
	if x.o.Remote != nil {
		return x.o.Remote, nil
	}
	damage := maps.Clone(x.damage)
	if write {
		if why, err := removeEmpty(x.o.Dir, x.o.Description, x.damage[documentsFile]); err != nil {
			return nil, err
		} else if why != nil {
			x.notice("the documents of the index cannot be used", why)
		}
		clear(x.damage)
	} else if x.damage[documentsFile] != nil || !Exists(x.o.Dir) {
		return nil, ErrNoIndex
	}
	s, err := Open(x.o.Selection, x.o.Dir, x.o.Config.Masks(), x.o.Description, write, damage, x.o.Logger)
	if err != nil {
		return nil, err
	}
	for _, part := range derived {
		switch why := s.damage[part.name]; {
		case why == nil:
		case write:
			x.notice(part.what+" cannot be used", why)
		default: // opening it again for writing might fail: scorch keeps a lock
			x.damage[part.name] = why
		}
	}
	return s, nil
}

// replaceStores removes the index and opens an empty one. x.mu is held for writing.
func (x *Index) replaceStores() error {
	if err := x.closeStores(); err != nil {
		x.o.Logger.Warn("closing an index that is removed", "error", err)
	}
	if err := removeIndex(x.o.Dir, x.o.Description); err != nil {
		return err
	}
	return x.openStores(true, true)
}

func (x *Index) closeStores() error {
	s := x.stores
	x.stores, x.retriever, x.opened = nil, nil, false
	if s == nil {
		return nil
	}
	return s.Close()
}

// notice reports an index that is made again.
func (x *Index) notice(what string, why error) {
	if x.o.Notice != nil {
		x.o.Notice(fmt.Sprintf("%s: %v; it is being rebuilt", what, why))
		return
	}
	x.o.Logger.Warn(what+"; it is being rebuilt", "reason", why)
}

// use opens the stores where necessary and returns them, nil where there is no
// index. Unless it fails, x.mu is held for reading: the caller unlocks it.
func (x *Index) use() (*Stores, error) {
	<-x.started
	x.mu.RLock()
	for !x.opened {
		x.mu.RUnlock()
		if err := x.open(x.o.Write || x.o.Refresh); err != nil {
			return nil, err
		}
		x.mu.RLock()
	}
	if x.unusable != nil {
		defer x.mu.RUnlock()
		return nil, x.unusable
	}
	return x.stores, nil
}

// useFilled is use for calls that need an index: without one it fails with ErrNoIndex.
func (x *Index) useFilled() (*Stores, error) {
	s, err := x.use()
	if err != nil {
		return nil, err
	}
	ok, err := s.filled()
	if err == nil && !ok {
		err = ErrNoIndex
	}
	if err != nil {
		x.mu.RUnlock()
	}
	return s, err
}

// Search answers a query. As many searches run at a time as there are processors, in
// the order of their arrival: more would share the processors, and all end later.
func (x *Index) Search(ctx context.Context, q retriever.Query) (a *retriever.Answer, err error) {
	again := q
	defer x.repaired(&err, func() { a, err = x.Search(ctx, again) })
	x.prefer(ctx, q)
	if x.turns != nil {
		if err := x.turns.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer x.turns.Release(1)
	}
	s, err := x.useFilled()
	if errors.Is(err, ErrNoIndex) {
		return x.missing(q.Mode), nil
	} else if err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	lacks := s.lacksKeywords()
	if lacks && q.Mode == retriever.Keyword {
		q.Mode = retriever.Semantic
	}
	a, err = x.retriever.Search(ctx, q)
	if err == nil && lacks {
		a.Degraded = append(slices.Clone(a.Degraded), KeywordsLacking)
		a.Hint = s.keywordsHint()
	}
	return a, err
}

// missing is the answer where there is no index.
func (x *Index) missing(mode retriever.Mode) *retriever.Answer {
	a := &retriever.Answer{
		Results: []retriever.Result{}, Mode: mode, Index: retriever.IndexState{State: "missing"}, Degraded: []string{},
		Reason: "not_indexed", Hint: "this folder has no index yet: call the tool index, or run `cairn index`",
	}
	if problem := x.documentsProblem(); problem != "" {
		a.Degraded, a.Hint = []string{DocumentsLacking}, problem
	}
	return a
}

// documentsProblem says what to do about documents that are damaged, "" if they are not.
func (x *Index) documentsProblem() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if why := x.damage[documentsFile]; why != nil {
		return fmt.Sprintf("the index is damaged: %v; call the tool index, or run `cairn index`, to rebuild it", why)
	}
	return ""
}

// Explain answers a query with its trace.
func (x *Index) Explain(ctx context.Context, r ExplainRequest) (t *retriever.Trace, err error) {
	defer x.repaired(&err, func() { t, err = x.Explain(ctx, r) })
	x.prefer(ctx, r.Query)
	if _, err := x.useFilled(); err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	return x.retriever.Explain(ctx, r.Query, r.Candidates)
}

// Read returns a document, a section or lines of one.
func (x *Index) Read(ctx context.Context, r retriever.ReadRequest) (out *retriever.Reading, err error) {
	defer x.repaired(&err, func() { out, err = x.Read(ctx, r) })
	if _, err := x.useFilled(); err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	return x.retriever.Read(ctx, r)
}

// ReadAll returns several places at once.
func (x *Index) ReadAll(ctx context.Context, r retriever.ReadRequest) (out *retriever.Readings, err error) {
	defer x.repaired(&err, func() { out, err = x.ReadAll(ctx, r) })
	if _, err := x.useFilled(); err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	return x.retriever.ReadAll(ctx, r)
}

// Removed implements owner.Service: files of the open stores are missing.
func (x *Index) Removed() bool {
	if !x.mu.TryRLock() {
		return false // the stores are being replaced
	}
	defer x.mu.RUnlock()
	return x.stores != nil && x.stores.removed()
}

// Close ends all work and closes the files, without complaint when they were removed.
func (x *Index) Close() error {
	removed := x.Removed()
	x.runs.Lock()
	x.closed = true
	current, watcher := x.current, x.watcher
	x.runs.Unlock()
	if watcher != nil {
		watcher.cancel()
	}
	if current != nil {
		current.Stop()
	}
	if watcher != nil {
		<-watcher.done
	}
	x.stopUpdates()
	x.end()
	x.warm.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	err := errors.Join(x.closeStores(), x.model.Close())
	x.opened, x.unusable = true, owner.ErrEnded
	if removed && err != nil {
		x.o.Logger.Debug("closing an index that was removed", "error", err)
		return nil
	}
	return err
}
