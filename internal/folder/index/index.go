// Package index opens, searches and updates the index of one folder in the process that
// owns its files. Package owner decides which process that is.
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
	"cairn/indexer"
	"cairn/internal/base/health"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/config"
	"cairn/internal/folder/history"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/scan"
	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// Progress is the progress of a run.
type Progress = job.Progress

// Settings configures an index and the workspace that opens it. Description and Model are
// required.
type Settings struct {
	// Description describes the model, which need not be open. Model opens it; the index
	// calls it at most once, when it first needs the model.
	Description models.Description
	Model       func() (models.Embedder, error)
	// Tokenizer, if not nil, is that of Model. It does not open the model, which words do not need.
	Tokenizer func() (models.Tokenizer, error)
	// Warm opens the model at once, in the background.
	Warm bool
	// Background starts a run of the indexer whenever this process becomes the owner. Watch
	// keeps the index up to date with the files, if the configuration has watcher.enabled.
	// Poll makes Watch walk the folder even if the operating system reports changes.
	Background, Watch, Poll bool
	// VerifyEvery is the interval at which a process with Background verifies and repairs
	// the index; 0 means a day.
	VerifyEvery time.Duration
	// Refresh announces a call of Index, so that the first use opens the index for writing
	// and Index need not open it again. Rebuild replaces an index that cannot be opened.
	Refresh, Rebuild bool
	// Store, if not nil, is a server's copy of the index. The owner keeps it up to date.
	Store *mirror.Store
	// Notice receives a line for the user if an unusable index is rebuilt. Nil sends it
	// to Logger.
	Notice func(line string)
	// Logger receives messages about background work.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Options configures New. Selection, Config, Dir, Logger and Now are required.
type Options struct {
	Settings
	Selection config.Selection
	Config    config.Config
	// Dir is the directory of the index.
	Dir string
	// Holder describes this process if it owns Dir. Nil means that it only reads.
	Holder *owner.Holder
	// Silent, if not nil, is the owner, which does not answer. Holder is nil then: the index
	// is read without the owner, and answers say so, see OwnerLacking.
	Silent *owner.LockError
	// Held, if not nil, reports whether this process still owns Dir.
	Held func() bool
	// Write makes New open the index for writing, and create it if it is missing.
	// Otherwise the first call of Index or Watch does.
	Write bool
	// Reranker, if not nil, returns the re-ranker of all searches. The caller closes it.
	Reranker func() (models.Reranker, error)
	// Remote, if not nil, answers instead of the files in Dir. It is read only.
	Remote *Stores
	// ReadUsage, if not nil, calls a function with the co-usage graph, for queries with a
	// context.
	ReadUsage func(func(*graphrank.Graph)) error
	// History, if not nil, relates documents by the commits that changed them.
	History *history.History
	// Recovered, if not nil, returns the files of the folder that were damaged, for the
	// warnings of Status.
	Recovered func() []health.File
}

// Index is the index of one folder. It opens its files at their first use. It is
// safe for concurrent use.
type Index struct {
	options    Options
	model      *models.Lazy
	goroutines sync.WaitGroup      // in the background
	searches   *semaphore.Weighted // bounds concurrent searches; nil means no bound
	// started is closed when the stores are open for writing; calls wait for it.
	started chan struct{}

	// mu is held for reading while the stores are in use, and for writing to
	// replace them.
	mu        sync.RWMutex
	opened    bool
	stores    *Stores // nil when there is no index
	retriever *retriever.Retriever
	unusable  error // why the stores are not open
	// damage is the known damage of parts of the index. The owner removes the entry of a
	// part that it rebuilds. vectorDamage is damage of the vectors that a search has found.
	damage       Damage
	vectorDamage atomic.Pointer[error]
	filling      atomic.Int32          // runs and watchers, which fill an index that is empty
	counted      ofDocuments[counted]  // for Status
	paths        ofDocuments[[]string] // for indexed
	// known and complete are for Lines. complete reports that the documents have the state
	// of each file of a watched folder, except for its unhandled changes.
	known    ofDocuments[*scan.Known]
	complete atomic.Bool
	notes    noteMarks

	// swap is held for reading by writes outside a run, and for writing to replace
	// the stores; it is locked before mu.
	swap sync.RWMutex

	runs    sync.Mutex // guards the fields below
	current *run       // the newest run; nil before the first
	problem error      // of the newest run, if no caller waits for it
	watcher *watcher   // nil unless the folder is watched
	closed  bool
	// updates is the context of writes outside a run; stopUpdates ends them before a
	// rebuild. Both are replaced while swap is held for writing.
	updates        context.Context
	stopUpdates    context.CancelFunc
	readingHistory atomic.Bool // in the background
	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

// New returns the index in o.Dir and starts the background work of o.
func New(o Options) *Index {
	x := &Index{options: o, model: models.NewLazy(o.Description, o.Model), damage: Damage{}, started: make(chan struct{})}
	x.model.Tokenize = o.Tokenizer
	x.updates, x.stopUpdates = context.WithCancel(context.Background())
	x.life, x.end = context.WithCancel(context.Background())
	if o.Remote == nil { // searches of a server mostly wait for it
		x.searches = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
	}
	if o.Warm {
		x.goroutines.Go(func() { _, _ = x.model.Open() }) // the first use returns the same error
	}
	if o.Holder == nil || !o.Write {
		close(x.started)
		return x
	}
	x.goroutines.Go(func() {
		defer close(x.started)
		x.start()
	})
	return x
}

// start opens the stores and starts the background work.
func (x *Index) start() {
	if err := x.open(true); err != nil {
		return // the first use returns the same error
	}
	x.mu.RLock()
	s, usable := x.stores, x.unusable == nil
	x.mu.RUnlock()
	indexes := x.options.Background && usable
	if indexes {
		x.readHistory()
	}
	if x.options.Watch && x.options.Config.Watcher.Enabled {
		_, _ = x.watching(!indexes) // fails only after Close
	}
	switch {
	case indexes:
		x.background(x.indexAll, false)
		x.goroutines.Go(x.verifyRegularly)
	case usable && s != nil && len(s.damage) > 0:
		x.background(x.repair, true)
	}
}

// open opens the stores unless they are open; with write, for writing. An index that must
// be rebuilt counts as open: every method but Status returns the reason.
func (x *Index) open(write bool) error {
	write = write && x.options.Holder != nil
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
	rebuild, _ := errors.AsType[*RebuildError](err)
	if rebuild != nil && rebuild.part == DocumentsFile {
		x.damage[DocumentsFile] = rebuild.why
		err = x.openStores(write, false)
		rebuild, _ = errors.AsType[*RebuildError](err)
	}
	if rebuild != nil && write && x.options.Rebuild {
		err = x.replaceStores()
		rebuild, _ = errors.AsType[*RebuildError](err)
	}
	if rebuild != nil {
		x.unusable, err = err, nil
	} else if errors.Is(err, ErrNoIndex) {
		err = nil
	}
	x.opened = err == nil
	return err
}

// isOpen reports whether the stores are open, for writing if write is set. The caller
// holds x.mu.
func (x *Index) isOpen(write bool) bool {
	return x.opened && (!write || x.unusable != nil || x.stores != nil && x.stores.writable)
}

// openStores opens the stores and the retriever. With fresh, the mirror starts new
// collections. The caller holds x.mu for writing.
func (x *Index) openStores(write, fresh bool) error {
	s, err := x.findStores(write)
	if err != nil {
		return err
	}
	if write && x.options.Store != nil {
		if err := s.MirrorTo(x.options.Store, x.model, &mirror.Options{Rebuild: fresh, Log: x.options.Logger}); err != nil {
			return errors.Join(err, s.Close())
		}
		s.Mirror.Follow()
	}
	o := RetrieverOptions(x.options.Config, x.options.Logger)
	o.Reranker = x.options.Reranker
	if x.options.ReadUsage != nil {
		usage := retriever.CoUsage{Read: x.options.ReadUsage, Log: x.options.Logger}
		if x.options.History != nil {
			usage.History = x.options.History
		}
		o.Reweigher, o.ReweighLimit = usage, retriever.CoUsageLimit
	}
	sources := s.Sources(x.model, &bpe.Counter{})
	if s.own && s.Vectors != nil {
		sources.Vectors = recordingVectors{s.Vectors, &x.vectorDamage}
	}
	sources.Building = x.building
	r, err := retriever.New(sources, o)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	x.stores, x.retriever, x.unusable = s, r, nil
	return nil
}

// RetrieverOptions returns the options of a retriever from the configuration.
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
	if x.options.Remote != nil {
		return x.options.Remote, nil
	}
	lost, fills := lostDocuments(x.options.Dir, x.damage[DocumentsFile]), write && x.filling.Load() > 0
	switch {
	case lost != nil && fills:
		if err := removeIndex(x.options.Dir, x.options.Description); err != nil {
			return nil, err
		}
		x.notice("the documents of the index cannot be used", lost)
	case lost != nil:
		x.damage[DocumentsFile] = lost
		return nil, ErrNoIndex
	case !write && !Exists(x.options.Dir):
		return nil, ErrNoIndex
	}
	damage := maps.Clone(x.damage)
	if write {
		clear(x.damage)
	}
	s, err := Open(x.options.Selection, x.options.Dir, x.options.Config.Masks(), x.options.Description, write, damage, x.options.Logger)
	if err != nil {
		return nil, err
	}
	for _, part := range derived {
		switch why := s.damage[part.name]; {
		case why == nil:
		case write:
			x.notice(part.what+" cannot be used", why)
		default: // opening it again for writing could fail: scorch keeps a lock
			x.damage[part.name] = why
		}
	}
	return s, nil
}

// replaceStores removes the index and opens an empty one. The caller holds x.mu for
// writing.
func (x *Index) replaceStores() error {
	if err := x.closeStores(); err != nil {
		x.options.Logger.Warn("closing an index that is removed", "error", err)
	}
	if err := removeIndex(x.options.Dir, x.options.Description); err != nil {
		return err
	}
	return x.openStores(true, true)
}

func (x *Index) closeStores() error {
	s := x.stores
	x.stores, x.retriever, x.opened = nil, nil, false
	x.complete.Store(false)
	if s == nil {
		return nil
	}
	return s.Close()
}

// notice reports that an index is being rebuilt.
func (x *Index) notice(what string, why error) {
	if x.options.Notice != nil {
		x.options.Notice(fmt.Sprintf("%s: %v; it is being rebuilt", what, why))
		return
	}
	x.options.Logger.Warn(what+"; it is being rebuilt", "reason", why)
}

// use opens the stores if necessary and returns them, nil if there is no index. Unless it
// fails, it returns with x.mu locked for reading, and the caller unlocks it.
func (x *Index) use() (*Stores, error) {
	<-x.started
	x.mu.RLock()
	for !x.opened {
		x.mu.RUnlock()
		if err := x.open(x.options.Write || x.options.Refresh); err != nil {
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

// useFilled is use for callers that need an index. It fails with ErrNoIndex if there is
// none.
func (x *Index) useFilled() (*Stores, error) {
	s, err := x.use()
	if err != nil {
		return nil, err
	}
	if s == nil {
		err = ErrNoIndex
	} else if !s.own {
		var meta docs.Meta
		if meta, err = s.Docs.Meta(); err == nil && meta.Format == 0 {
			err = ErrNoIndex
		}
	}
	if err != nil {
		x.mu.RUnlock()
	}
	return s, err
}

// Search answers a query. At most GOMAXPROCS searches run at a time, in the order of their
// arrival: more would share the processors, and all would end later.
func (x *Index) Search(ctx context.Context, q retriever.Query) (a *retriever.Answer, err error) {
	again := q
	defer x.repaired(&err, func() { a, err = x.Search(ctx, again) })
	x.prefer(ctx, q)
	if x.searches != nil {
		if err := x.searches.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer x.searches.Release(1)
	}
	s, err := x.useFilled()
	if errors.Is(err, ErrNoIndex) {
		a = x.missing(q.Mode)
		x.stillReading(a)
		return a, nil
	} else if err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	if err := x.changed(s, &q); err != nil {
		return nil, err
	}
	lacks := s.lacksKeywords()
	if lacks && q.Mode == retriever.Keyword {
		q.Mode = retriever.Semantic
	}
	a, err = x.retriever.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	if h := x.options.History; h != nil && h.Stale() {
		x.readHistory()
	}
	x.stillReading(a)
	a.Degraded = append(slices.Clone(a.Degraded), x.lacks()...)
	if lacks {
		a.Degraded = append(a.Degraded, KeywordsLacking)
		a.Hint = s.keywordsHint()
	}
	return a, nil
}

// missing is the answer if there is no index.
func (x *Index) missing(mode retriever.Mode) *retriever.Answer {
	a := &retriever.Answer{
		Results: []retriever.Result{}, Mode: mode, Index: retriever.IndexState{State: "missing"}, Degraded: []string{},
		Reason: "not_indexed", Hint: "this folder has no index yet: call the tool index, or run `cairn index`",
	}
	if problem := x.documentsProblem(); problem != "" {
		a.Degraded, a.Hint = []string{DocumentsLacking}, problem
	}
	a.Degraded = append(a.Degraded, x.lacks()...)
	return a
}

// lacks returns OwnerLacking if the owner does not answer.
func (x *Index) lacks() []string {
	if x.options.Silent == nil {
		return nil
	}
	return []string{OwnerLacking}
}

// documentsProblem returns what the user can do about damaged documents, "" if they are
// not damaged.
func (x *Index) documentsProblem() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if why := x.damage[DocumentsFile]; why != nil && outdated(why) {
		return fmt.Sprintf("%v; call the tool index, or run `cairn index`, to rebuild it", why)
	} else if why != nil {
		return fmt.Sprintf("the index is damaged: %v; call the tool index, or run `cairn index`, to rebuild it", why)
	}
	return ""
}

// Explain answers a query with its trace.
func (x *Index) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	x.prefer(ctx, r.Query)
	return answer(x, func() (*retriever.Trace, error) { return x.retriever.Explain(ctx, r.Query, r.Candidates) })
}

// Context compiles the context of a task.
func (x *Index) Context(ctx context.Context, r bundle.Request) (*bundle.Bundle, error) {
	b, err := fromSources(x, func(s bundle.Sources) (*bundle.Bundle, error) { return bundle.Compile(ctx, s, r) })
	if h := x.options.History; err == nil && h != nil && h.Stale() {
		x.readHistory()
	}
	return b, err
}

// References finds who calls or uses a symbol.
func (x *Index) References(ctx context.Context, r bundle.ReferencesRequest) (*bundle.References, error) {
	return fromSources(x, func(s bundle.Sources) (*bundle.References, error) { return bundle.FindReferences(ctx, s, r) })
}

// fromSources calls fn with the sources of an index in use, as answer does.
func fromSources[T any](x *Index, fn func(bundle.Sources) (T, error)) (T, error) {
	known := &scan.Known{}
	_ = x.withFiles(func(k *scan.Known, _ *docs.Store) error { // before the stores are in use
		if k != nil {
			known = k
		}
		return nil
	})
	return answer(x, func() (T, error) {
		return fn(bundle.Sources{
			Search: x.retriever, Documents: x.stores.Docs, History: x.options.History,
			Count: (&bpe.Counter{}).CountTokens, Containing: known.Containing,
		})
	})
}

// SearchFolder answers a query by the words of all documents of a folder. It makes an index
// in dir.
func SearchFolder(ctx context.Context, folder, dir string, model models.Embedder, cfg config.Config, q retriever.Query) (_ *retriever.Answer, err error) {
	log := slog.New(slog.DiscardHandler)
	s, err := Open(config.Selection{Root: folder}, dir, nil, model.Description(), true, nil, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x := s.Indexer(model, &indexer.Options{Walk: &walk.Options{Everything: true, Extensions: cfg.Extensions(), Code: walk.CodeOn}})
	if _, err := x.RunKeywords(ctx, nil); err != nil {
		return nil, err
	}
	r, err := retriever.New(s.Sources(model, &bpe.Counter{}), RetrieverOptions(cfg, log))
	if err != nil {
		return nil, err
	}
	q.Mode = retriever.Keyword
	return r.Search(ctx, q)
}

// Read returns a document, or a section or lines of it.
func (x *Index) Read(ctx context.Context, r retriever.ReadRequest) (reading *retriever.Reading, err error) {
	return answer(x, func() (*retriever.Reading, error) {
		if reading, err = x.retriever.Read(ctx, r); err == nil {
			reading.Degraded = x.lacks()
		}
		return reading, err
	})
}

// ReadAll returns several places at once.
func (x *Index) ReadAll(ctx context.Context, r retriever.ReadRequest) (readings *retriever.Readings, err error) {
	return answer(x, func() (*retriever.Readings, error) {
		if readings, err = x.retriever.ReadAll(ctx, r); err == nil {
			readings.Degraded = x.lacks()
		}
		return readings, err
	})
}

// answer calls fn with the stores of an index in use. It calls fn again after damage that
// could be set aside.
func answer[T any](x *Index, fn func() (T, error)) (out T, err error) {
	defer x.repaired(&err, func() { out, err = answer(x, fn) })
	if _, err := x.useFilled(); err != nil {
		return out, err
	}
	defer x.mu.RUnlock()
	return fn()
}

// Removed implements owner.Service. It reports whether files of the open stores are
// missing.
func (x *Index) Removed() bool {
	if !x.mu.TryRLock() {
		return false // the stores are being replaced
	}
	defer x.mu.RUnlock()
	return x.stores != nil && x.stores.removed()
}

// Close ends all work and closes the files. It returns no error if they were removed.
func (x *Index) Close() error {
	removed := x.Removed()
	x.runs.Lock()
	x.closed = true
	current, watcher := x.current, x.watcher
	x.runs.Unlock()
	if current != nil {
		current.Stop()
	}
	if watcher != nil {
		watcher.Stop()
	}
	x.stopUpdates()
	x.end()
	x.goroutines.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	err := errors.Join(x.closeStores(), x.model.Close())
	x.opened, x.unusable = true, owner.ErrEnded
	if removed && err != nil {
		x.options.Logger.Debug("closing an index that was removed", "error", err)
		return nil
	}
	return err
}
