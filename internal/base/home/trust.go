package home

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cairn/internal/base/atomicfile"
)

// trustFile returns the path of the list of trusted folders, one per line.
func trustFile() (string, error) {
	if dir, err := named(); err != nil {
		return "", err
	} else if dir != "" {
		return filepath.Join(dir, "trusted"), nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "cairn", "trusted"), err
}

// TrustedFolders returns the folders that the user trusts, sorted by path.
func TrustedFolders() ([]string, error) {
	path, err := trustFile()
	if err != nil {
		return nil, err
	}
	folders := []string{}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folders, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && (ownerOf(info) != os.Geteuid() || info.Mode().Perm()&0o022 != 0):
		return nil, fmt.Errorf("%s is not a file that you alone can write, so no folder is trusted", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if folder := strings.TrimSuffix(string(line), "\n"); folder != "" {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
}

// Trusted reports whether the user trusts a folder. Only `cairn trust` makes a folder
// trusted. If the list cannot be read, no folder is.
func Trusted(root string) bool {
	folders, err := TrustedFolders()
	return err == nil && slices.Contains(folders, root)
}

// Trust adds a folder to the list, or removes it.
func Trust(root string, trusted bool) error {
	if strings.Contains(root, "\n") {
		return fmt.Errorf("%q: a folder with a line break in its path cannot be listed", root)
	}
	folders, err := TrustedFolders()
	if err != nil {
		return err
	}
	folders = slices.DeleteFunc(folders, func(f string) bool { return f == root })
	if trusted {
		folders = append(folders, root)
	}
	path, err := trustFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	slices.Sort(folders)
	text := strings.Join(append(folders, ""), "\n")
	return atomicfile.Write(path, []byte(text), 0o600)
}
