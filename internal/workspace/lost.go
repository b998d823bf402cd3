package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/store"
)

// FolderError says that the folder of a workspace is not there.
type FolderError struct{ Root string }

func (e *FolderError) Error() string {
	return fmt.Sprintf("the folder %s is not there any more: make it again, and it is indexed anew, or choose another with -C", e.Root)
}

// Is makes a FolderError an fs.ErrNotExist.
func (e *FolderError) Is(target error) bool { return target == fs.ErrNotExist }

// there fails with a *FolderError where the folder is missing.
func (w *Workspace) there() error {
	info, err := os.Stat(w.selection.Root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return &FolderError{w.selection.Root}
	}
	return nil // what else is wrong, those who open it say
}

// lost reports whether what is open is not in the folder any more: somebody
// removed the folder or the index in it, and another process may have made it
// anew since. Then nothing that is open may be written to, as files are found by
// their names. s is nil where no stores are open.
func (l *local) lost(s *stores) bool {
	if (l.lock.lock.Locked() || l.lock.lock.RLocked()) && !l.lock.held() {
		return true
	}
	if s == nil {
		return false
	}
	for _, path := range s.paths { // those of its opening
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// gone is lost for who does not hold l.mu.
func (l *local) gone() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.lost(l.stores)
}

// guard fails with errGone for who is about to write to stores that are lost.
type guard struct {
	l *local
	s *stores
}

func (g guard) check() error {
	if g.l.lost(g.s) {
		return errGone
	}
	return nil
}

// guardedKeyword is the keyword index for the indexer.
type guardedKeyword struct {
	store.Keyword
	guard
}

func (k guardedKeyword) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	if err := k.check(); err != nil {
		return err
	}
	return k.Keyword.Update(ctx, entries, stale)
}

// guardedVectors is the vector store for the indexer.
type guardedVectors struct {
	store.Vectors
	guard
}

func (v guardedVectors) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	if err := v.check(); err != nil {
		return err
	}
	return v.Vectors.Update(ctx, entries, stale)
}

// lookEvery is how often an owner looks whether the folder is still the one it
// opened. Whoever asks or writes looks as well; this is for the time between.
const lookEvery = time.Second

// tend lets go of the folder soon after it, or the index in it, was removed, so
// that others can have it, and takes it anew where this process indexes by itself.
func (w *Workspace) tend(ctx context.Context) {
	byItself := w.options.Background || w.options.Watch
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		w.mu.Lock()
		current := w.current
		w.mu.Unlock()
		if l, ok := current.(*local); ok && l.gone() {
			w.drop(l)
			current = nil
		}
		if current == nil && byItself {
			// Who asks gets the same error again.
			_, _ = w.engine(ctx)
		}
	}
}

// startTending begins to tend the folder of an owner. w.mu is held, or nobody
// else has w yet.
func (w *Workspace) startTending() {
	if w.stopTending != nil || w.closed {
		return
	}
	var ctx context.Context
	ctx, w.stopTending = context.WithCancel(context.Background())
	w.tending.Go(func() { w.tend(ctx) })
}

// removable are the files and folders in dir whose absence shows that an index
// was removed while it is open.
func removable(dir string) []string {
	return []string{filepath.Join(dir, documentsFile), filepath.Join(dir, keywordFolder), filepath.Join(dir, vectorFolder)}
}
