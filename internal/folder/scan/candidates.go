package scan

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/walk"
)

// Candidates are the files that a scan reads.
type Candidates struct {
	// Paths are sorted.
	Paths []string `json:"paths"`
	// Plain are the states in which these files have no secrets by Rules, see
	// secret.Masks.Rules; the zero State for a file that may have some.
	Plain []State `json:"plain,omitempty"`
	Rules string  `json:"rules,omitempty"`
	// Parts are those of each file in its Plain state that can match, nil for all.
	Parts [][]ngram.Part `json:"parts,omitempty"`
	// Excluded is the number of text files that cannot have a matching line.
	Excluded int `json:"excluded"`
}

// State tells a version of a file from the others, like the fields of docs.File.
type State struct{ Size, ModTime, ChangeTime int64 }

// holds reports whether a file is known and has the state s. A caller that has read the file
// asks afterwards, so that it did not read a later version.
func (s State) holds(files *walk.Lookup, path string) bool {
	if s.ModTime == 0 || s.ChangeTime == 0 {
		return false
	}
	info, err := files.Stat(path)
	return err == nil && s == State{info.Size(), info.ModTime().UnixNano(), walk.ChangeTime(info)}
}

// at returns candidate i. Its state is the zero State unless the rules are those of the masks.
func (c *Candidates) at(i int, rules string) candidate {
	k := candidate{path: c.Paths[i]}
	if i < len(c.Plain) && i < len(c.Parts) && c.Rules == rules {
		k.plain, k.parts = c.Plain[i], c.Parts[i]
	}
	return k
}

// candidate is a file, and what is known of it in the state plain.
type candidate struct {
	path  string
	plain State
	parts []ngram.Part
}

// complete sorts the paths of c and sets what is known of them.
func (c *Candidates) complete(k *Known, l *looked) {
	slices.Sort(c.Paths)
	c.Plain, c.Parts = make([]State, len(c.Paths)), make([][]ngram.Part, len(c.Paths))
	for i, path := range c.Paths {
		if f := k.find(path); f != nil && f.grams.Unmasked() {
			c.Plain[i], c.Parts[i] = State{f.Size, f.ModTime, f.ChangeTime}, l.parts(f)
		}
	}
}

// Known are the states of the files of a folder in its documents. It does not change. Nil
// knows no file.
type Known struct {
	files []file       // sorted by path
	table *ngram.Table // of most files; nil if searches are rare
	lacks int          // files that were recorded since the table was made
}

// tableLacks is the share of files that a table may lack before it is made again, as a
// divisor.
const tableLacks = 16

// file is a file as it was read. A young one, see package indexer, has no ModTime.
type file struct {
	docs.File
	grams ngram.Filter // the trailer alone if the table has the rest
	row   int          // in the table, plus 1; 0 if it does not have the file
}

// Record returns what the documents know of the files. before, which may be nil, is an
// earlier result for the same documents. often tells whether there will be many searches.
func Record(r *docs.Reader, before *Known, often bool) (*Known, error) {
	before = cmp.Or(before, &Known{})
	k := &Known{files: make([]file, 0, len(before.files)+len(before.files)/16), table: before.table, lacks: before.lacks}
	old, skipped := before.files, r.Skipped()
	skip := func(to string) { // because of the content
		for ; len(skipped) > 0 && (to == "" || skipped[0].Path < to); skipped = skipped[1:] {
			if s := skipped[0]; s.ModTime != 0 || s.Grams != "" {
				k.files = append(k.files, file{docs.File{Path: s.Path, Size: s.Size, ModTime: s.ModTime, ChangeTime: s.ChangeTime}, s.Grams, 0})
			}
		}
	}
	err := r.Files("", func(f docs.File) bool {
		skip(f.Path)
		for len(old) > 0 && old[0].Path < f.Path {
			old = old[1:]
		}
		switch {
		case len(skipped) > 0 && skipped[0].Path == f.Path: // in part, or in a state that cannot be read
			k.files = append(k.files, file{f, skipped[0].Grams, 0})
			skipped = skipped[1:]
		case len(old) > 0 && old[0].Path == f.Path && old[0].Hash == f.Hash:
			k.files = append(k.files, file{f, old[0].grams, old[0].row})
		default:
			k.files = append(k.files, file{f, r.Grams(f.Path), 0})
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
		if f.row > 0 {
			f.grams = r.Grams(f.Path)
		}
		filters[i] = f.grams
	}
	k.table, k.lacks = ngram.NewTable(filters), 0
	for i := range k.files {
		f := &k.files[i]
		if f.row = 0; k.table.Has(i) {
			f.row, f.grams = i+1, f.grams.Trailer()
		}
	}
}

// looked is a query with the files of the table that can fulfil it.
type looked struct {
	query   *ngram.Query
	matches *ngram.Matches
}

func (k *Known) look(q *ngram.Query) *looked {
	l := &looked{query: q}
	if k != nil && k.table != nil {
		l.matches = k.table.Match(q)
	}
	return l
}

func (l *looked) match(f *file) bool {
	if f.row > 0 {
		return l.matches.Has(f.row - 1)
	}
	return l.query.Match(f.grams)
}

func (l *looked) parts(f *file) []ngram.Part {
	if f.row > 0 {
		return l.matches.Parts(f.row-1, f.grams)
	}
	return l.query.Parts(f.grams)
}

// find returns what is known of a file, nil if that is nothing.
func (k *Known) find(path string) *file {
	if k == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(k.files, path, func(f file, path string) int { return strings.Compare(f.Path, path) }); ok {
		return &k.files[i]
	}
	return nil
}

// Containing returns the paths of the files that can contain a text, without regard to case.
func (k *Known) Containing(text string) (paths []string) {
	l := k.look(ngram.Literal(text))
	for i := range k.files {
		if f := &k.files[i]; l.match(f) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Select walks the files and returns the candidates for r. A file is excluded only if its
// size and times are known, and its filter does not match the condition of the pattern.
func Select(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, r Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	c, l := &Candidates{Paths: []string{}}, known.look(m.query)
	err = t.Walk(ctx, o, func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !r.selects(e.Path) {
			return nil
		}
		if f := known.find(e.Path); f == nil || f.ModTime == 0 || f.Size != e.Size || f.ModTime != e.ModTime || f.ChangeTime != e.ChangeTime {
			c.Paths = append(c.Paths, e.Path)
		} else {
			c.add(f, l)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walking the folder: %w", err)
	}
	c.complete(known, l)
	return c, nil
}

// add adds or excludes a file in its known state.
func (c *Candidates) add(f *file, l *looked) {
	if l.match(f) {
		c.Paths = append(c.Paths, f.Path)
	} else if f.grams != ngram.NotText {
		c.Excluded++
	}
}

// SelectWatched is Select for a folder of which all files are in their known state, except
// for those at and below the changed paths.
func SelectWatched(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, changed []string, r Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	paths := newPaths(changed)
	c, l := &Candidates{Paths: []string{}}, known.look(m.query)
	shares := make([]Candidates, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for n := range shares {
		wg.Go(func() {
			for i := len(known.files) * n / len(shares); i < len(known.files)*(n+1)/len(shares); i++ {
				if f := &known.files[i]; r.selects(f.Path) && !paths.cover(f.Path) {
					shares[n].add(f, l)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range shares {
		c.Paths, c.Excluded = append(c.Paths, s.Paths...), c.Excluded+s.Excluded
	}
	if len(changed) > 0 {
		err = t.WalkPaths(ctx, o, changed, func(e walk.Entry) error {
			if e.Reason == walk.None && !e.Dir && r.selects(e.Path) && paths.cover(e.Path) {
				c.Paths = append(c.Paths, e.Path)
			}
			return nil
		})
	}
	c.complete(known, l)
	return c, err
}

// paths are files and folders.
type paths map[string]bool

func newPaths(list []string) paths {
	p := make(paths, len(list))
	for _, path := range list {
		p[strings.TrimSuffix(path, "/")] = true
	}
	return p
}

// cover reports whether a path is one of p or below it.
func (p paths) cover(path string) bool {
	if len(p) > 0 && p[path] {
		return true
	}
	for i := len(path) - 1; i > 0 && len(p) > 0; i-- {
		if path[i] == '/' && p[path[:i]] {
			return true
		}
	}
	return false
}
