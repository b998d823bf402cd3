package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/stage/embedded"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/records"
)

// formerDir is the directory in the folder where earlier versions kept the index and the
// records. Only Migrate reads it, because it may have come with the folder.
var formerDir = filepath.Join(".cairn", "index")

// formerIgnore is the .gitignore next to it.
var formerIgnore = filepath.Join(".cairn", ".gitignore")

// Former reports the index of an earlier version in a folder, and what the user can do
// about it. Both are "" if there is none.
func Former(root string) (found, fix string) {
	if _, err := os.Lstat(filepath.Join(root, formerDir)); err != nil {
		return "", ""
	}
	return formerDir + " is the index of an earlier version, or came with the folder; it is not used", "import its records with `cairn migrate`, or remove it if it is not yours"
}

// MigrateReport counts what Migrate imported from an earlier version.
type MigrateReport struct {
	Workspace string `json:"workspace"`
	// Found reports whether the folder has the index of an earlier version.
	Found bool `json:"found"`
	// Records counts the added tools, edges, intents and records of question tasks.
	Records int `json:"records"`
	// Embeddings reports whether the vectors were imported.
	Embeddings bool `json:"embeddings"`
	// Damaged has a line for each damaged file. Its undamaged records were imported.
	Damaged []string `json:"damaged,omitempty"`
}

// Migrate imports the tools, the usage, the question tasks and the embeddings that the
// folder lacks from .cairn/index, where earlier versions kept them, and removes
// .cairn/index. Everything else is derived. It follows no symbolic link. It fails with a
// *owner.LockError if a process of an earlier version uses the folder. After an error, or
// if a file was damaged, .cairn/index remains.
func (w *Workspace) Migrate(ctx context.Context) (*MigrateReport, error) {
	r := &MigrateReport{Workspace: w.selection.Root}
	root, err := os.OpenRoot(w.selection.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, dir := range []string{filepath.Dir(formerDir), formerDir} {
		info, err := root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return r, nil
		} else if err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder made by cairn; remove it", filepath.Join(w.selection.Root, dir))
		}
	}
	r.Found = true
	former, err := root.OpenRoot(formerDir)
	if err != nil {
		return nil, err
	}
	defer former.Close()
	for _, name := range []string{index.LockFile, toolbox.LockFile} {
		if info, err := former.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		release, err := owner.Lock(ctx, filepath.Join(w.selection.Root, formerDir), name, w.options.Command)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	place, err := home.Of(w.selection.Root)
	if err == nil {
		err = place.Make()
	}
	if err != nil {
		return nil, err
	}
	if err := w.adoptRecords(ctx, former, place, r); err != nil {
		return nil, fmt.Errorf("importing the records of an earlier version: %w", err)
	}
	if r.Embeddings, err = adoptVectors(former, place); err != nil {
		return nil, fmt.Errorf("importing the embeddings of an earlier version: %w", err)
	}
	if r.Damaged != nil {
		return r, nil
	}
	if text, err := root.ReadFile(formerIgnore); err == nil && string(text) == "/index/\n/.gitignore\n" {
		if err := root.Remove(formerIgnore); err != nil {
			return nil, err
		}
	}
	return r, root.RemoveAll(formerDir)
}

// adoptRecords imports the records, which cannot be derived, and counts them in r.
func (w *Workspace) adoptRecords(ctx context.Context, former *os.Root, place home.Place, r *MigrateReport) (err error) {
	copies, err := os.MkdirTemp(place.Records, "migrate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copies)) }()
	for _, name := range append(slices.Clone(toolbox.FormerFiles), stageFile) {
		if err := copyOut(former, name, filepath.Join(copies, name)); err != nil {
			return err
		}
	}
	learnt, damaged, err := toolbox.Former(ctx, copies)
	if err != nil {
		return err
	}
	r.Damaged = damaged
	box, err := w.toolbox()
	if err != nil {
		return err
	}
	have, err := box.Stats(ctx)
	if err != nil {
		return err
	}
	// A source that the user has imported since then keeps its tools.
	learnt = slices.DeleteFunc(learnt, func(x toolbox.Exported) bool { return x.Tool != nil && slices.Contains(have.Sources, x.Source) })
	merged, err := box.Merge(ctx, learnt)
	if err != nil {
		return err
	}
	file := stagesOf(home.Place{Records: copies}, func(k *kv.Recovery) { r.Damaged = append(r.Damaged, k.String()) })
	tasks, err := records.NewFile(file, embedded.Buckets()...).Since(ctx, 0)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	r.Records = merged.Tools + merged.Usage
	if len(tasks.Records) == 0 {
		return nil
	}
	store, closeFile, err := w.questions()
	if err != nil {
		return err
	}
	added, err := records.Add(ctx, store, tasks.Records)
	r.Records += added
	return errors.Join(err, closeFile())
}

// adoptVectors copies the embeddings unless the folder has some. The index checks them
// when it opens them.
func adoptVectors(former *os.Root, place home.Place) (bool, error) {
	target := filepath.Join(place.Index, index.Cache)
	if _, err := os.Lstat(target); err == nil {
		return false, nil
	}
	if info, err := former.Lstat(index.Cache); err != nil || !info.IsDir() {
		return false, nil
	}
	entries, err := fs.ReadDir(former.FS(), index.Cache)
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp(place.Index, "migrate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp) // does nothing after the rename
	for _, e := range entries {
		if err := copyOut(former, filepath.Join(index.Cache, e.Name()), filepath.Join(temp, e.Name())); err != nil {
			return false, err
		}
	}
	return true, os.Rename(temp, target)
}

// copyOut copies a regular file out of root. It skips anything else, such as a link.
func copyOut(root *os.Root, name, to string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	from, err := root.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	into, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(into, from)
	return errors.Join(err, into.Close())
}
