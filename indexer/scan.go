package indexer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"cairn/internal/base/job"
	"cairn/internal/store/docs"
	"cairn/internal/store/kv"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// putBytes is the number of bytes of text in one transaction. It is large enough that
// waiting for the disk takes a small share of the time, and small enough that a killed
// process loses little work.
const putBytes = 4 << 20

// deletePaths is how many documents one transaction removes.
const deletePaths = 1000

// scanner compares files with the stored documents. Only one goroutine at a time may
// modify it.
type scanner struct {
	x     *Indexer
	t     *Report
	m     *progressReporter
	known map[string]docs.File
	// verdicts holds the files that the last run skipped or cut because of their content.
	verdicts map[string]docs.Skipped

	unread  []walk.Entry    // new or changed files
	chunker *Chunker        // nil if unread was empty
	seen    map[string]bool // indexed files that still exist
	kept    []string        // unreadable paths: the index keeps the documents at and below them
	skipped []docs.Skipped
	touched []docs.File
	young   []docs.File // changed so shortly before they were read that their times are not reliable
	aside   []string    // files that are set aside in this run
	puts    []docs.Put
	size    int // bytes of puts
}

// scan compares all files, or those in only if it is not nil. It first walks the folder
// and recognises unchanged files by size and time, then reads the others. It removes
// documents last, so that a moved file is always found.
func (x *Indexer) scan(ctx context.Context, only *pathSet, progress func(job.Progress), t *Report) error {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if only == nil {
		x.preferences.scan(true)
		defer x.preferences.scan(false)
	}
	known, err := x.known(only)
	if err != nil {
		return fmt.Errorf("reading the list of documents: %w", err)
	}
	verdicts, err := x.verdicts()
	if err != nil {
		return err
	}
	s := &scanner{
		x: x, t: t, known: known, verdicts: verdicts, seen: make(map[string]bool, len(known)),
		m: newProgressReporter(progress, x.now, PhaseScan, 0, 0),
	}
	defer s.m.flush()
	if err := s.walk(ctx, only); err != nil {
		return err
	}
	if len(s.unread) > 0 {
		if s.chunker, err = x.chunker(); err != nil {
			return err
		}
	}
	s.m.expect(len(s.unread))
	x.reached("files found")
	if err := s.readAll(ctx, only == nil); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	var removed []string
	for path := range known {
		if !s.seen[path] && !s.isKept(path) {
			removed = append(removed, path)
		}
	}
	if err := s.remove(ctx, removed); err != nil {
		return err
	}
	if err := x.stores.Docs.Touch(ctx, s.touched); err != nil {
		return fmt.Errorf("recording file times: %w", err)
	}
	if err := s.recordSkipped(ctx, only); err != nil {
		return err
	}
	return x.attempts.end(true, s.aside...)
}

// known returns the stored files in only.
func (x *Indexer) known(only *pathSet) (map[string]docs.File, error) {
	if only == nil {
		return x.stores.Docs.Files()
	}
	known := map[string]docs.File{}
	err := x.stores.Docs.View(func(r *docs.Reader) error {
		for p := range only.paths {
			f, ok, err := r.File(p)
			if err != nil {
				return err
			}
			if ok {
				known[p] = f
			}
			if err := r.Files(p+"/", func(f docs.File) bool {
				known[f.Path] = f
				return true
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return known, err
}

// isCut reports whether only a part of a file is indexed.
func isCut(f docs.Skipped) bool { return strings.HasPrefix(f.Reason, cutPrefix) }

// verdicts returns the files that the last run skipped or cut because of their content.
func (x *Indexer) verdicts() (map[string]docs.Skipped, error) {
	skipped, err := x.stores.Docs.Skipped()
	if err != nil {
		return nil, fmt.Errorf("reading skipped files: %w", err)
	}
	verdicts := map[string]docs.Skipped{}
	for _, f := range skipped {
		if f.ModTime != 0 || isCut(f) {
			verdicts[f.Path] = f
		}
	}
	return verdicts, nil
}

// walk records the files that scan need not read, and collects the others in unread.
func (s *scanner) walk(ctx context.Context, only *pathSet) error {
	visit := func(e walk.Entry) error {
		// The reason for skipping a folder applies to everything below it. An
		// unreadable path may be a folder.
		if !only.covers(e.Path) && !((e.Dir || e.Reason == walk.Unreadable) && only.below(e.Path)) {
			return nil
		}
		f, indexed := s.known[e.Path]
		verdict := s.verdicts[e.Path]
		switch {
		case e.Reason == walk.Unreadable:
			s.keep(e.Path, string(walk.Unreadable))
		case e.Reason != walk.None:
			s.skip(e.Path, e.Reason)
		case s.x.attempts.count(e.Path) >= maxAttempts:
			s.aside = append(s.aside, e.Path)
			s.skipAs(docs.Skipped{Path: e.Path, Reason: setAside, Size: e.Size, ModTime: e.ModTime, ChangeTime: e.ChangeTime})
		case s.holds(verdict, e):
			s.skipAs(verdict)
		case indexed && fileInfo{f.Size, f.ModTime, f.ChangeTime}.matches(e):
			s.unchanged(e.Path)
		default:
			s.unread = append(s.unread, e)
		}
		return nil
	}
	if only == nil {
		return s.x.stores.Files.Walk(ctx, s.x.options.Walk, visit)
	}
	return s.x.stores.Files.WalkPaths(ctx, s.x.options.Walk, slices.Sorted(maps.Keys(only.paths)), visit)
}

// holds reports whether the verdict of an earlier run still applies to a file.
func (s *scanner) holds(v docs.Skipped, e walk.Entry) bool {
	return v.ModTime != 0 && infoOf(v).matches(e) &&
		(v.Retry == 0 || s.x.now().UnixNano() < v.Retry)
}

// unchanged records an indexed file whose content has not changed.
func (s *scanner) unchanged(path string) {
	s.seen[path] = true
	s.t.Unchanged++
	if f, ok := s.verdicts[path]; ok && isCut(f) {
		s.skipAs(f)
	}
}

// keep records a path that cannot be read now. The index keeps its documents, and the list
// of skipped files includes it.
func (s *scanner) keep(path, reason string) {
	s.kept = append(s.kept, path)
	s.skipAs(docs.Skipped{Path: path, Reason: reason})
}

// skip records a file that is not indexed. It ignores cairn's own hidden files.
func (s *scanner) skip(path string, reason walk.Reason) {
	if reason == walk.Hidden && walk.IsOurs(path) {
		return
	}
	if reason == walk.BadName && len(path) > kv.MaxKey { // it is quoted, which makes it longer
		path = strings.ToValidUTF8(path[:kv.MaxKey], "")
	}
	s.skipAs(docs.Skipped{Path: path, Reason: string(reason)})
}

// skipAs counts and lists a file that is not indexed.
func (s *scanner) skipAs(f docs.Skipped) {
	s.t.Skipped[f.Reason]++
	s.skipped = append(s.skipped, f)
}

// readAtOnce is how many files are read before readAll checks for preferences of
// searches, a few tenths of a second.
const readAtOnce = 256

// readAll reads the unread files and stores the documents. It begins with the files that
// may have ended the last process, one at a time. If preferences is true, it reads the
// files that searches prefer before the others.
func (s *scanner) readAll(ctx context.Context, preferences bool) error {
	for _, e := range s.take(func(e walk.Entry) bool { return s.x.attempts.count(e.Path) > 0 }) {
		if err := s.collect(ctx, s.read(e)); err != nil {
			return err
		}
	}
	for len(s.unread) > 0 {
		if preferences {
			if p := s.x.preferences.next(); p != nil {
				if err := s.prefer(ctx, p); err != nil {
					return err
				}
				continue
			}
		}
		n := min(len(s.unread), readAtOnce)
		if err := s.readFiles(ctx, s.unread[:n]); err != nil {
			return err
		}
		s.unread = s.unread[n:]
	}
	return s.put(ctx)
}

// take removes and returns the unread files for which which is true.
func (s *scanner) take(which func(walk.Entry) bool) (taken []walk.Entry) {
	s.unread = slices.DeleteFunc(s.unread, func(e walk.Entry) bool {
		is := which(e)
		if is {
			taken = append(taken, e)
		}
		return is
	})
	return taken
}

// smallFile is the size in bytes up to which converted files are read together.
const smallFile = 256 << 10

// largeFile is the size in bytes from which a file occupies a second reader.
const largeFile = 8 << 20

// weight returns the share of a reader that a file occupies, of smallFile. Small files of
// a converted format share a reader, since another process converts them together, and a
// large file occupies several, up to all, since it is in memory.
func weight(e walk.Entry, all int64) int64 {
	if markdown.Verbatim(e.Path) {
		return smallFile
	}
	return min(max(e.Size, smallFile/64), max(smallFile, e.Size/largeFile*smallFile), all)
}

// readFiles reads files on all processors and stores the documents in large
// transactions. Readers are at most a few files ahead of the document store. The
// documents of the last transaction remain in s.puts until put.
func (s *scanner) readFiles(ctx context.Context, files []walk.Entry) error {
	g, ctx := errgroup.WithContext(ctx)
	parallel := runtime.GOMAXPROCS(0)
	outcomes := make(chan outcome, parallel)
	g.Go(func() error {
		defer close(outcomes)
		var running sync.WaitGroup
		defer running.Wait()
		all := int64(parallel) * smallFile
		readers := semaphore.NewWeighted(all)
		for _, e := range files {
			n := weight(e, all)
			if err := readers.Acquire(ctx, n); err != nil {
				return err
			}
			running.Go(func() {
				defer readers.Release(n)
				select {
				case outcomes <- s.read(e):
				case <-ctx.Done():
				}
			})
		}
		return nil
	})
	g.Go(func() error {
		for o := range outcomes {
			if err := s.collect(ctx, o); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}

// collect records the outcome of one file.
func (s *scanner) collect(ctx context.Context, o outcome) error {
	_, indexed := s.known[o.path]
	if o.modTime == 0 && (o.kind == touched || o.kind == changed) {
		s.young = append(s.young, docs.File{Path: o.path, Hash: o.hash})
	}
	switch o.kind {
	case touched:
		s.unchanged(o.path)
		s.touched = append(s.touched, docs.File{Path: o.path, Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime})
	case changed:
		if err := o.put.Check(); err != nil {
			// A fault of the parser in one file must not stop the run.
			reason := err.Error()
			if refused, ok := errors.AsType[*docs.RefusedError](err); ok {
				reason = refused.Reason
			}
			s.skipAs(docs.Skipped{Path: o.path, Reason: "contradictory: " + reason, Grams: o.grams})
			break
		}
		if o.cut != "" {
			s.skipAs(docs.Skipped{Path: o.path, Reason: o.cut, Grams: o.grams})
		}
		s.seen[o.path] = true
		s.puts = append(s.puts, *o.put)
		s.size += len(o.put.Text)
		if indexed {
			s.t.Changed++
		} else {
			s.t.Added++
		}
	case skipped:
		s.skipAs(docs.Skipped{Path: o.path, Reason: o.reason, Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime, Retry: o.retry, Grams: o.grams})
	case unreadable:
		s.keep(o.path, cmp.Or(o.reason, string(walk.Unreadable)))
	}
	s.m.add(1, 0)
	if s.size >= putBytes {
		return s.put(ctx)
	}
	return nil
}

// settle waits until the times of young files are reliable, reads the files again, and
// records the times of those that did not change. Otherwise answers would report every
// file written just before the run as stale, and the next run would read it again.
func (s *scanner) settle(ctx context.Context) error {
	if len(s.young) == 0 {
		return nil
	}
	select {
	case <-time.After(racyTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, f := range s.young {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, info, err := s.readSettled(f.Path)
		if err != nil || info.modTime == 0 || sha256.Sum256(data) != f.Hash {
			continue // changed or removed; the next run handles it
		}
		s.touched = append(s.touched, docs.File{Path: f.Path, Size: info.size, ModTime: info.modTime, ChangeTime: info.changeTime})
	}
	return nil
}

// put stores the collected documents with their pending marks.
func (s *scanner) put(ctx context.Context) error {
	if len(s.puts) == 0 {
		return nil
	}
	s.x.reached("documents read")
	if err := s.x.stores.Docs.Put(ctx, s.puts); err != nil {
		return fmt.Errorf("storing %d documents: %w", len(s.puts), err)
	}
	s.x.reached("documents stored")
	s.puts, s.size = nil, 0
	return nil
}

// remove deletes documents whose files were removed or are no longer indexed.
func (s *scanner) remove(ctx context.Context, paths []string) error {
	slices.Sort(paths)
	for batch := range slices.Chunk(paths, deletePaths) {
		if err := s.x.stores.Docs.Delete(ctx, batch); err != nil {
			return fmt.Errorf("removing %d documents: %w", len(batch), err)
		}
		s.x.reached("documents removed")
		s.t.Removed += len(batch)
	}
	return nil
}

// recordSkipped replaces the entries of the list of skipped files that are in only.
func (s *scanner) recordSkipped(ctx context.Context, only *pathSet) error {
	if only != nil {
		before, err := s.x.stores.Docs.Skipped()
		if err != nil {
			return fmt.Errorf("reading skipped files: %w", err)
		}
		for _, f := range before {
			if !only.covers(f.Path) && !only.below(f.Path) {
				s.skipped = append(s.skipped, f)
			}
		}
	}
	if err := s.x.stores.Docs.SetSkipped(ctx, s.skipped); err != nil {
		return fmt.Errorf("recording skipped files: %w", err)
	}
	s.x.reached("skips recorded")
	return nil
}

func (s *scanner) isKept(path string) bool {
	return slices.ContainsFunc(s.kept, func(k string) bool { return walk.Under(path, k) })
}

// pathSet is a set of files and folders. Nil covers everything.
type pathSet struct {
	paths map[string]bool
	above map[string]bool // the folders above them
}

// newPathSet returns the set of the given paths. It returns nil, which covers everything, for
// nil paths, and if a path is an ignore file, since a change of it can affect every file.
func newPathSet(paths []string) (*pathSet, error) {
	if paths == nil {
		return nil, nil
	}
	c := &pathSet{paths: map[string]bool{}, above: map[string]bool{}}
	for _, p := range paths {
		clean, err := walk.Clean(strings.TrimSuffix(p, "/"))
		if err != nil {
			return nil, err
		}
		if walk.IsIgnoreFile(clean) {
			return nil, nil
		}
		c.paths[clean] = true
		for dir := path.Dir(clean); dir != "." && !c.above[dir]; dir = path.Dir(dir) {
			c.above[dir] = true
		}
	}
	return c, nil
}

// covers reports whether p is in the set or below a folder in the set.
func (c *pathSet) covers(p string) bool {
	if c == nil {
		return true
	}
	for ; p != "."; p = path.Dir(p) {
		if c.paths[p] {
			return true
		}
	}
	return false
}

// below reports whether a path in the set is dir or below it.
func (c *pathSet) below(dir string) bool { return c == nil || c.paths[dir] || c.above[dir] }
