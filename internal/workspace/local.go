package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cairn/indexer"
	"cairn/internal/job"
	"cairn/internal/mirror"
	"cairn/internal/store/docs"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// local works with the folder's own stores, as their owner or as a reader.
type local struct {
	w      *Workspace
	lock   *fileLock
	me     *Holder      // nil for a reader
	server *ownerServer // nil for a reader
	model  *models.Lazy
	warm   sync.WaitGroup
	turns  *semaphore.Weighted // to search; nil without a bound

	// mu is held for reading by whoever uses the stores, and for writing to
	// replace them.
	mu        sync.RWMutex
	stores    *stores
	retriever *retriever.Retriever
	broken    error // why the stores are not open

	// swap is held for reading by what writes to the stores beside a run, and
	// for writing to replace them; it comes before mu.
	swap    sync.RWMutex
	indexer *indexer.Indexer // of the stores, from its first use on; guarded by mu

	runs     sync.Mutex // guards what follows
	current  *run       // the newest; nil before the first
	problem  error      // of the newest run, unless somebody waited for it
	watching *watching  // nil unless the folder is watched
	closing  bool
	// beside ends what writes to the stores beside a run, which a rebuild
	// does; it is replaced while swap is held for writing.
	beside     context.Context
	stopBeside context.CancelFunc
}

// run is one run of the indexer.
type run struct {
	*job.Job[*IndexReport]
	mends bool // does less than a run that a caller asks for, which takes its place
}

// openReader opens an existing index for searching. lock is held for reading
// and released by close. An index that has to be rebuilt opens as well: every
// use but Status says so.
func openReader(w *Workspace, lock *fileLock) (engine, error) {
	l := &local{w: w, lock: lock}
	l.start()
	err := l.openStores(Reading)
	if _, rebuild := errors.AsType[*RebuildError](err); rebuild {
		l.broken = err
	} else if err != nil {
		l.close()
		if errors.Is(err, ErrNoIndex) {
			return missing{w}, nil
		}
		return nil, err
	}
	return l, nil
}

// openOwner opens or makes the index for writing, and serves it to other
// processes. lock is held as the owner and released by close. As for a reader,
// an index that has to be rebuilt opens; Index can be asked to rebuild it.
func openOwner(w *Workspace, lock *fileLock, me Holder) (engine, error) {
	l := &local{w: w, lock: lock, me: &me}
	l.beside, l.stopBeside = context.WithCancel(context.Background())
	l.start()
	listener, err := listen(socketPath(w.dir, os.TempDir()))
	if err != nil {
		l.close()
		return nil, err
	}
	opened := make(chan struct{})
	l.server = serve(listener, hello{Protocol: protocol, Model: w.options.Description.ID, Holder: me, Store: w.options.storeAddress()}, func() (engine, error) {
		<-opened
		return l, nil
	}, w.options.Logger)
	err = l.openStores(Owning)
	if _, rebuild := errors.AsType[*RebuildError](err); rebuild {
		l.broken = err
		if w.options.Rebuild {
			l.broken = l.replaceStores()
		}
		err = nil
	}
	close(opened)
	if err != nil {
		l.close()
		return nil, err
	}
	indexes := w.options.Background && l.broken == nil
	mends := !indexes && l.broken == nil && (l.stores.noText != nil || l.stores.noVectors != nil)
	if w.options.Watch && w.config.Watcher.Enabled {
		l.watching = l.startWatching(!indexes)
	}
	if indexes {
		l.background(l.indexAll, false)
	} else if mends {
		l.background(l.mend, true)
	}
	return l, nil
}

// start prepares the model, and loads it in the background if it is sure to be needed.
func (l *local) start() {
	l.turns = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
	l.model = models.NewLazy(l.w.options.Description, l.w.options.Model)
	if l.w.options.Warm {
		l.warm.Go(func() {
			// Who needs the model gets the same error again.
			_, _ = l.model.Open()
		})
	}
}

// openStores opens the index and what answers from it.
func (l *local) openStores(access Access) error { return l.openStoresAnew(access, false) }

// openStoresAnew is openStores; with fresh the next Sync of the mirror makes new
// collections.
func (l *local) openStoresAnew(access Access, fresh bool) error {
	w := l.w
	if access == Owning {
		if anew, err := emptied(w.dir); err != nil {
			return err
		} else if anew {
			w.notice("the index holds nothing", fmt.Errorf("%s is empty", filepath.Join(w.dir, documentsFile)))
		}
	}
	s, err := openStores(w.selection, w.dir, w.options.Description, access, access != apart, w.options.Logger)
	if err != nil {
		return err
	}
	s.paths = slices.DeleteFunc(s.paths, func(path string) bool { _, err := os.Stat(path); return err != nil }) // a reader's may be missing
	if access == Owning && s.noText != nil {
		w.notice("the keyword index cannot be used", s.noText)
	}
	if access == Owning && s.noVectors != nil {
		w.notice("the vectors cannot be used", s.noVectors)
	}
	if w.options.Store != nil && access == Owning {
		if err := s.mirrorTo(w.options.Store, w.options.Description, l.model.Open, &mirror.Options{Rebuild: fresh, Log: w.options.Logger}); err != nil {
			return errors.Join(err, s.close())
		}
		s.mirror.Follow()
	}
	r, err := retriever.New(retriever.Sources{
		Documents: s.docs, Keyword: s.keyword(), Vectors: s.nearest(), Embedder: l.model, Budget: &bpe.Counter{}, Files: s.files, Building: l.building,
	}, w.retrieverOptions())
	if err != nil {
		return errors.Join(err, s.close())
	}
	l.stores, l.retriever, l.indexer, l.broken = s, r, nil, nil
	return nil
}

// retrieverOptions are the same wherever the index is.
func (w *Workspace) retrieverOptions() *retriever.Options {
	return &retriever.Options{
		VectorWeight: w.config.Search.SemanticWeight, KeywordWeight: w.config.Search.KeywordWeight,
		QueryCache: w.config.Search.EmbeddingCacheMaxEntries, TokenLimit: w.config.Core.TokenLimit,
		Extensions: w.config.Extensions(), Log: w.options.Logger,
		Reweigher: retriever.CoUsage{Usage: w.usageGraph, Log: w.options.Logger}, ReweighLimit: retriever.CoUsageLimit,
	}
}

// replaceStores throws the index away and opens an empty one. l.mu is held for
// writing, or nobody else has l yet.
func (l *local) replaceStores() error {
	if l.stores != nil {
		if err := l.stores.close(); err != nil {
			l.w.options.Logger.Warn("closing an index that is thrown away", "error", err)
		}
		l.stores, l.retriever = nil, nil
	}
	if err := wipe(l.w.dir); err != nil {
		return err
	}
	return l.openStoresAnew(Owning, true)
}

// using runs fn while the stores stay open.
func using[T any](l *local, fn func() (*T, error)) (*T, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.broken != nil && !l.lost(nil) {
		return nil, l.broken
	}
	if l.stores == nil || l.lost(l.stores) {
		return nil, errGone
	}
	return fn()
}

// Search has as many searches at a time as there are processors, in the order
// in which they came: more would only take turns on them, and all be late. Reads
// are short and do not wait.
func (l *local) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	if l.turns != nil {
		if err := l.turns.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer l.turns.Release(1)
	}
	return using(l, func() (*retriever.Answer, error) {
		lacks := l.stores.lacksKeywords()
		if lacks && q.Mode == retriever.Keyword {
			q.Mode = retriever.Semantic
		}
		a, err := l.retriever.Search(ctx, q)
		if err == nil && lacks {
			a.Degraded = append(slices.Clone(a.Degraded), KeywordsLacking)
			a.Hint = l.keywordsHint()
		}
		return a, err
	})
}

func (l *local) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	return using(l, func() (*retriever.Trace, error) { return l.retriever.Explain(ctx, r.Query, r.Candidates) })
}

func (l *local) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return using(l, func() (*retriever.Reading, error) { return l.retriever.Read(ctx, r) })
}

func (l *local) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return using(l, func() (*retriever.Readings, error) { return l.retriever.ReadAll(ctx, r) })
}

func (l *local) Status(context.Context) (*Status, error) {
	s, err := using(l, func() (*Status, error) {
		meta, err := l.stores.docs.Meta()
		if err != nil {
			return nil, err
		}
		counts, err := l.stores.docs.Counts()
		if err != nil {
			return nil, err
		}
		s := l.w.status(retriever.NewIndexState(meta, counts, l.building()))
		if l.stores.lacksKeywords() {
			s.Degraded, s.Problem = []string{KeywordsLacking}, l.keywordsHint()
		}
		skipped, err := l.stores.docs.Skipped()
		for _, skip := range skipped {
			s.Skipped[skip.Reason]++
		}
		return s, err
	})
	if rebuild, ok := errors.AsType[*RebuildError](err); ok {
		s, err = l.w.status(retriever.IndexState{State: "unusable"}), nil
		s.Problem = rebuild.Error()
	}
	if err != nil {
		return nil, err
	}
	s.Owner = l.me
	l.runs.Lock()
	defer l.runs.Unlock()
	if l.watching != nil {
		var problem string
		if s.Watching, problem = l.watching.state(); problem != "" {
			s.Problem = problem
		}
		s.KeywordSince, s.VectorsSince = l.watching.behind()
	}
	if l.current != nil && l.current.Running() {
		p := l.current.Progress()
		s.Progress = &p
	} else if l.problem != nil {
		s.Problem = l.problem.Error()
	}
	return s, nil
}

// building reports whether a run is going on.
func (l *local) building() bool {
	l.runs.Lock()
	defer l.runs.Unlock()
	return l.current != nil && l.current.Running()
}

// Index implements engine. The run belongs to l: it outlives the caller.
func (l *local) Index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
	if l.me == nil {
		return nil, errReadOnly
	}
	if l.gone() {
		return nil, errGone
	}
	l.runs.Lock()
	current := l.current
	for current != nil && current.mends && current.Running() {
		l.runs.Unlock()
		current.Stop()
		l.runs.Lock()
		current = l.current
	}
	if current != nil && current.Running() {
		if !r.Join || r.Rebuild {
			l.runs.Unlock()
			return nil, &LockError{LockFile: l.lock.path, Holder: *l.me, Doing: "indexing"}
		}
	} else {
		current = &run{Job: job.Start(func(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
			return l.index(ctx, r, progress)
		})}
		l.current, l.problem = current, nil
	}
	l.runs.Unlock()
	report, err := current.Follow(ctx, progress)
	if err != nil && ctx.Err() == nil && l.gone() {
		return nil, errGone // whatever it was, the run can be had again
	}
	return report, err
}

// background starts a run that nobody waits for; Status tells what became of it.
func (l *local) background(work func(context.Context, func(Progress)) (*IndexReport, error), mends bool) {
	l.runs.Lock()
	defer l.runs.Unlock()
	watching := l.watching
	current := &run{mends: mends}
	current.Job = job.Start(func(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
		if watching != nil {
			// What changes after this run has looked is noticed then.
			select {
			case <-watching.ready:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return work(ctx, progress)
	})
	l.current = current
	l.warm.Go(func() {
		_, err := current.Follow(context.Background(), nil)
		if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errGone) {
			return
		}
		l.w.options.Logger.Error("indexing in the background", "error", err)
		l.runs.Lock()
		defer l.runs.Unlock()
		if l.current == current {
			l.problem = err
		}
	})
}

// indexAll is the run of a process that indexes by itself.
func (l *local) indexAll(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	return l.index(ctx, IndexRequest{}, progress)
}

// index is one run.
func (l *local) index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
	start := time.Now()
	if _, err := l.model.Open(); err != nil {
		return nil, fmt.Errorf("opening the embedding model: %w", err)
	}
	if r.Rebuild {
		if err := l.rebuild(); err != nil {
			return nil, err
		}
	}
	// The stores are not replaced while a run goes on, so it need not hold l.mu.
	x, s, err := l.writer()
	if err != nil {
		return nil, err
	}
	if s.mirror != nil {
		if err := s.mirror.Adopt(ctx); err != nil {
			return nil, err
		}
	}
	report, err := runPhases(ctx, x, r.NoEmbed, func(p indexer.Progress) { progress(progressOf(p)) })
	if err == nil && s.mirror != nil {
		_, err = s.mirror.Sync(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	counts, err := s.docs.Counts()
	if err != nil {
		return nil, err
	}
	return reportOf(report, counts, time.Since(start)), nil
}

// rebuild replaces the stores, after ending what goes on beside the run.
func (l *local) rebuild() error {
	l.stopBeside()
	l.swap.Lock()
	defer l.swap.Unlock()
	l.beside, l.stopBeside = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.replaceStores()
	if err != nil {
		l.broken = err
	}
	return err
}

// writer returns the one Indexer of the stores, whose locks keep all that write
// apart, and the stores.
func (l *local) writer() (*indexer.Indexer, *stores, error) {
	model, err := l.model.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("opening the embedding model: %w", err)
	}
	l.mu.RLock()
	x, s := l.indexer, l.stores
	lost := l.lost(s)
	l.mu.RUnlock()
	if lost {
		return nil, nil, errGone
	}
	if x != nil && s != nil {
		return x, s, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s := l.stores; {
	case l.broken != nil:
		return nil, nil, l.broken
	case s == nil:
		return nil, nil, errGone
	case l.indexer == nil:
		g := guard{l, s}
		l.indexer = indexer.New(indexer.Stores{
			Files: s.files, Docs: s.docs, Keyword: guardedKeyword{s.keyword(), g}, Vectors: guardedVectors{s.nearest(), g}, Cache: s.cache,
		}, model, &indexer.Options{Walk: l.w.config.Walk()})
	}
	return l.indexer, l.stores, nil
}

// work writes to the stores beside a run. It ends early, with context.Canceled,
// when a run is about to replace them.
func (l *local) work(ctx context.Context, fn func(context.Context, *indexer.Indexer, *stores) (*indexer.Report, error)) (*indexer.Report, error) {
	l.swap.RLock()
	defer l.swap.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.beside, cancel)()
	x, s, err := l.writer()
	if err != nil {
		return nil, err
	}
	return fn(ctx, x, s)
}

// runPhases runs the indexer with or without its last phase.
func runPhases(ctx context.Context, x *indexer.Indexer, noEmbed bool, progress func(indexer.Progress)) (*indexer.Report, error) {
	if !noEmbed {
		return x.Run(ctx, progress)
	}
	report, err := x.Scan(ctx, progress)
	if err != nil {
		return nil, err
	}
	return report, x.Keywords(ctx, progress)
}

// progressOf translates the indexer's progress.
func progressOf(p indexer.Progress) Progress {
	out := Progress{Phase: string(p.Phase), Done: p.ChunksDone, Total: p.ChunksTotal, Searchable: p.Phase == indexer.PhaseVectors}
	if out.Total == 0 {
		out.Done, out.Total = p.FilesDone, p.FilesTotal
	}
	return out
}

// reportOf translates the indexer's report.
func reportOf(r *indexer.Report, counts docs.Counts, took time.Duration) *IndexReport {
	out := &IndexReport{
		Files: r.Files, Added: r.Added + r.Changed, Removed: r.Removed, Unchanged: r.Unchanged,
		Sections: r.Sections, Chunks: r.Chunks, Embedded: r.Embedded, Cached: r.FromCache,
		Pending: counts.Vectors.Chunks, Seconds: took.Seconds(),
	}
	for _, n := range r.Skipped {
		out.Skipped += n
	}
	return out
}

// close ends the run and the serving, and closes what is open. Readers of
// other processes ask elsewhere. What was lost is closed without complaint.
func (l *local) close() error {
	lost := l.gone()
	l.runs.Lock()
	l.closing = true
	current, watching := l.current, l.watching
	l.runs.Unlock()
	if watching != nil {
		watching.cancel()
	}
	if current != nil {
		current.Stop()
	}
	if watching != nil {
		<-watching.done
	}
	if l.stopBeside != nil {
		l.stopBeside()
	}
	if l.server != nil {
		l.server.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warm.Wait()
	var err error
	if l.stores != nil {
		err = l.stores.close()
		l.stores = nil
	}
	err = errors.Join(err, l.model.Close(), l.lock.release())
	if lost && err != nil {
		l.w.options.Logger.Debug("closing an index that was removed", "error", err)
		return nil
	}
	return err
}
