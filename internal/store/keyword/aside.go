package keyword

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// catalogueFile is scorch's list of segments.
const catalogueFile = "root.bolt"

// OpenAside opens for searching what the index in folder dir holds now, though
// another process has it open: later updates of that are not seen. It is for an
// owner that has come to a halt; beside one that is busy it may fail, with the
// errors of Open.
//
// Segments are never changed, only added and removed, and an open one survives
// its removal. So a copy of scorch's list of them, beside links to their files, is
// the index; both lie in a temporary folder that is gone when OpenAside returns.
func OpenAside(dir string) (*Index, error) {
	x, err := openAside(dir)
	if err != nil {
		return nil, fmt.Errorf("opening keyword index %s beside its owner: %w", dir, err)
	}
	return x, nil
}

func openAside(dir string) (_ *Index, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "cairn-aside-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	// The state is copied first: it may be behind the list, not ahead of it.
	for _, name := range []string{stateFile, catalogueFile} {
		if err := copyStill(filepath.Join(dir, name), filepath.Join(temp, name)); err != nil && (name == catalogueFile || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	segments, err := fs.Glob(os.DirFS(dir), "*.zap")
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if err := os.Symlink(filepath.Join(dir, s), filepath.Join(temp, s)); err != nil {
			return nil, err
		}
	}
	x, err := open(temp, true)
	if err != nil {
		return nil, err
	}
	if err := x.checkState(); err != nil {
		x.Close()
		return nil, err
	}
	x.dir = dir // for messages: a reader writes nothing
	return x, nil
}

// copyStill copies a small file and makes sure that nobody wrote to it meanwhile:
// a list of segments that was read in the midst of a write could name any.
func copyStill(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	again, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if !bytes.Equal(content, again) {
		return ErrLocked
	}
	return os.WriteFile(to, content, 0o600)
}
