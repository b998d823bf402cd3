// Package history relates the files of a folder by its git history: files that were
// changed together, and files that differ from the last commit.
//
// The file of a History holds the newest commits, so that only new ones are read from the
// repository. It can be removed at any time. A folder that is not the root of a git
// repository has no history.
package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
	"cairn/internal/text/git"
)

// maxCommits bounds the commits of a History, and updateLimit the time of one Update; the
// next one continues.
const (
	maxCommits  = 10_000
	updateLimit = 10 * time.Second
)

// History is the history of a folder. It is safe for concurrent use.
type History struct {
	folder, file string
	log          *slog.Logger

	update  sync.Mutex // held by Update
	mu      sync.Mutex // guards the fields below
	memory  *memory    // nil until the file was read
	working working
}

// memory is the content of the file, and what is made of the commits when it is needed.
type memory struct {
	stored
	graph    func() *graphrank.Graph // nil if there are no commits
	subjects func() *subjects
}

func remember(s stored) *memory {
	return &memory{s, sync.OnceValue(func() *graphrank.Graph { return learn(s.Commits) }), sync.OnceValue(func() *subjects { return newSubjects(s.Commits) })}
}

// Open returns the history of a folder. file need not exist.
func Open(folder, file string, log *slog.Logger) *History {
	return &History{folder: folder, file: file, log: log}
}

// stored is the content of the file, as JSON below a line with its version and checksum.
type stored struct {
	Head git.Hash `json:"head"`
	// Complete reports that all commits were read, or as many as are kept.
	Complete bool     `json:"complete"`
	Commits  []record `json:"commits"` // the newest first
}

// record is a commit as it was read.
type record struct {
	Hash    git.Hash     `json:"h"`
	Time    int64        `json:"t"` // seconds
	Subject string       `json:"s"`
	Parents []git.Hash   `json:"p"`
	Changes []git.Change `json:"c"`
}

func heading(text []byte) []byte {
	return fmt.Appendf(nil, "cairn history 1 %08x\n", checksum.Of(text))
}

// load returns the content of the file, an empty one if it cannot be used.
func (h *History) load() *memory {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.memory != nil {
		return h.memory
	}
	var s stored
	all, err := os.ReadFile(h.file)
	line, text, _ := bytes.Cut(all, []byte("\n"))
	if err != nil || !bytes.Equal(append(line, '\n'), heading(text)) || json.Unmarshal(text, &s) != nil {
		s = stored{}
	}
	h.memory = remember(s)
	return h.memory
}

// Update reads the commits that are new since the last Update and writes the file. It does
// nothing if there are none.
func (h *History) Update(ctx context.Context) error {
	h.update.Lock()
	defer h.update.Unlock()
	r, err := git.Open(h.folder)
	if errors.Is(err, git.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := r.Head()
	if errors.Is(err, git.ErrNone) {
		return nil
	}
	old := h.load()
	if err != nil || head == old.Head && old.Complete {
		return err
	}
	next, err := read(ctx, r, head, &old.stored)
	if err != nil {
		return err
	}
	text, _ := json.Marshal(next) // never fails: it has only strings and numbers
	h.mu.Lock()
	h.memory = remember(*next)
	h.mu.Unlock()
	return atomicfile.Write(h.file, append(heading(text), text...), 0o600)
}

// read returns the newest commits that head contains, those of old without reading them.
func read(ctx context.Context, r *git.Repository, head git.Hash, old *stored) (*stored, error) {
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()
	known := make(map[git.Hash]*record, len(old.Commits))
	for i := range old.Commits {
		known[old.Commits[i].Hash] = &old.Commits[i]
	}
	from := []git.Hash{head}
	if !old.Complete {
		for _, c := range old.Commits {
			from = append(from, c.Parents...)
		}
	}
	next := &stored{Head: head, Complete: true}
	added := 0
	err := r.Walk(ctx, from, func(h git.Hash) bool { return known[h] != nil }, func(c *git.Commit) (bool, error) {
		n := &record{Hash: c.Hash, Time: c.Time.Unix(), Subject: c.Subject, Parents: c.Parents}
		if len(c.Parents) < 2 { // the changes of a merge are those of its other commits
			var err error
			if n.Changes, _, err = r.Changes(c); err != nil {
				return false, err
			}
		}
		known[c.Hash] = n
		added++
		return added < maxCommits, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		next.Complete, err = false, nil
	}
	for pending := []git.Hash{head}; len(pending) > 0; pending = pending[1:] {
		if c := known[pending[0]]; c != nil {
			delete(known, pending[0])
			next.Commits = append(next.Commits, *c)
			pending = append(pending, c.Parents...)
		}
	}
	slices.SortStableFunc(next.Commits, func(a, b record) int { return cmp.Compare(b.Time, a.Time) })
	if len(next.Commits) > maxCommits {
		next.Commits, next.Complete = next.Commits[:maxCommits], true
	}
	return next, err
}

// maxWorking bounds the files of Changed. The folder is compared again after
// workingInterval, or workingShare times as long as the last comparison took.
const (
	maxWorking      = 50
	workingInterval = 2 * time.Second
	workingShare    = 50
)

// working is the result of the last comparison.
type working struct {
	head  git.Hash
	paths []string
	until time.Time // when the folder is compared again
}

// Changed returns the tracked files that may differ from the last commit, the last changed
// first.
func (h *History) Changed() []string {
	h.load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if start := time.Now(); start.After(h.working.until) {
		if err := h.compare(); err != nil && !errors.Is(err, git.ErrNone) && !errors.Is(err, fs.ErrNotExist) {
			h.log.Warn("comparing the folder with its last commit", "error", err)
		}
		h.working.until = time.Now().Add(max(workingInterval, workingShare*time.Since(start)))
	}
	return slices.Clone(h.working.paths)
}

// Stale reports whether the last call of Changed found commits for Update.
func (h *History) Stale() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.memory != nil && h.working.head != h.memory.Head
}

// compare sets h.working.
func (h *History) compare() error {
	h.working = working{head: h.memory.Head}
	r, err := git.Open(h.folder)
	if err != nil {
		return err
	}
	defer r.Close()
	if h.working.head, err = r.Head(); err != nil {
		return err
	}
	folder, err := os.OpenRoot(h.folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	h.working.paths, err = r.Differing(folder, maxWorking)
	return err
}
