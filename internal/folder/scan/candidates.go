package scan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// Candidates are the files that a scan reads.
type Candidates struct {
	Files []Candidate // sorted by path
	// Excluded is the number of text files that cannot have a matching line.
	Excluded int
	// unsearched counts files that are not read, by the reason.
	unsearched map[string]int

	known   *Known
	matches *matches
}

// Candidate is a file that can match.
type Candidate struct {
	Path string
	at   int32 // in known if it is in its known state, otherwise -1
}

func (c *Candidates) add(path string, at int) {
	c.Files = append(c.Files, Candidate{path, int32(at)})
}

func (c *Candidates) sort() {
	slices.SortFunc(c.Files, func(a, b Candidate) int { return strings.Compare(a.Path, b.Path) })
}

// addKnown adds or excludes file i, which is in its known state.
func (c *Candidates) addKnown(i int) {
	if c.matches.has(i) {
		c.add(c.known.files[i].Path, i)
	} else if f := &c.known.files[i]; c.known.rows[i] >= 0 || f.grams != ngram.NotText {
		c.Excluded++
	} else if f.Size < 0 {
		c.unsearched[string(walk.TooLarge)]++
	} else {
		c.unsearched[unsearched(f.Path)]++
	}
}

// addEntry adds a file that is not in its known state, or counts it if it is too large
// or cannot be read.
func (c *Candidates) addEntry(e *walk.Entry) {
	if e.Reason == walk.TooLarge || e.Reason == walk.Unreadable {
		c.unsearched[string(e.Reason)]++
	} else if e.Reason == walk.None && !e.Dir {
		c.add(e.Path, -1)
	}
}

// unsearched returns why a file that is not text is not searched.
func unsearched(path string) string {
	if markdown.Verbatim(path) {
		return "not text"
	}
	return "converted"
}

// Known are the states of the files of a folder in its documents. It does not change. Nil
// knows no file.
type Known struct {
	version int          // of the documents
	files   []file       // sorted by path
	rows    []int32      // of each file in the table, -1 if it does not have the file
	table   *ngram.Table // of most files; nil if searches are rare
	lacks   int          // files that were recorded since the table was made
	opened  *opened
}

// tableLacks is the share of files that a table may lack before it is made again, as a
// divisor.
const tableLacks = 16

// file is a file as it was read. A young one, see package indexer, has no ModTime. The Size of
// one that is too large to read is -1.
type file struct {
	docs.File
	grams ngram.Filter // the trailer alone if the table has the rest
	text  bool         // the documents have the text in this state
}

// is reports whether a file in a state is f in its known state.
func (f *file) is(size, modTime, changeTime int64) bool {
	return f.ModTime != 0 && f.Size == size && f.ModTime == modTime && f.ChangeTime == changeTime
}

// current reports whether the file at a path has its known state, by all its times. A caller
// that has read the file asks afterwards, so that it did not read a later version.
func (f *file) current(path string, files *walk.Lookup) bool {
	info, err := files.Stat(path)
	return err == nil && f.ChangeTime != 0 && f.is(info.Size(), info.ModTime().UnixNano(), walk.ChangeTime(info))
}

// opened has the texts of files in their known state that were decoded or have secrets, and
// whose texts the documents do not have, such as those of formats that are converted. The zero
// opened is ready to use.
type opened struct {
	mu    sync.Mutex
	texts map[docs.File][]byte
	size  int // of all texts
}

// maxOpened is the largest size of all texts in bytes.
const maxOpened = 16 << 20

func (o *opened) get(f *file) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.texts[f.File]
}

// put adds a text. It removes all others if there is no room.
func (o *opened) put(f *file, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(text) > maxOpened || o.texts[f.File] != nil {
		return
	}
	if o.size+len(text) > maxOpened || o.texts == nil {
		o.texts, o.size = map[docs.File][]byte{}, 0
	}
	o.texts[f.File], o.size = text, o.size+len(text)
}

// Record returns what the documents know of the files. before, which may be nil, is an
// earlier result for the same documents. often tells whether there will be many searches.
func Record(r *docs.Reader, before *Known, often bool) (*Known, error) {
	before = cmp.Or(before, &Known{})
	n := len(before.files) + len(before.files)/16
	k := &Known{version: r.Version(), files: make([]file, 0, n), rows: make([]int32, 0, n), table: before.table, lacks: before.lacks, opened: cmp.Or(before.opened, &opened{})}
	add := func(f docs.File, grams ngram.Filter, row int32, text bool) {
		k.files, k.rows = append(k.files, file{f, grams, text}), append(k.rows, row)
	}
	old, skipped := 0, r.Skipped()
	skip := func(to string) { // because of the content
		for ; len(skipped) > 0 && (to == "" || skipped[0].Path < to); skipped = skipped[1:] {
			if s := skipped[0]; s.Reason == string(walk.TooLarge) {
				add(docs.File{Path: s.Path, Size: -1}, ngram.NotText, -1, false)
			} else if s.ModTime != 0 || s.Grams != "" {
				add(docs.File{Path: s.Path, Size: s.Size, ModTime: s.ModTime, ChangeTime: s.ChangeTime}, s.Grams, -1, false)
			}
		}
	}
	err := r.Files("", func(f docs.File) bool {
		skip(f.Path)
		for old < len(before.files) && before.files[old].Path < f.Path {
			old++
		}
		switch {
		case len(skipped) > 0 && skipped[0].Path == f.Path: // in part, or in a state that cannot be read
			add(f, skipped[0].Grams, -1, false)
			skipped = skipped[1:]
		case old < len(before.files) && before.files[old].Path == f.Path && before.files[old].Hash == f.Hash:
			add(f, before.files[old].grams, before.rows[old], true)
		default:
			add(f, r.Grams(f.Path), -1, true)
			k.lacks++
		}
		return true
	})
	skip("")
	if err == nil && often && tableLacks*k.lacks > len(k.files) {
		k.tabulate(r)
	}
	return k, err
}

// tabulate makes the table of all files.
func (k *Known) tabulate(r *docs.Reader) {
	filters := make([]ngram.Filter, len(k.files))
	for i := range k.files {
		f := &k.files[i]
		if k.rows[i] >= 0 {
			f.grams = r.Grams(f.Path)
		}
		filters[i] = f.grams
	}
	k.table, k.lacks = ngram.NewTable(filters), 0
	for i := range k.files {
		f := &k.files[i]
		if k.rows[i] = -1; k.table.Has(i) {
			k.rows[i], f.grams = int32(i), f.grams.Trailer()
		}
	}
}

// matches tells which files can have a line that fulfils a query.
type matches struct {
	known *Known
	query *ngram.Query
	rows  *ngram.Matches
}

func (k *Known) match(q *ngram.Query) *matches {
	m := &matches{known: k, query: q}
	if k.table != nil {
		m.rows = k.table.Match(q)
	}
	return m
}

func (m *matches) has(i int) bool {
	if row := m.known.rows[i]; row >= 0 {
		return m.rows.Has(int(row))
	}
	return m.query.Match(m.known.files[i].grams)
}

// parts returns the parts of file i that can have such a line, nil if they are not known.
func (m *matches) parts(i int) []ngram.Part {
	grams := m.known.files[i].grams
	if row := m.known.rows[i]; row >= 0 {
		return m.rows.Parts(int(row), grams)
	}
	return m.query.Parts(grams)
}

// index returns the place of a file, or where it would be if it is not known.
func (k *Known) index(path string) (i int, known bool) {
	return slices.BinarySearchFunc(k.files, path, func(f file, path string) int { return strings.Compare(f.Path, path) })
}

// within returns the range of the files whose paths have a prefix.
func (k *Known) within(prefix string) (first, end int) {
	first, _ = k.index(prefix)
	return first, first + sort.Search(len(k.files)-first, func(i int) bool { return !strings.HasPrefix(k.files[first+i].Path, prefix) })
}

// Containing returns the paths of the files that can contain a text, without regard to case.
func (k *Known) Containing(text string) (paths []string) {
	m := k.match(ngram.Literal(text))
	for i := range k.files {
		if m.has(i) {
			paths = append(paths, k.files[i].Path)
		}
	}
	return paths
}

// candidates returns Candidates without files, and the matcher of r.
func (k *Known) candidates(r *Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	k = cmp.Or(k, &Known{opened: &opened{}})
	return &Candidates{Files: []Candidate{}, unsearched: map[string]int{}, known: k, matches: k.match(m.query)}, nil
}

// Select walks the files and returns the candidates for r. A file is excluded only if its
// size and times are known, and its filter does not match the condition of the pattern.
func Select(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, r Request) (*Candidates, error) {
	c, err := known.candidates(&r)
	if err != nil {
		return nil, err
	}
	err = t.Walk(ctx, o, func(e walk.Entry) error {
		if !r.selects(e.Path) {
			return nil
		}
		if i, ok := c.known.index(e.Path); e.Reason == walk.None && ok && c.known.files[i].is(e.Size, e.ModTime, e.ChangeTime) {
			c.addKnown(i)
		} else {
			c.addEntry(&e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walking the folder: %w", err)
	}
	c.sort()
	return c, nil
}

// SelectWatched is Select for a folder of which all files are in their known state, except
// for those at and below the changed paths.
func SelectWatched(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, changed []string, r Request) (*Candidates, error) {
	c, err := known.candidates(&r)
	if err != nil {
		return nil, err
	}
	other := map[int]bool{} // files that may have changed
	for _, path := range changed {
		path = strings.TrimSuffix(path, "/")
		if i, ok := known.index(path); ok {
			other[i] = true
		}
		for i, end := known.within(path + "/"); i < end; i++ {
			other[i] = true
		}
	}
	for i, end := known.within(r.PathPrefix); i < end; i++ {
		if !other[i] && (r.Kind == "" || r.selects(known.files[i].Path)) {
			c.addKnown(i)
		}
	}
	if len(changed) > 0 {
		err = t.WalkPaths(ctx, o, changed, func(e walk.Entry) error {
			if i, ok := known.index(e.Path); r.selects(e.Path) && (!ok || other[i]) {
				c.addEntry(&e)
			}
			return nil
		})
	}
	c.sort()
	return c, err
}
