package indexer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/job"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// putBytes is the text stored in one transaction: large enough that waiting
// for the disk costs little, small enough that a kill loses little.
const putBytes = 4 << 20

// deletePaths is how many documents one transaction removes.
const deletePaths = 1000

// scanner compares files with the stored documents. One goroutine at a time
// changes it.
type scanner struct {
	x     *Indexer
	t     *Report
	m     *progressReporter
	known map[string]docs.File
	// passed are the files that the last run skipped, or cut, for their content.
	passed map[string]docs.Skipped

	look    []walk.Entry    // new or changed files
	seen    map[string]bool // indexed files that still exist
	kept    []string        // unreadable paths: the index keeps what is at and below them
	skipped []docs.Skipped
	touched []docs.File
	young   []youngFile
	aside   []string // files that are set aside in this run
	puts    []docs.Put
	size    int // bytes of puts
}

// scan compares all files, or, when only is not nil, those it covers. The walk
// comes first and finds the unchanged files by size and time; then scan reads the
// others. It removes documents last, so that a moved file is never missing.
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
	passed, err := x.passed()
	if err != nil {
		return err
	}
	s := &scanner{
		x: x, t: t, known: known, passed: passed, seen: make(map[string]bool, len(known)),
		m: newProgressReporter(progress, x.now, PhaseScan, 0, 0),
	}
	defer s.m.flush()
	if err := s.walk(ctx, only); err != nil {
		return err
	}
	s.m.expect(len(s.look))
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

// known returns the stored files in the set.
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

// isCut reports whether a file is indexed in part.
func isCut(f docs.Skipped) bool { return strings.HasPrefix(f.Reason, cutPrefix) }

// passed returns the files that the last run skipped, or cut, for their content.
func (x *Indexer) passed() (map[string]docs.Skipped, error) {
	skipped, err := x.stores.Docs.Skipped()
	if err != nil {
		return nil, fmt.Errorf("reading skipped files: %w", err)
	}
	passed := map[string]docs.Skipped{}
	for _, f := range skipped {
		if f.ModTime != 0 || isCut(f) {
			passed[f.Path] = f
		}
	}
	return passed, nil
}

// walk handles the files that need no reading, and collects the others in look.
func (s *scanner) walk(ctx context.Context, only *pathSet) error {
	visit := func(e walk.Entry) error {
		// A verdict on a folder applies to everything below it. An unreadable path
		// may be a folder.
		if !only.covers(e.Path) && !((e.Dir || e.Reason == walk.Unreadable) && only.below(e.Path)) {
			return nil
		}
		f, indexed := s.known[e.Path]
		p := s.passed[e.Path]
		switch {
		case e.Reason == walk.Unreadable:
			s.keep(e.Path)
		case e.Reason != walk.None:
			s.skip(e.Path, e.Reason)
		case s.x.attempts.count(e.Path) >= maxAttempts:
			s.aside = append(s.aside, e.Path)
			s.skipAs(docs.Skipped{Path: e.Path, Reason: setAside, Size: e.Size, ModTime: e.ModTime, ChangeTime: e.ChangeTime})
		case p.ModTime != 0 && fileInfo{p.Size, p.ModTime, p.ChangeTime}.isAs(e):
			s.skipAs(p)
		case indexed && fileInfo{f.Size, f.ModTime, f.ChangeTime}.isAs(e):
			s.unchanged(e.Path)
		default:
			s.look = append(s.look, e)
		}
		return nil
	}
	if only == nil {
		return s.x.stores.Files.Walk(ctx, s.x.options.Walk, visit)
	}
	return s.x.stores.Files.WalkPaths(ctx, s.x.options.Walk, slices.Sorted(maps.Keys(only.paths)), visit)
}

// unchanged records an indexed file with the same content.
func (s *scanner) unchanged(path string) {
	s.seen[path] = true
	s.t.Unchanged++
	if f, ok := s.passed[path]; ok && isCut(f) {
		s.skipAs(f)
	}
}

// keep records an unreadable path. The index keeps what it has of it, and the
// list of skipped files names it.
func (s *scanner) keep(path string) {
	s.kept = append(s.kept, path)
	s.skipAs(docs.Skipped{Path: path, Reason: walk.Unreadable.String()})
}

// skip records a file that is not indexed. Files with other extensions are
// counted but not listed: in a source tree they are nearly all. Cairn's own
// hidden files are not counted either.
func (s *scanner) skip(path string, reason walk.Reason) {
	if reason == walk.Hidden && isOurs(path) {
		return
	}
	if reason == walk.Extension || reason == walk.BadName {
		s.t.Skipped[reason.String()]++
		return
	}
	s.skipAs(docs.Skipped{Path: path, Reason: reason.String()})
}

// isOurs reports whether a hidden file or folder is one of cairn's, or an ignore
// file.
func isOurs(name string) bool {
	return walk.IsIgnoreFile(name) || slices.ContainsFunc(strings.Split(name, "/"), func(e string) bool { return e == ".cairn" || e == ".cuedeck" })
}

// skipAs counts and lists a file that is not indexed.
func (s *scanner) skipAs(f docs.Skipped) {
	s.t.Skipped[f.Reason]++
	s.skipped = append(s.skipped, f)
}

// readAtOnce is how many files are read between looks for requests of searches: some
// tenths of a second.
const readAtOnce = 256

// readAll reads the files in look and stores the documents. It reads those that may have
// ended the last process first, one at a time. With preferences it reads the files that
// searches prefer before the others.
func (s *scanner) readAll(ctx context.Context, preferences bool) error {
	var suspects []walk.Entry
	s.look = slices.DeleteFunc(s.look, func(e walk.Entry) bool {
		suspect := s.x.attempts.count(e.Path) > 0
		if suspect {
			suspects = append(suspects, e)
		}
		return suspect
	})
	for _, e := range suspects {
		if err := s.collect(ctx, s.read(e)); err != nil {
			return err
		}
	}
	for len(s.look) > 0 {
		if preferences {
			if p := s.x.preferences.next(); p != nil {
				if err := s.prefer(ctx, p); err != nil {
					return err
				}
				continue
			}
		}
		n := min(len(s.look), readAtOnce)
		if err := s.readFiles(ctx, s.look[:n]); err != nil {
			return err
		}
		s.look = s.look[n:]
	}
	return s.put(ctx)
}

// readFiles reads files on all processors, at most some megabytes ahead of the document
// store, and stores the documents in large transactions: the last wait for put.
func (s *scanner) readFiles(ctx context.Context, files []walk.Entry) error {
	g, ctx := errgroup.WithContext(ctx)
	outcomes := make(chan outcome, s.x.options.Parallel)
	var next, running atomic.Int64
	running.Store(int64(s.x.options.Parallel))
	for range s.x.options.Parallel {
		g.Go(func() error {
			defer func() {
				if running.Add(-1) == 0 {
					close(outcomes)
				}
			}()
			for {
				i := next.Add(1) - 1
				if i >= int64(len(files)) {
					return nil
				}
				select {
				case outcomes <- s.read(files[i]):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
	}
	g.Go(func() error {
		for o := range outcomes {
			if err := s.collect(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// collect records the outcome of one file.
func (s *scanner) collect(ctx context.Context, o outcome) error {
	_, indexed := s.known[o.path]
	if o.modTime == 0 && (o.kind == touched || o.kind == changed) {
		s.young = append(s.young, youngFile{o.path, o.hash})
	}
	switch o.kind {
	case touched:
		s.unchanged(o.path)
		s.touched = append(s.touched, docs.File{Path: o.path, Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime})
	case changed:
		if err := o.put.Check(); err != nil {
			// A parser error in one file must not stop the others.
			reason := err.Error()
			if refused, ok := errors.AsType[*docs.RefusedError](err); ok {
				reason = refused.Reason
			}
			s.skipAs(docs.Skipped{Path: o.path, Reason: "contradictory: " + reason})
			break
		}
		if o.cut != "" {
			s.skipAs(docs.Skipped{Path: o.path, Reason: o.cut})
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
		s.skipAs(docs.Skipped{Path: o.path, Reason: o.reason, Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime})
	case unreadable:
		s.keep(o.path)
	}
	s.m.add(1, 0)
	if s.size >= putBytes {
		return s.put(ctx)
	}
	return nil
}

// youngFile is an indexed file that changed just before it was read, so that its
// time cannot be trusted.
type youngFile struct {
	path string
	hash [sha256.Size]byte
}

// settle waits until the times of young files can be trusted, reads them again,
// and records the time of those that did not change. Answers would otherwise call
// every file stale that was written just before the run, and the next run would
// read it again.
func (s *scanner) settle(ctx context.Context) error {
	if len(s.young) == 0 {
		return nil
	}
	timer := time.NewTimer(racyTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, f := range s.young {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, info, err := s.readSettled(f.path)
		if err != nil || info.modTime == 0 || sha256.Sum256(data) != f.hash {
			continue // changed or removed: left to the next run
		}
		s.touched = append(s.touched, docs.File{Path: f.path, Size: info.size, ModTime: info.modTime, ChangeTime: info.changeTime})
	}
	return nil
}

// put stores the documents collected so far with their pending marks.
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

// recordSkipped replaces the list of skipped files within the set.
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

// newPathSet returns the set of the given paths. A changed ignore file can concern
// every file, so a set with one covers everything.
func newPathSet(paths []string) (*pathSet, error) {
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

// covers reports whether p is in the set or below a folder that is.
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

// below reports whether some path in the set is dir or below it.
func (c *pathSet) below(dir string) bool { return c == nil || c.paths[dir] || c.above[dir] }
