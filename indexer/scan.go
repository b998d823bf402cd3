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

	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// putBytes is the text stored in one transaction: large enough that waiting
// for the disk costs little, small enough that a kill loses little.
const putBytes = 4 << 20

// deletePaths is how many documents one transaction removes.
const deletePaths = 1000

// scanner compares files with what the documents know of them. What it
// gathers is written by one goroutine at a time.
type scanner struct {
	x     *Indexer
	t     *tally
	m     *meter
	known map[string]docs.File
	// passed are the files that were skipped for their content, by path.
	passed map[string]docs.Skipped

	look    []walk.Entry    // new, or not as they were
	seen    map[string]bool // indexed files that are still there
	kept    []string        // could not be looked at: what is known of them, and below them, stays
	skipped []docs.Skipped
	touched []docs.Touched
	young   []youngFile
	puts    []docs.Put
	size    int // bytes of puts
}

// scan compares all files, or, when only is not nil, those it covers. The walk
// comes first, since what it finds unchanged needs no more; then the rest is
// read; what is gone leaves last, so that a file that moved is never missing.
func (x *Indexer) scan(ctx context.Context, only *cover, progress func(Progress), t *tally) error {
	x.scanning.Lock()
	defer x.scanning.Unlock()
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
		m: newMeter(progress, x.now, Progress{Phase: PhaseScan}),
	}
	defer s.m.end()
	if err := s.walk(ctx, only); err != nil {
		return err
	}
	s.m.expect(len(s.look))
	x.reached("files found")
	if err := s.readAll(ctx); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	var gone []string
	for path := range known {
		if !s.seen[path] && !s.isKept(path) {
			gone = append(gone, path)
		}
	}
	if err := s.remove(ctx, gone); err != nil {
		return err
	}
	if err := x.stores.Docs.Touch(ctx, s.touched); err != nil {
		return fmt.Errorf("recording file times: %w", err)
	}
	return s.recordSkipped(ctx, only)
}

// known returns what the documents know of the files in the set.
func (x *Indexer) known(only *cover) (map[string]docs.File, error) {
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

// passed returns the files that the last run skipped for their content.
func (x *Indexer) passed() (map[string]docs.Skipped, error) {
	skipped, err := x.stores.Docs.Skipped()
	if err != nil {
		return nil, fmt.Errorf("reading skipped files: %w", err)
	}
	passed := map[string]docs.Skipped{}
	for _, f := range skipped {
		if f.ModTime != 0 {
			passed[f.Path] = f
		}
	}
	return passed, nil
}

// walk sorts out what the walk alone can decide.
func (s *scanner) walk(ctx context.Context, only *cover) error {
	visit := func(e walk.Entry) error {
		// What is said of a folder on the way holds for what lies below it. One
		// that cannot be looked at may be a folder.
		if !only.covers(e.Path) && !((e.Dir || e.Reason == walk.Unreadable) && only.below(e.Path)) {
			return nil
		}
		f, indexed := s.known[e.Path]
		p := s.passed[e.Path]
		switch {
		case e.Reason == walk.Unreadable:
			s.keep(e.Path, e.Err)
		case e.Reason != walk.None:
			s.skip(e.Path, e.Reason)
		case p.ModTime != 0 && fileInfo{p.Size, p.ModTime, p.ChangeTime}.isAs(e):
			s.skipAs(p)
		case indexed && fileInfo{f.Size, f.ModTime, f.ChangeTime}.isAs(e):
			s.seen[e.Path] = true
			s.t.do(func(r *Report) { r.Unchanged++ })
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

// keep notes what could not be looked at. What is indexed of it stays, and it is
// listed, so that nobody looks for it in vain.
func (s *scanner) keep(path string, err error) {
	s.kept = append(s.kept, path)
	s.skipAs(docs.Skipped{Path: path, Reason: walk.Unreadable.String()})
	s.t.do(func(r *Report) { r.Unreadable = append(r.Unreadable, Unreadable{Path: path, Err: err}) })
}

// skip notes a file that is not to be indexed. Those of other kinds are counted
// but not listed: in a source tree they are nearly all, and nobody expects them.
// Nor are cairn's own files, which nobody would call documents, counted.
func (s *scanner) skip(path string, reason walk.Reason) {
	if reason == walk.Hidden && isOurs(path) {
		return
	}
	if reason == walk.Extension || reason == walk.BadName {
		s.t.do(func(r *Report) { r.Skipped[reason.String()]++ })
		return
	}
	s.skipAs(docs.Skipped{Path: path, Reason: reason.String()})
}

// isOurs reports whether a hidden file or folder is one of cairn's, or says what
// to ignore.
func isOurs(name string) bool {
	return walk.IsIgnoreFile(name) || slices.ContainsFunc(strings.Split(name, "/"), func(e string) bool { return e == ".cairn" || e == ".cuedeck" })
}

// skipAs notes a file that is not to be indexed, and is listed.
func (s *scanner) skipAs(f docs.Skipped) {
	s.t.do(func(r *Report) { r.Skipped[f.Reason]++ })
	s.skipped = append(s.skipped, f)
}

// readAll reads files on all processors, at most some megabytes ahead of what
// is stored, and stores the documents.
func (s *scanner) readAll(ctx context.Context) error {
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
				if i >= int64(len(s.look)) {
					return nil
				}
				select {
				case outcomes <- s.read(s.look[i]):
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
		return s.put(ctx)
	})
	return g.Wait()
}

// collect takes in what became of one file.
func (s *scanner) collect(ctx context.Context, o outcome) error {
	_, indexed := s.known[o.path]
	if o.modTime == 0 && (o.kind == touched || o.kind == changed) {
		s.young = append(s.young, youngFile{o.path, o.hash})
	}
	switch o.kind {
	case touched:
		s.seen[o.path] = true
		s.touched = append(s.touched, docs.Touched{Path: o.path, Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime})
		s.t.do(func(r *Report) { r.Unchanged++ })
	case changed:
		if err := o.put.Check(); err != nil {
			// A mistake in parsing one file, which must not stop the others.
			reason := err.Error()
			if refused, ok := errors.AsType[*docs.RefusedError](err); ok {
				reason = refused.Reason
			}
			s.skipAs(docs.Skipped{Path: o.path, Reason: "contradictory: " + reason})
			break
		}
		s.seen[o.path] = true
		s.puts = append(s.puts, *o.put)
		s.size += len(o.put.Text)
		s.t.do(func(r *Report) {
			if indexed {
				r.Changed++
			} else {
				r.Added++
			}
		})
	case skipped:
		s.skipAs(docs.Skipped{Path: o.path, Reason: o.reason.String(), Size: o.size, ModTime: o.modTime, ChangeTime: o.changeTime})
	case unreadable:
		s.keep(o.path, o.err)
	}
	s.m.add(1, 0, 0)
	if s.size >= putBytes {
		return s.put(ctx)
	}
	return nil
}

// youngFile is an indexed file whose time was not trusted when it was read.
type youngFile struct {
	path string
	hash [sha256.Size]byte
}

// settle waits until the files that were too young have come of age, looks at
// them again, and records the time of those that did not change. Answers would
// otherwise call every file stale that was written just before the run, and the
// next run would read it again.
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
			continue // changed, or gone: the next run's
		}
		s.touched = append(s.touched, docs.Touched{Path: f.path, Size: info.size, ModTime: info.modTime, ChangeTime: info.changeTime})
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

// remove deletes documents whose files are gone or not to be indexed any more.
func (s *scanner) remove(ctx context.Context, gone []string) error {
	slices.Sort(gone)
	for batch := range slices.Chunk(gone, deletePaths) {
		if err := s.x.stores.Docs.Delete(ctx, batch); err != nil {
			return fmt.Errorf("removing %d documents: %w", len(batch), err)
		}
		s.x.reached("documents removed")
		s.t.do(func(r *Report) { r.Removed += len(batch) })
	}
	return nil
}

// recordSkipped replaces the list of skipped files, as far as it was looked at.
func (s *scanner) recordSkipped(ctx context.Context, only *cover) error {
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
	return slices.ContainsFunc(s.kept, func(k string) bool { return within(path, k) })
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// cover is a set of files and folders. Nil covers everything.
type cover struct {
	paths map[string]bool
	above map[string]bool // the folders on the way to them
}

// newCover returns the set of the given paths. A change of ignore rules can
// concern every file, so it covers everything.
func newCover(paths []string) (*cover, error) {
	c := &cover{paths: map[string]bool{}, above: map[string]bool{}}
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
func (c *cover) covers(p string) bool {
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

// below reports whether something in the set is dir or lies below it.
func (c *cover) below(dir string) bool { return c == nil || c.paths[dir] || c.above[dir] }
