package cards

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
	folder  string
	board   *Board
}

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
	inode         uint64
	dir           bool
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
		s.folder, s.entries, s.board = folder, map[string]*entry{}, nil
	}
	if info, err := s.files.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		clear(s.entries)
		s.board = newBoard(nil)
		return s.board, nil
	} else if err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("reading cards: %s is not a usable folder", folder), err)
	}
	top, rel, err := s.files.Dir(folder)
	if err != nil {
		return nil, err
	}
	changed, err := s.scan(filepath.Join(top, filepath.FromSlash(rel)))
	if err != nil {
		return nil, fmt.Errorf("reading cards: %w", err)
	}
	if changed || s.board == nil {
		s.board = newBoard(s.entries)
	}
	return s.board, nil
}

// scan brings entries up to date with the folder.
func (s *Store) scan(dir string) (changed bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name[0] == '.' || !strings.HasSuffix(name, ".md") })
	// Nearly all the time of an answer goes into asking for ten thousand files.
	const part = 2048
	parts := make([][]*found, (len(names)+part-1)/part)
	var seen atomic.Int64
	parallel(len(parts), func(k int) {
		same := 0
		for _, name := range names[k*part : min((k+1)*part, len(names))] {
			st, err := statAt(f, root, name)
			if err != nil || st.dir {
				continue // gone meanwhile
			}
			if old := s.entries[name]; old != nil && !old.racy && old.stat == st {
				same++
				continue
			}
			parts[k] = append(parts[k], &found{name: name, stat: st})
		}
		seen.Add(int64(same))
	})
	stale := slices.Concat(parts...)
	if int(seen.Load())+len(stale) < len(s.entries) {
		changed = true
		there := make(map[string]bool, len(names))
		for _, name := range names {
			there[name] = true
		}
		for name := range s.entries {
			if !there[name] {
				delete(s.entries, name)
			}
		}
	}
	if len(stale) == 0 {
		return changed, nil
	}
	const batch = 64
	parallel((len(stale)+batch-1)/batch, func(k int) {
		for _, f := range stale[k*batch : min((k+1)*batch, len(stale))] {
			s.load(f)
		}
	})
	for _, f := range stale {
		if f.entry == nil {
			delete(s.entries, f.name)
			continue
		}
		s.entries[f.name] = f.entry
	}
	return true, nil
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
	age := time.Since(info.ModTime())
	e.racy = age < racyWindow && age > -time.Hour
	switch reason := walk.Check(content); reason {
	case walk.None:
		e.card, e.broken = parse(id, p, content, info)
	default:
		refuse(Unreadable, reason.String())
	}
}

func newBoard(entries map[string]*entry) *Board {
	b := &Board{Cards: make([]*Card, 0, len(entries)), byID: make(map[string]*Card, len(entries))}
	for _, e := range entries {
		if e.broken != nil {
			b.broken = append(b.broken, *e.broken)
		}
		if e.card != nil {
			b.Cards = append(b.Cards, e.card)
			b.byID[e.card.ID] = e.card
		}
	}
	slices.SortFunc(b.Cards, func(a, c *Card) int {
		if a.Created.IsZero() != c.Created.IsZero() {
			if a.Created.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Created.Compare(c.Created), strings.Compare(a.ID, c.ID))
	})
	slices.SortFunc(b.broken, func(a, c Problem) int { return strings.Compare(a.Path, c.Path) })
	b.graph = sync.OnceValues(func() (*taskdag.Graph, error) { return taskdag.New(task.Nodes(b.Tasks())) })
	return b
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
