package history

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"cairn/internal/text/git"
)

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
	return h.stored != nil && h.working.head != h.stored.Head
}

// compare sets h.working.
func (h *History) compare() error {
	h.working = working{head: h.stored.Head}
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
