package workspace

import (
	"cairn/internal/owner"
	"cairn/internal/toolbox"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// CleanReport says what was, or would be, removed.
type CleanReport struct {
	Workspace string   `json:"workspace"`
	Removed   []string `json:"removed"` // below the folder of the index
	Bytes     int64    `json:"bytes"`
}

// Clean removes the index of a folder, which the next run makes anew: the
// documents, both indexes and that of the tools' words, with all the cache of
// embeddings too. Cards,
// configuration, imported tools and what was learnt from use stay. A folder in
// use is a *LockError. With try nothing is removed.
func Clean(ctx context.Context, sel Selection, command string, all, try bool) (*CleanReport, error) {
	r := &CleanReport{Workspace: sel.Root, Removed: []string{}}
	dir := owner.IndexDir(sel.Root)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	lock := newFileLock(dir)
	me := Holder{PID: os.Getpid(), Command: command, StartedAt: time.Now().UTC().Truncate(time.Second)}
	gated := false
	ok, err := poll(ctx, lockWait, func() (bool, error) {
		if !gated {
			ok, err := lock.closeGate()
			if gated = ok; !ok || err != nil {
				return false, err
			}
		}
		return lock.tryOwn(me)
	})
	if gated {
		defer lock.openGate()
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &LockError{LockFile: lock.path, Holder: readHolder(dir), Doing: "using"}
	}
	defer lock.release()
	names := []string{documentsFile, keywordFolder, vectorFolder, keywordFolder + asideSuffix, vectorFolder + asideSuffix, filepath.Base(toolbox.KeywordsDir(dir))}
	if all {
		names = append(names, cacheFile)
	}
	for _, name := range names {
		at := filepath.Join(dir, name)
		size, err := sizeOf(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !try {
			if err := os.RemoveAll(at); err != nil {
				return r, fmt.Errorf("removing the index: %w", err)
			}
		}
		r.Removed = append(r.Removed, name)
		r.Bytes += size
	}
	return r, nil
}

// sizeOf is the size in bytes of a file, or of all files below a folder.
func sizeOf(path string) (int64, error) {
	var n int64
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
