package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
)

// CleanReport lists what Clean removed or, in a dry run, would remove.
type CleanReport struct {
	Workspace string   `json:"workspace,omitempty"`
	Removed   []string `json:"removed"` // in the directory of the index, or whole directories
	Bytes     int64    `json:"bytes"`
}

// Clean removes the index of a folder, which the next run rebuilds: the documents, the
// derived indexes and the keyword index of the tools; with all, also the cache of
// embeddings. It keeps imported tools and usage. It fails with a *owner.LockError if the
// folder is in use. With try it is a dry run.
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
	release, err := owner.Lock(ctx, dir, command)
	if err != nil {
		return nil, err
	}
	defer release()
	names := append(slices.Clone(index.Derived), filepath.Base(toolbox.KeywordsDir(dir)))
	if all {
		names = append(names, index.Cache)
	}
	for _, name := range names {
		if err := r.remove(filepath.Join(dir, name), name, try); err != nil {
			return r, err
		}
	}
	return r, nil
}

// CleanOrphans removes the indexes of folders that do not exist any more, unless a
// process still uses them; with all, also their records. With try it is a dry run.
func CleanOrphans(ctx context.Context, command string, all, try bool) (*CleanReport, error) {
	places, err := home.All()
	if err != nil {
		return nil, err
	}
	r := &CleanReport{Removed: []string{}}
	for _, p := range places {
		if _, err := os.Stat(p.Root); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := p.Make(); err != nil { // the lock is in it
			return r, err
		}
		release, err := owner.Lock(ctx, p.Index, command)
		if _, used := errors.AsType[*owner.LockError](err); used {
			continue
		} else if err != nil {
			return r, err
		}
		err = r.remove(p.Index, p.Index, try)
		if err == nil && all {
			err = r.remove(p.Records, p.Records, try)
		}
		if err := errors.Join(err, release()); err != nil {
			return r, err
		}
	}
	return r, nil
}

// remove removes the file or folder at path and reports it as name.
func (r *CleanReport) remove(path, name string, try bool) error {
	size, err := SizeOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !try {
		err = os.RemoveAll(path)
	}
	if err != nil {
		return fmt.Errorf("removing the index: %w", err)
	}
	r.Removed = append(r.Removed, name)
	r.Bytes += size
	return nil
}

// SizeOf returns the size in bytes of a file, or of all files below a folder.
func SizeOf(path string) (int64, error) {
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
