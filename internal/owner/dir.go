package owner

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// IndexDir is the folder that holds the index of the workspace root, its lock and
// its socket. No other function decides where an index is kept.
func IndexDir(root string) string { return filepath.Join(root, ".cairn", "index") }

// MakeIndexDir makes the IndexDir of root and keeps it out of version control.
func MakeIndexDir(root string) error {
	top := filepath.Join(root, ".cairn")
	if err := os.MkdirAll(top, 0o755); err != nil {
		return fmt.Errorf("making the index's folder: %w", err)
	}
	if err := PrivateDir(IndexDir(root)); err != nil {
		return err
	}
	ignore := filepath.Join(top, ".gitignore")
	if _, err := os.Stat(ignore); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(ignore, []byte("/index/\n/.gitignore\n"), 0o644); err != nil {
		return fmt.Errorf("keeping the index out of version control: %w", err)
	}
	return nil
}

// PrivateDir makes sure that dir is a real folder that other users cannot enter,
// which protects a socket in it before its own mode is set.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	// Fails when the folder is another user's.
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("closing %s to other users: %w", dir, err)
	}
	return nil
}

// maxSocketPath is the longest path a Unix socket can have everywhere: macOS
// has room for 103 bytes, Linux for 107.
const maxSocketPath = 100

// socketPath is where the owner of dir listens: at name in dir or, where that path
// is too long, under a name made from it in a private folder below temp.
func socketPath(dir, name, temp string) string {
	path := filepath.Join(dir, name)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}
