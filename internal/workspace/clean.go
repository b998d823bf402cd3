package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/config"
	"cairn/internal/home"
	"cairn/internal/index"
	"cairn/internal/owner"
	"cairn/internal/toolbox"
)

// CleanReport says what was, or would be, removed.
type CleanReport struct {
	Workspace string   `json:"workspace"`
	Removed   []string `json:"removed"` // below the folder of the index
	Bytes     int64    `json:"bytes"`
}

// Clean removes the index of a folder, which the next run makes again: the
// documents, both indexes and that of the tools' words, with all the cache of
// embeddings too. Cards,
// configuration, imported tools and what was learnt from use stay. A folder in
// use is a *LockError. With try nothing is removed.
func Clean(ctx context.Context, sel config.Selection, command string, all, try bool) (*CleanReport, error) {
	r := &CleanReport{Workspace: sel.Root, Removed: []string{}}
	place, err := home.Of(sel.Root)
	if err != nil {
		return nil, err
	}
	dir := place.Index
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	release, err := owner.Lock(ctx, dir, index.LockFile, command)
	if err != nil {
		return nil, err
	}
	defer release()
	names := append(slices.Clone(index.Derived), filepath.Base(toolbox.KeywordsDir(dir)))
	if all {
		names = append(names, index.Cache)
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
