package owner

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath bounds the path of a Unix socket in bytes: macOS allows 103, Linux 107.
const maxSocketPath = 100

// socketPath returns the path of the socket of the owner of dir: socketName in dir or, if
// that path is too long, a hash of it in a private directory below temp.
func socketPath(dir, temp string) string {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}
