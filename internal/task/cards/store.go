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
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

// The folders of cards. A Store uses the first if it exists, otherwise the second.
const (
	CueDeckFolder = ".cuedeck/cards"
	Folder        = ".cairn/cards"
)

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// EnforceStart forbids setting a card active while its dependencies are not done
	// (DAG_ENFORCE_ON_STATUS_CHANGE).
	EnforceStart bool
	// Assignee is the default assignee of new cards; "" means none.
	Assignee string
	// Claude is the folder of a task list of Claude Code, whose tasks are cards, too; "" means
	// none.
	Claude string
}

// Store holds the cards of a workspace. It checks the files before every answer, so edits
// by hand take effect at once, and parses only the changed files. It is safe for concurrent
// use by any number of processes.
type Store struct {
	files *files.Tree
	o     Options

	mu      sync.Mutex
	tasks   map[string]*entry // of Claude Code, by the file name that the card would have
	folder  string            // workspace path of the folder to which the other fields refer
	entries map[string]*entry // by file name
	board   *Board            // of entries and tasks; nil if one of them has changed
}

// New returns the Store of the cards below the main root of tree.
func New(tree *files.Tree, o *Options) *Store {
	s := &Store{files: tree, o: *cmp.Or(o, &Options{})}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	return s
}

// entry is the cached state of a file.
type entry struct {
	version  version
	racy     bool          // read so soon after a change that another change may keep the version
	card     *Card         // nil if the file is not a card
	unusable *task.Problem // the reason why the file is not a card
}

// version distinguishes the states of a file.
type version struct{ size, modTime, changeTime int64 }

func versionOf(info fs.FileInfo) version {
	return version{info.Size(), info.ModTime().UnixNano(), walk.ChangeTime(info)}
}

// cardsFolder returns the workspace path of the folder in use.
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

// Path returns the workspace path of a card's file.
func (s *Store) Path(id string) (string, error) {
	folder, err := s.cardsFolder()
	if err != nil {
		return "", err
	}
	p, ok := s.own(folder, id)
	if ok {
		return p, nil
	}
	if b, err := s.Board(); err == nil {
		if c, ok := b.Card(id); ok {
			p = path.Join(folder, c.ID+".md")
		}
	}
	return p, nil
}

// own returns the path of a card in the folder, and whether there is a file. It does not read
// the board, which takes four times as long as an update of one of 10,000 cards.
func (s *Store) own(folder, id string) (p string, ok bool) {
	p = path.Join(folder, id+".md")
	info, err := s.files.Stat(p)
	return p, err == nil && info.Mode().IsRegular() && id == strings.ToLower(id)
}

// Board reads the files that changed since the last call and returns all cards.
func (s *Store) Board() (*Board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkCards(); err != nil {
		return nil, err
	}
	s.checkTasks()
	if s.board == nil {
		s.board = newBoard(s.entries, s.tasks)
	}
	return s.board, nil
}

// checkCards reads the files of cards that changed, and drops the board if there are any. The
// caller holds s.mu.
func (s *Store) checkCards() error {
	folder, err := s.cardsFolder()
	if err != nil {
		return err
	}
	info, err := s.files.Stat(folder)
	missing := errors.Is(err, fs.ErrNotExist)
	if folder != s.folder || missing {
		s.folder, s.entries, s.board = folder, map[string]*entry{}, nil
	}
	if missing {
		return nil
	}
	if err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("reading cards: %s is not a usable folder", folder), err)
	}
	top, rel, err := s.files.Dir(folder)
	if err != nil {
		return err
	}
	dir := filepath.Join(top, filepath.FromSlash(rel))
	names, err := s.all(dir)
	if err != nil {
		return fmt.Errorf("reading cards: %w", err)
	}
	s.check(dir, names)
	return nil
}

// all returns the names of the files that exist or that the store has read.
func (s *Store) all(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	exist := make(map[string]bool, len(names))
	for _, name := range names {
		exist[name] = true
	}
	for name := range s.entries {
		if !exist[name] {
			names = append(names, name)
		}
	}
	return names, nil
}

// check updates the entries of the named files. It drops the board if one changes.
func (s *Store) check(dir string, names []string) {
	const batch = 256 // checking ten thousand files takes nearly all the time of an answer
	fresh := make([]*entry, len(names))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(names); from += batch {
		g.Go(func() error {
			for i := from; i < min(from+batch, len(names)); i++ {
				fresh[i] = s.load(dir, names[i])
			}
			return nil
		})
	}
	_ = g.Wait() // no call returns an error
	for i, name := range names {
		e, old := fresh[i], s.entries[name]
		if e == old {
			continue
		}
		s.board = nil
		delete(s.entries, name)
		if e != nil {
			s.entries[name] = e
		}
	}
}

// load returns the entry of a file: the cached one if the file is unchanged, nil if there is
// no such file.
func (s *Store) load(dir, name string) *entry {
	id, isCard := strings.CutSuffix(name, ".md")
	if !isCard || name[0] == '.' {
		return nil
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil || info.IsDir() {
		return nil
	}
	e := &entry{version: versionOf(info)}
	if old := s.entries[name]; old != nil && !old.racy && old.version == e.version {
		return old
	}
	p := path.Join(s.folder, name)
	refuse := func(kind, message string) *entry {
		problem := newProblem(p, id, kind, message)
		problem.Error = true // the file is not on the board
		e.unusable = &problem
		return e
	}
	if !stemPattern.MatchString(id) {
		return refuse(task.OddName, "file name cannot be a card id")
	}
	content, info, err := s.files.ReadFile(p, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		e.racy = errors.Is(err, walk.ErrChanged)
		return refuse(task.Unreadable, err.Error())
	}
	e.version = versionOf(info)
	e.racy = files.Racy(cmp.Or(e.version.changeTime, e.version.modTime))
	if reason := walk.Check(content); reason != walk.None {
		return refuse(task.Unreadable, string(reason))
	}
	e.card, e.unusable = parse(id, p, content, info)
	return e
}
