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

	"cairn/internal/config"
	"cairn/internal/home"
	"cairn/internal/index"
	"cairn/internal/kv"
	"cairn/internal/owner"
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
	// Records counts those of tools, usage and question tasks that the folder lacked.
	Records int `json:"records"`
	// Embeddings is set when the vectors were taken over.
	Embeddings bool `json:"embeddings"`
	// Damaged has a line for each damaged file, of which whole records were taken over.
	Damaged []string `json:"damaged,omitempty"`
}

// Migrate takes over from the folder's .cairn/index, which an earlier version made, the
// tools, the usage, the question tasks and the embeddings that are not in the folder's
// private directories yet, and removes it. Everything else is built again. It follows no
// link. A folder in use is a *owner.LockError. On any error, and where a file was damaged,
// .cairn/index remains.
func Migrate(ctx context.Context, sel config.Selection, command string) (*MigrateReport, error) {
	r := &MigrateReport{Workspace: sel.Root}
	root, err := os.OpenRoot(sel.Root)
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
			return nil, fmt.Errorf("%s is not a folder that cairn made; remove it", filepath.Join(sel.Root, dir))
		}
	}
	r.Found = true
	former, err := root.OpenRoot(formerDir)
	if err != nil {
		return nil, err
	}
	defer former.Close()
	place, err := home.Of(sel.Root)
	if err == nil {
		err = place.Make()
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{index.LockFile, toolbox.LockFile} {
		dirs := []string{place.Index}
		if info, err := former.Lstat(name); err == nil && info.Mode().IsRegular() {
			dirs = append(dirs, filepath.Join(sel.Root, formerDir))
		}
		for _, dir := range dirs {
			release, err := owner.Lock(ctx, dir, name, command)
			if err != nil {
				return nil, err
			}
			defer release()
		}
	}
	if r.Records, err = adoptRecords(former, place, func(k *kv.Recovery) {
		r.Damaged = append(r.Damaged, fmt.Sprintf("%s was damaged: %s", filepath.Base(k.Path), k.Problems[0]))
	}); err != nil {
		return nil, err
	}
	if r.Embeddings, err = adoptVectors(former, place); err != nil {
		return nil, err
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

// adoptRecords adds what cannot be built again, and returns the number of records.
func adoptRecords(former *os.Root, place home.Place, recovered func(*kv.Recovery)) (added int, err error) {
	copies, err := os.MkdirTemp(place.Records, "migrate-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copies)) }()
	for _, name := range append(slices.Clone(toolbox.Files), stageFile) {
		if err := copyOut(former, name, filepath.Join(copies, name)); err != nil {
			return 0, err
		}
	}
	added, err = toolbox.Adopt(copies, place, recovered)
	if err != nil {
		return 0, fmt.Errorf("taking over the tools: %w", err)
	}
	tasks, err := kv.Adopt(filepath.Join(copies, stageFile), filepath.Join(place.Records, stageFile), embedded.Buckets(), func(*kv.DB) error { return nil }, recovered)
	if err != nil {
		return 0, fmt.Errorf("taking over the question tasks: %w", err)
	}
	return added + tasks, nil
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
