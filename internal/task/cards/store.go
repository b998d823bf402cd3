package cards

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/taskdag"
	"cairn/internal/walk"
)

// The folders that hold cards: the first where it exists, else the second.
const (
	CueDeckFolder = ".cuedeck/cards"
	Folder        = ".cairn/cards"
)

// Options of New. Nil and the zero value mean the defaults.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// EnforceStart refuses to set a card active while its dependencies are not
	// done (DAG_ENFORCE_ON_STATUS_CHANGE).
	EnforceStart bool
}

// Store is the cards of one workspace. It looks at the files for every answer,
// so hand edits count at once, and parses only what changed. It is safe for
// concurrent use, in any number of processes.
type Store struct {
	files   *files.Tree
	now     func() time.Time
	enforce bool

	mu      sync.Mutex
	entries map[string]*entry // by file name
	unsure  map[string]bool   // the files to look at for every answer, whatever the watch says
	folder  string
	board   *Board
	// watch spares asking for every file of a large folder; nil for a small
	// one and where there is none to be had.
	watch   *watch
	blind   bool      // there is none to be had
	scanned time.Time // when every file was last looked at; zero for never
}

// watchFrom is from how many cards on looking at each of them takes so long
// that a watch is worth having: a millisecond.
const watchFrom = 500

// scanEvery bounds how long a change goes unseen that no watch tells of: one
// through a memory map after the file was closed, or by another name that the
// file was given in another folder after it was read.
const scanEvery = 10 * time.Second

// New returns the cards below the main root of tree.
func New(tree *files.Tree, o *Options) *Store {
	s := &Store{files: tree, now: time.Now}
	if o != nil {
		s.enforce = o.EnforceStart
		if o.Now != nil {
			s.now = o.Now
		}
	}
	return s
}

// entry is what is known of one file.
type entry struct {
	stat   stat
	racy   bool  // changed so shortly before it was read that it may have changed again unseen
	card   *Card // nil for a file that is none
	broken *Problem
}

// stat is what tells one version of a file from another.
type stat struct {
	size, modTime int64 // bytes; Unix nanoseconds
	// changeTime is when anything about the file last changed, its permissions and
	// times included, in Unix nanoseconds; modTime where the system does not tell.
	changeTime int64
	inode      uint64
	dir        bool
	linked     bool // has other names, through which it can change unseen
}

// racyWindow covers the coarsest time stamps of file systems in use but FAT.
const racyWindow = 50 * time.Millisecond

// Board is all cards at one moment. It is immutable.
type Board struct {
	// Cards in the order of creation: by Created, those without last, then by id.
	Cards  []*Card
	broken []Problem
	byID   map[string]*Card
	graph  func() (*taskdag.Graph, error)
	memory sync.Map
}

// Card returns the card of that id.
func (b *Board) Card(id string) (*Card, bool) {
	c, ok := b.byID[id]
	return c, ok
}

// Graph is the graph of all cards, archived ones included, built once.
func (b *Board) Graph() (*taskdag.Graph, error) { return b.graph() }

// Tasks are the tasks of all cards, in their order.
func (b *Board) Tasks() []task.Task {
	tasks := make([]task.Task, len(b.Cards))
	for i, c := range b.Cards {
		tasks[i] = c.Task
	}
	return tasks
}

// cardsFolder is the workspace path of the folder in use.
func (s *Store) cardsFolder() (string, error) {
	info, err := s.files.Stat(CueDeckFolder)
	switch {
	case err == nil && info.IsDir():
		return CueDeckFolder, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("looking for cards: %w", err)
	}
	return Folder, nil
}

// Path is the workspace path of a card's file.
func (s *Store) Path(id string) (string, error) {
	folder, err := s.cardsFolder()
	return path.Join(folder, id+".md"), err
}

// Board reads what changed since the last time and returns all cards.
func (s *Store) Board() (*Board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder, err := s.cardsFolder()
	if err != nil {
		return nil, err
	}
	if folder != s.folder {
		s.forget()
		s.folder = folder
	}
	info, err := s.files.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		s.forget()
		s.board = newBoard(nil)
		return s.board, nil
	} else if err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("reading cards: %s is not a usable folder", folder), err)
	}
	top, rel, err := s.files.Dir(folder)
	if err != nil {
		return nil, err
	}
	changed, err := s.refresh(filepath.Join(top, filepath.FromSlash(rel)), info)
	if err != nil {
		return nil, fmt.Errorf("reading cards: %w", err)
	}
	switch {
	case s.board == nil || len(changed) > len(s.entries)/4:
		s.board = newBoard(s.entries)
	case len(changed) > 0:
		s.board = s.board.with(changed, s.entries)
	}
	return s.board, nil
}

// Close gives up the watch. The store can still be used.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
	s.blind = true
}

func (s *Store) unwatch() {
	if s.watch != nil {
		s.watch.close()
		s.watch = nil
	}
}

// forget is for another folder, or none.
func (s *Store) forget() {
	s.unwatch()
	s.entries, s.unsure, s.board, s.scanned = map[string]*entry{}, map[string]bool{}, nil, time.Time{}
}

// refresh brings entries up to date with the folder and names those that changed.
func (s *Store) refresh(dir string, info fs.FileInfo) (changed []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if s.watch != nil && !s.watch.of(info) {
		s.unwatch()
	}
	if s.watch == nil && !s.blind && !s.scanned.IsZero() && len(s.entries) >= watchFrom {
		if s.watch, err = newWatch(dir); err != nil {
			s.watch, s.blind = nil, true // then every file is looked at each time
		} else if !s.watch.of(info) {
			s.unwatch()
		}
		s.scanned = time.Time{} // what changed before the watch
	}
	if s.watch != nil {
		// What is told of now is covered by what is looked at below.
		names, complete := s.watch.changed()
		if complete && time.Since(s.scanned) < scanEvery {
			return s.look(f, root, names), nil
		}
	}
	return s.scan(f, root)
}

// look looks at the files named and at those nobody is sure of.
func (s *Store) look(f *os.File, root *os.Root, names []string) (changed []string) {
	there := make(map[string]bool, len(names)+len(s.unsure))
	for _, name := range names {
		if isCard(name) {
			there[name] = true
		}
	}
	for name := range s.unsure {
		there[name] = true
	}
	var stale []*found
	for name := range there {
		st, err := statAt(f, root, name)
		if err != nil || st.dir {
			if s.entries[name] != nil {
				s.drop(name)
				changed = append(changed, name)
			}
			continue
		}
		if f := s.stale(name, st); f != nil {
			stale = append(stale, f)
		}
	}
	return append(changed, s.loadAll(stale)...)
}

func isCard(name string) bool { return name[0] != '.' && strings.HasSuffix(name, ".md") }

// stale is the file to be read anew, nil for one that is known as it is.
func (s *Store) stale(name string, st stat) *found {
	if old := s.entries[name]; old != nil && !old.racy && old.stat == st {
		return nil
	}
	return &found{name: name, stat: st}
}

func (s *Store) drop(name string) {
	delete(s.entries, name)
	delete(s.unsure, name)
}

// scan looks at every file of the folder.
func (s *Store) scan(f *os.File, root *os.Root) (changed []string, err error) {
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isCard(name) })
	// Nearly all the time of an answer goes into asking for ten thousand files.
	const part = 2048
	parts := make([][]*found, (len(names)+part-1)/part)
	gone := make([][]string, len(parts))
	var known atomic.Int64 // those of entries that are among names
	parallel(len(parts), func(k int) {
		for _, name := range names[k*part : min((k+1)*part, len(names))] {
			old := s.entries[name] != nil
			if old {
				known.Add(1)
			}
			st, err := statAt(f, root, name)
			if err != nil || st.dir {
				if old {
					gone[k] = append(gone[k], name)
				}
				continue
			}
			if f := s.stale(name, st); f != nil {
				parts[k] = append(parts[k], f)
			}
		}
	})
	changed = slices.Concat(gone...)
	if int(known.Load()) < len(s.entries) {
		there := make(map[string]bool, len(names))
		for _, name := range names {
			there[name] = true
		}
		for name := range s.entries {
			if !there[name] {
				changed = append(changed, name)
			}
		}
	}
	for _, name := range changed {
		s.drop(name)
	}
	s.scanned = time.Now()
	return append(changed, s.loadAll(slices.Concat(parts...))...), nil
}

// loadAll reads files and names those whose cards are others now.
func (s *Store) loadAll(stale []*found) (changed []string) {
	const batch = 64
	parallel((len(stale)+batch-1)/batch, func(k int) {
		for _, f := range stale[k*batch : min((k+1)*batch, len(stale))] {
			s.load(f)
		}
	})
	for _, f := range stale {
		changed = append(changed, f.name)
		if f.entry == nil {
			s.drop(f.name)
			continue
		}
		s.entries[f.name] = f.entry
		if f.entry.racy || f.entry.stat.linked {
			s.unsure[f.name] = true
		} else {
			delete(s.unsure, f.name)
		}
	}
	return changed
}

// parallel calls do with 0 to n-1 on every processor and waits.
func parallel(n int, do func(k int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for k := range n {
		g.Go(func() error { do(k); return nil })
	}
	_ = g.Wait() // no call returns an error
}

type found struct {
	name  string
	stat  stat
	entry *entry // nil when the file is gone
}

// load reads one file.
func (s *Store) load(f *found) {
	id := strings.TrimSuffix(f.name, ".md")
	p := path.Join(s.folder, f.name)
	e := &entry{stat: f.stat}
	refuse := func(kind, message string) {
		e.broken = &Problem{Path: p, ID: id, Kind: kind, Message: message, Fix: fixes[kind], Error: true}
	}
	f.entry = e
	if !stemPattern.MatchString(id) {
		refuse(OddName, "file name cannot be a card id")
		return
	}
	content, info, err := s.files.ReadFile(p, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.entry = nil
		return
	case err != nil:
		e.racy = errors.Is(err, walk.ErrChanged)
		refuse(Unreadable, err.Error())
		return
	}
	e.stat = statOf(info)
	age := time.Since(time.Unix(0, e.stat.changeTime))
	e.racy = age < racyWindow && age > -time.Hour
	switch reason := walk.Check(content); reason {
	case walk.None:
		e.card, e.broken = parse(id, p, content, info)
	default:
		refuse(Unreadable, reason.String())
	}
}

// newBoard makes the board of all entries.
func newBoard(entries map[string]*entry) *Board {
	b := &Board{Cards: make([]*Card, 0, len(entries)), byID: make(map[string]*Card, len(entries))}
	for _, e := range entries {
		b.add(e)
	}
	b.finish()
	return b
}

// with is the board after changes of the named files: those that stayed are not
// sorted again.
func (b *Board) with(names []string, entries map[string]*entry) *Board {
	fresh := &Board{byID: maps.Clone(b.byID)}
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		id := strings.TrimSuffix(name, ".md")
		gone[id] = true
		delete(fresh.byID, id)
	}
	for id := range gone {
		if e := entries[id+".md"]; e != nil {
			fresh.add(e)
		}
	}
	for _, p := range b.broken {
		if !gone[p.ID] {
			fresh.broken = append(fresh.broken, p)
		}
	}
	slices.SortFunc(fresh.Cards, byCreation)
	merged := make([]*Card, 0, len(b.Cards)+len(fresh.Cards))
	rest := fresh.Cards
	for _, c := range b.Cards {
		if gone[c.ID] {
			continue
		}
		for len(rest) > 0 && byCreation(rest[0], c) < 0 {
			merged, rest = append(merged, rest[0]), rest[1:]
		}
		merged = append(merged, c)
	}
	fresh.Cards = append(merged, rest...)
	fresh.finish()
	return fresh
}

func (b *Board) add(e *entry) {
	if e.broken != nil {
		b.broken = append(b.broken, *e.broken)
	}
	if e.card != nil {
		b.Cards = append(b.Cards, e.card)
		b.byID[e.card.ID] = e.card
	}
}

// finish puts everything in order; cards that are in order already stay.
func (b *Board) finish() {
	if !slices.IsSortedFunc(b.Cards, byCreation) {
		slices.SortFunc(b.Cards, byCreation)
	}
	slices.SortFunc(b.broken, func(a, c Problem) int { return strings.Compare(a.Path, c.Path) })
	b.graph = sync.OnceValues(func() (*taskdag.Graph, error) { return taskdag.New(task.Nodes(b.Tasks())) })
}

// byCreation orders by Created, those without last, then by id.
func byCreation(a, c *Card) int {
	if a.Created.IsZero() != c.Created.IsZero() {
		if a.Created.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Created.Compare(c.Created), strings.Compare(a.ID, c.ID))
}

// Remember returns what build made for this board under key, building it once:
// a board is immutable, so what follows from it can be kept with it.
func Remember[T any](b *Board, key string, build func() T) T {
	if v, ok := b.memory.Load(key); ok {
		return v.(T)
	}
	v, _ := b.memory.LoadOrStore(key, build())
	return v.(T)
}
