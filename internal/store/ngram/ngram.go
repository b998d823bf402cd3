// Package ngram records which trigrams occur in the lines of each file of a folder, so that
// a search for a string or a regular expression reads only the files that can match. It
// decides nothing else: the caller reads every candidate and looks for the pattern.
//
// # Files
//
// The directory of an Index holds segments, which never change. The name of a segment is
// the range of the numbers of the segments that it replaces, such as 00000003-00000007, so
// that a rename makes a new segment valid and the old ones obsolete in one step. The latest
// segment with a file is valid for it. Files that were recorded since the last segment are
// in memory; after a kill they count as unknown.
//
// A segment (version 1) is a series of blocks, a table and a tail:
//
//	block  checksum, and for each trigram: its distance from the one before, the number of
//	       its files, the size of the list, the list (see appendList)
//	table  the rules of the text; for each file, in the order of the paths: the length of
//	       the beginning that it has in common with the one before, the rest, size, times,
//	       whether it is text; for each block: its first trigram and its offset
//	tail   the offset of the table (8 bytes), the checksum of the table (4), "cairn-n1"
//
// Numbers are varints, see package packed. A checksum is CRC-32C in 4 bytes, little-endian.
package ngram

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/health"
)

// File is a file of the folder. Its size and times, in Unix nanoseconds, tell a later state
// of the file from the recorded one. ModTime is 0 if the file may have changed since
// without a trace in them.
type File struct {
	Path                      string
	Size, ModTime, ChangeTime int64
	// Text reports that the file is text, and can match.
	Text bool
}

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// Rules names the rules by which the text of a file is made from its bytes. Segments
	// of other rules are removed.
	Rules string
	// ReadOnly forbids changes of the directory, which another process may own.
	ReadOnly bool
	// Held, if not nil, is called before each change of the directory. It returns an error
	// if another process may own it.
	Held func() error
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
}

// Index records the trigrams of files. It is safe for concurrent use.
type Index struct {
	dir     string
	options Options

	writing sync.Mutex // held while records change; locked before mu
	grams   trigrams
	pairs   int    // trigrams of recent
	next    uint64 // the number of the next segment

	mu       sync.RWMutex
	loaded   bool
	complete bool       // see SetComplete
	segments []*segment // the oldest first
	where    map[string]place
	recent   map[string]*recent // files that are in no segment
	unsorted []*recent
}

// place is that of a file in a segment.
type place struct {
	in *segment
	n  uint32
}

// recent is a file that is not in a segment yet.
type recent struct {
	File
	trigrams []uint32 // sorted, unless it is in Index.unsorted
}

// Open returns the Index in dir, which need not exist; "" is always empty. The first use
// reads the directory. A damaged segment counts as missing.
func Open(dir string, o *Options) *Index {
	x := &Index{dir: dir, options: *cmp.Or(o, &Options{}), where: map[string]place{}, recent: map[string]*recent{}}
	x.options.Logger = cmp.Or(x.options.Logger, slog.New(slog.DiscardHandler))
	return x
}

// load opens the segments at the first use. The caller holds x.mu for writing.
func (x *Index) load() {
	if x.loaded || x.dir == "" {
		return
	}
	x.loaded = true
	entries, _ := os.ReadDir(x.dir) // missing or unreadable, it is empty
	var found []*segment
	for _, e := range entries {
		if s := newSegment(filepath.Join(x.dir, e.Name())); s != nil {
			found = append(found, s)
			x.next = max(x.next, s.last+1)
		} else if !x.options.ReadOnly && atomicfile.Temporary(e.Name()) && x.held() == nil {
			os.Remove(filepath.Join(x.dir, e.Name()))
		}
	}
	// A segment follows those that it replaces.
	slices.SortFunc(found, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last))
	})
	end := uint64(0)
	for _, s := range found {
		if s.last < end {
			x.remove(s) // replaced
			continue
		}
		if err := s.open(x.options.Rules); err != nil {
			if !errors.Is(err, errRules) {
				x.options.Logger.Warn("a segment of n-grams is damaged", "error", err)
			}
			x.remove(s)
			continue
		}
		end = s.last + 1
		x.add(s)
	}
}

// add makes a segment the latest. The caller holds x.mu for writing.
func (x *Index) add(s *segment) {
	x.segments = append(x.segments, s)
	for n, f := range s.files {
		x.kill(f.Path)
		x.where[f.Path] = place{s, uint32(n)}
	}
}

// kill removes the record of a file from its segment.
func (x *Index) kill(path string) {
	if at, ok := x.where[path]; ok {
		at.in.dead[at.n>>6] |= 1 << (at.n & 63)
		at.in.live--
		delete(x.where, path)
	}
}

func (x *Index) held() error {
	if x.options.Held == nil {
		return nil
	}
	return x.options.Held()
}

// remove closes and removes a segment.
func (x *Index) remove(s *segment) {
	s.close()
	if !x.options.ReadOnly && x.held() == nil {
		os.Remove(s.path) // one that remains is removed when it is opened
	}
}

// drop forgets a damaged segment. Its files are unknown from then on.
func (x *Index) drop(s *segment, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.segments, s)
	if i < 0 {
		return
	}
	x.options.Logger.Warn("a segment of n-grams is damaged", "error", err)
	x.complete = false
	x.segments = slices.Delete(x.segments, i, i+1)
	for _, f := range s.files {
		if x.where[f.Path].in == s {
			delete(x.where, f.Path)
		}
	}
	x.remove(s)
}

// File returns the record of a file.
func (x *Index) File(path string) (File, bool) {
	x.use()
	defer x.mu.RUnlock()
	if r := x.recent[path]; r != nil {
		return r.File, true
	}
	at, ok := x.where[path]
	if !ok {
		return File{}, false
	}
	return at.in.files[at.n], true
}

// use locks x.mu for reading after the segments were opened and the recent files sorted.
func (x *Index) use() {
	x.mu.RLock()
	for !x.loaded && x.dir != "" || len(x.unsorted) > 0 {
		x.mu.RUnlock()
		x.mu.Lock()
		x.load()
		for _, r := range x.unsorted {
			slices.Sort(r.trigrams)
		}
		x.unsorted = nil
		x.mu.Unlock()
		x.mu.RLock()
	}
}

// Files returns the recorded files in no particular order. No method of x may be called
// meanwhile.
func (x *Index) Files() iter.Seq[File] {
	return func(yield func(File) bool) {
		x.use()
		defer x.mu.RUnlock()
		for _, r := range x.recent {
			if !yield(r.File) {
				return
			}
		}
		for _, s := range x.segments {
			for n, f := range s.files {
				if s.lives(n) && !yield(f) {
					return
				}
			}
		}
	}
}

// Put records a file and its text, which is nil if the file is not text.
func (x *Index) Put(f File, text []byte) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	r := &recent{File: f}
	if f.Text {
		r.trigrams = slices.Clone(x.grams.of(text))
	}
	x.mu.Lock()
	x.load()
	x.forget(f.Path)
	x.recent[f.Path] = r
	x.unsorted = append(x.unsorted, r)
	x.mu.Unlock()
	if x.pairs += len(r.trigrams); x.pairs < maxPairs {
		return nil
	}
	return x.flush()
}

// Remove removes the records of files.
func (x *Index) Remove(paths []string) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.load()
	for _, path := range paths {
		x.forget(path)
	}
}

// forget removes a record. The caller holds both locks.
func (x *Index) forget(path string) {
	if r := x.recent[path]; r != nil {
		x.pairs -= len(r.trigrams)
		delete(x.recent, path)
		x.unsorted = slices.DeleteFunc(x.unsorted, func(u *recent) bool { return u == r })
	}
	x.kill(path)
}

// Clear removes all records.
func (x *Index) Clear() {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.load()
	for _, s := range x.segments {
		x.remove(s)
	}
	x.segments, x.unsorted, x.pairs, x.complete = nil, nil, 0, false
	clear(x.where)
	clear(x.recent)
}

// SetComplete records whether all files are recorded. It remains so until records are lost.
func (x *Index) SetComplete(complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete = complete
}

// maxRecent is the number of files that Settle leaves in memory.
const maxRecent = 256

// Settle writes the recent files to a segment if there are many.
func (x *Index) Settle() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.grams = trigrams{} // two megabytes
	if len(x.recent) <= maxRecent {
		return nil
	}
	return x.flush()
}

// Close writes the recent files and closes the segments.
func (x *Index) Close() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	err := x.flush()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		s.close()
	}
	x.segments, x.dir, x.complete = nil, "", false
	clear(x.where)
	return err
}

// Candidates returns the recorded text files that can have lines which fulfil q, in no
// particular order. complete reports that all files are recorded.
func (x *Index) Candidates(q *Query) (files []File, complete bool) {
	for {
		x.use()
		complete = x.complete
		files, bad, err := x.candidates(q)
		x.mu.RUnlock()
		if bad == nil {
			return files, complete
		}
		x.drop(bad, err) // its files have no record now
	}
}

func (x *Index) candidates(q *Query) (files []File, bad *segment, err error) {
	for _, s := range x.segments {
		found, everything, err := (&search{segment: s, left: maxLists}).eval(q)
		if err != nil {
			return nil, s, err
		}
		if everything {
			found = make([]uint32, len(s.files))
			for n := range found {
				found[n] = uint32(n)
			}
		}
		for _, n := range found {
			if f := s.files[n]; f.Text && s.lives(int(n)) {
				files = append(files, f)
			}
		}
	}
	for _, r := range x.recent {
		if r.Text && r.match(q) {
			files = append(files, r.File)
		}
	}
	return files, nil, nil
}

// match reports whether the file can have a line that fulfils q.
func (r *recent) match(q *Query) bool {
	switch q.op {
	case literal:
		return !slices.ContainsFunc(trigramsOf(q.literal), func(g uint32) bool { _, ok := slices.BinarySearch(r.trigrams, g); return !ok })
	case all:
		return !slices.ContainsFunc(q.of, func(sub *Query) bool { return !r.match(sub) })
	case any:
		return slices.ContainsFunc(q.of, r.match)
	}
	return true
}

// Verify reads all segments and compares their checksums. An Index without a directory has
// no name.
func (x *Index) Verify(ctx context.Context) (f health.File, err error) {
	x.use()
	segments := slices.Clone(x.segments)
	x.mu.RUnlock()
	for _, s := range segments {
		bytes, err := s.verify(ctx)
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		f.Bytes += bytes
		f.Records += len(s.files)
		if err != nil && !errors.Is(err, fs.ErrClosed) { // replaced meanwhile
			f.Problems = append(f.Problems, err.Error())
		}
	}
	return f, nil
}

// byPath orders files.
func byPath(a, b File) int { return strings.Compare(a.Path, b.Path) }
