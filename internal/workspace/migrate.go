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

	"cairn/internal/home"
	"cairn/internal/index"
	"cairn/internal/kv"
	"cairn/internal/owner"
	"cairn/internal/records"
	"cairn/internal/stage/embedded"
	"cairn/internal/toolbox"
)

// formerDir is where earlier versions kept the index and the records of a folder: in the
// folder. It is not read otherwise, since it may have come with the folder.
var formerDir = filepath.Join(".cairn", "index")

// formerIgnore is the .gitignore next to it.
var formerIgnore = filepath.Join(".cairn", ".gitignore")

// Former reports the index of an earlier version in a folder, and what to do about it;
// both are "" without one.
func Former(root string) (found, fix string) {
	if _, err := os.Lstat(filepath.Join(root, formerDir)); err != nil {
		return "", ""
	}
	return formerDir + " is of an earlier version, or came with the folder; it is not used", "take over what it has learnt with `cairn migrate`, or remove it if it is not yours"
}

// MigrateReport says what was taken over from an earlier version.
type MigrateReport struct {
	Workspace string `json:"workspace"`
	// Found is false where the folder has nothing of an earlier version.
	Found bool `json:"found"`
	// Records counts the tools, edges, intents and records of question tasks that are new.
	Records int `json:"records"`
	// Embeddings is set when the vectors were taken over.
	Embeddings bool `json:"embeddings"`
	// Damaged has a line for each damaged file, of which whole records were taken over.
	Damaged []string `json:"damaged,omitempty"`
}

// Migrate takes over from the folder's .cairn/index, which an earlier version made, the
// tools, the usage, the question tasks and the embeddings that the folder lacks, and
// removes it. Everything else is built again. It follows no link. A process of an earlier
// version that uses the folder is a *owner.LockError. On any error, and where a file was
// damaged, .cairn/index remains.
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
			return nil, fmt.Errorf("%s is not a folder that cairn made; remove it", filepath.Join(w.selection.Root, dir))
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
		return nil, fmt.Errorf("taking over the records of an earlier version: %w", err)
	}
	if r.Embeddings, err = adoptVectors(former, place); err != nil {
		return nil, fmt.Errorf("taking over the embeddings of an earlier version: %w", err)
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

// adoptRecords adds what cannot be built again to r.
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
	// A source that was imported since stays as it is.
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

// adoptVectors copies the embeddings unless the folder has some. Opening the index
// checks them.
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
	defer os.RemoveAll(temp) // nothing is there once it has its name
	for _, e := range entries {
		if err := copyOut(former, filepath.Join(index.Cache, e.Name()), filepath.Join(temp, e.Name())); err != nil {
			return false, err
		}
	}
	return true, os.Rename(temp, target)
}

// copyOut copies a regular file in root; anything else, such as a link, is passed over.
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
