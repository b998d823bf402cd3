package index

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
	"cairn/internal/text/watch"
	"cairn/retriever"
)

// run is one run of the indexer.
type run struct {
	*job.Job[*IndexReport]
	repairs bool // only fills damaged indexes; a caller's run replaces it
}

// Index starts a run of the indexer and waits for its end. If ctx ends first, the run
// continues until it is complete or the Index is closed. Index calls progress, which may
// be nil, from its own goroutine. If a run is in progress, Index fails with a
// *owner.LockError, unless r.Join is set.
func (x *Index) Index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
	<-x.started
	if x.options.Holder == nil {
		return nil, ErrReadOnly
	}
	x.runs.Lock()
	for current := x.current; current != nil && current.repairs && current.Running(); current = x.current {
		x.runs.Unlock()
		current.Stop()
		x.runs.Lock()
	}
	current := x.current
	switch {
	case x.closed:
		x.runs.Unlock()
		return nil, owner.ErrEnded
	case current == nil || !current.Running():
		current = &run{Job: job.Start(func(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
			return x.index(ctx, r, progress)
		})}
		x.current, x.problem = current, nil
	case !r.Join || r.Rebuild:
		x.runs.Unlock()
		return nil, &owner.LockError{LockFile: filepath.Join(x.options.Dir, owner.LockFile), Holder: *x.options.Holder, Doing: "indexing"}
	}
	x.runs.Unlock()
	report, err := current.Follow(ctx, progress)
	if err != nil && ctx.Err() == nil && (x.options.Held != nil && !x.options.Held() || x.Removed()) {
		return nil, owner.ErrEnded // the caller can repeat the run
	}
	return report, err
}

// background starts a run that no caller waits for. Status shows its error.
func (x *Index) background(work func(context.Context, func(Progress)) (*IndexReport, error), repairs bool) {
	x.runs.Lock()
	defer x.runs.Unlock()
	if x.closed {
		return
	}
	watcher := x.watcher
	current := &run{repairs: repairs}
	current.Job = job.Start(func(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
		if watcher != nil {
			// After this the watcher sees every file that changes while the run reads.
			select {
			case <-watcher.ready:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return work(ctx, progress)
	})
	x.current = current
	x.goroutines.Go(func() {
		r, err := current.Follow(context.Background(), nil)
		if err == nil && watcher != nil && r.Added+r.Removed > 0 {
			watcher.report(WatchEvent{Changed: r.Added, Removed: r.Removed})
		}
		if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, owner.ErrEnded) {
			return
		}
		x.options.Logger.Error("indexing in the background", "error", err)
		x.runs.Lock()
		defer x.runs.Unlock()
		if x.current == current {
			x.problem = err
		}
	})
}

// building reports whether a run is in progress, and how many of the files it has found
// it has not read yet.
func (x *Index) building() (going bool, unread int) {
	x.runs.Lock()
	defer x.runs.Unlock()
	if x.current == nil || !x.current.Running() {
		return false, 0
	}
	if p := x.current.Progress(); p.Phase == indexer.PhaseScan {
		unread = max(0, p.Total-p.Done)
	}
	return true, unread
}

// preferLimit bounds how long prefer waits.
const preferLimit = 10 * time.Second

// prefer makes a run that builds the first index read the files that best match the
// query before the others, and waits until keyword search can find them. If the search is by
// vectors only, or no file has the words, prefer waits for the first vectors.
func (x *Index) prefer(ctx context.Context, q retriever.Query) {
	run := x.firstRun()
	if run == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, preferLimit)
	defer cancel()
	if q.Mode != retriever.Semantic && x.preferWords(ctx, run, q) || q.Mode == retriever.Keyword {
		return
	}
	_, _ = run.Follow(ctx, func(p Progress) {
		if p.Phase == indexer.PhaseVectors && p.Done > 0 {
			cancel()
		}
	})
}

// preferWords waits until keyword search can find the files of run that best match the query,
// and reports whether it finds any. The search that follows reports errors, or answers from
// the files indexed so far.
func (x *Index) preferWords(ctx context.Context, run *run, q retriever.Query) bool {
	indexer, stores, err := x.writer()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	words := query.Parse(q.Text)
	if !run.Progress().Searchable {
		go func() {
			_, _ = run.Follow(ctx, nil)
			cancel()
		}()
		_ = indexer.Prefer(ctx, keyword.QueryTerms(words), q.Filter)
	}
	hits, err := stores.Keyword.Search(context.WithoutCancel(ctx), words, 1, q.Filter)
	return err == nil && len(hits) > 0
}

// firstRun returns the run that builds the first index, nil for none.
func (x *Index) firstRun() *run {
	<-x.started
	x.runs.Lock()
	run := x.current
	x.runs.Unlock()
	if run == nil || !run.Running() {
		return nil
	}
	if s, err := x.use(); err == nil {
		defer x.mu.RUnlock()
		if s != nil {
			if meta, err := s.Docs.Meta(); err == nil && meta.Generation > 0 {
				return nil
			}
		}
	}
	return run
}

// stillReading says in an empty answer how many files the current run has not read.
func (x *Index) stillReading(a *retriever.Answer) {
	if _, unread := x.building(); unread > 0 && len(a.Results) == 0 {
		a.Index.State, a.Index.Unindexed, a.Reason = "building", max(a.Index.Unindexed, unread), "indexing"
		a.Hint = fmt.Sprintf("still reading %d of %d files: search again soon", a.Index.Unindexed, max(a.Index.Files+unread, a.Index.Unindexed))
	}
}

// indexAll is the run that a process starts in the background.
func (x *Index) indexAll(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	return x.index(ctx, IndexRequest{}, progress)
}

// index is one run.
func (x *Index) index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
	x.filling.Add(1)
	defer x.filling.Add(-1)
	start := time.Now()
	if r.Rebuild {
		if _, err := x.model.Open(); err != nil {
			return nil, fmt.Errorf("opening the embedding model: %w", err)
		}
		if err := x.rebuild(); err != nil {
			return nil, err
		}
	}
	report, err := x.fill(ctx, r, start, progress)
	if part := damagedPart(err); part != "" && x.setAside(Damage{part: err}) {
		return x.fill(ctx, r, start, progress)
	}
	return report, err
}

// fill brings the index up to date with the files.
func (x *Index) fill(ctx context.Context, r IndexRequest, start time.Time, progress func(Progress)) (*IndexReport, error) {
	// Nothing replaces the stores during a run, so it need not hold x.mu.
	ix, s, err := x.writer()
	if err != nil {
		return nil, err
	}
	if s.Mirror != nil {
		if err := s.Mirror.Adopt(ctx); err != nil {
			return nil, err
		}
	}
	run := ix.Run
	if r.NoEmbed {
		run = ix.RunKeywords
	}
	var history sync.WaitGroup
	history.Go(func() { x.updateHistory(ctx) })
	_, watched := x.unhandled()
	report, err := run(ctx, progress)
	history.Wait()
	if err == nil {
		x.complete.CompareAndSwap(false, watched)
		x.runs.Lock()
		marks := x.watcher != nil
		x.runs.Unlock()
		if marks {
			x.mark(ctx, watch.Batch{All: true})
		}
	}
	if err == nil && s.Mirror != nil {
		_, err = s.Mirror.Sync(ctx, progress)
	}
	if err != nil {
		return nil, err
	}
	counts, err := s.Docs.Counts()
	if err != nil {
		return nil, err
	}
	return reportOf(report, counts, time.Since(start)), nil
}

// readHistory reads the new commits of the folder in the background, if this process writes.
func (x *Index) readHistory() {
	x.runs.Lock()
	defer x.runs.Unlock()
	if !x.closed && x.options.Holder != nil && x.readingHistory.CompareAndSwap(false, true) {
		x.goroutines.Go(func() {
			defer x.readingHistory.Store(false)
			x.updateHistory(x.life)
		})
	}
}

// updateHistory reads the new commits of the folder.
func (x *Index) updateHistory(ctx context.Context) {
	if h := x.options.History; h != nil {
		if err := h.Update(ctx); err != nil && ctx.Err() == nil {
			x.options.Logger.Warn("reading the git history", "error", err)
		}
	}
}

// exclude ends the writes outside a run, and locks the stores until the caller calls unlock.
func (x *Index) exclude() (unlock func()) {
	x.stopUpdates()
	x.swap.Lock()
	x.updates, x.stopUpdates = context.WithCancel(context.Background())
	x.mu.Lock()
	return func() {
		x.mu.Unlock()
		x.swap.Unlock()
	}
}

// rebuild replaces the stores.
func (x *Index) rebuild() error {
	defer x.exclude()()
	err := x.replaceStores()
	x.opened = true
	if err != nil {
		x.unusable = err
	}
	return err
}

// writer opens the stores for writing. It returns them and their only Indexer, whose
// locks serialize all writes.
func (x *Index) writer() (*indexer.Indexer, *Stores, error) {
	if err := x.open(true); err != nil {
		return nil, nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.stores
	switch {
	case x.unusable != nil:
		return nil, nil, x.unusable
	case s == nil || !s.writable || x.checkHeld(s) != nil:
		return nil, nil, owner.ErrEnded
	}
	s.indexer.Do(func() {
		s.writer = s.Indexer(x.model, &indexer.Options{
			Walk: x.options.Config.Walk(), Masks: x.options.Config.Masks(), Attempts: filepath.Join(x.options.Dir, attemptsFile),
			Held: func() error { return x.checkHeld(s) },
		})
	})
	return s.writer, s, nil
}

// update writes to the stores outside a run. It ends early with context.Canceled if a run
// is about to replace them.
func (x *Index) update(ctx context.Context, fn func(context.Context, *indexer.Indexer, *Stores) (*indexer.Report, error)) (*indexer.Report, error) {
	x.swap.RLock()
	defer x.swap.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.updates, cancel)()
	ix, s, err := x.writer()
	if err != nil {
		return nil, err
	}
	return fn(ctx, ix, s)
}

// reportOf converts the indexer's report.
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
