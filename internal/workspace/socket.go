package workspace

import (
	"cairn/internal/owner"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path a Unix socket can have everywhere: macOS
// has room for 103 bytes, Linux for 107.
const maxSocketPath = 100

// socketPath is where the owner of the index in dir listens: beside the index,
// or where that path is too long, under a name made from it in a private
// folder below temp.
func socketPath(dir, temp string) string {
	if path := filepath.Join(dir, "sock"); len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}

// listen opens the owner's socket for this user alone. The caller holds the
// folder's lock, so a socket that is there belongs to a process that died.
func listen(path string) (net.Listener, error) {
	if err := owner.PrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of a process that ended: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("closing %s to other users: %w", path, err)
	}
	return l, nil
}
