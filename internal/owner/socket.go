package owner

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path a Unix socket can have everywhere: macOS
// has room for 103 bytes, Linux for 107.
const maxSocketPath = 100

// socketPath is where the owner of dir listens: at name in dir or, where that path
// is too long, under a name made from it in a private directory below temp.
func socketPath(dir, name, temp string) string {
	path := filepath.Join(dir, name)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}
