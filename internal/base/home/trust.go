package home

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cairn/internal/base/atomicfile"
)

// UserFile returns the path of a file of the user's own configuration. It creates nothing.
func UserFile(name string) (string, error) {
	if dir, err := named(); err != nil {
		return "", err
	} else if dir != "" {
		return filepath.Join(dir, name), nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "cairn", name), err
}

// ReadUserFile reads a file of UserFile, nil if it does not exist. It fails if other users can
// write it.
func ReadUserFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && (ownerOf(info) != os.Geteuid() || info.Mode().Perm()&0o022 != 0):
		return nil, fmt.Errorf("%s is not a file that you alone can write", path)
	}
	return os.ReadFile(path)
}

// trustFile returns the path of the list of trusted folders. A line has the SHA-256 of the
// configuration that the user has seen, in hexadecimal, a blank, and the folder.
func trustFile() (string, error) { return UserFile("trusted") }

// trusted returns the trusted folders with the hashes of their configurations.
func trusted() (map[string]string, error) {
	path, err := trustFile()
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	text, err := ReadUserFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w, so no folder is trusted", err)
	}
	for line := range bytes.Lines(text) {
		if hash, folder, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " "); ok {
			folders[folder] = hash
		}
	}
	return folders, nil
}

// TrustStamp identifies the present state of the list of trusted folders. It reads no file.
func TrustStamp() string {
	path, err := trustFile()
	if err != nil {
		return ""
	}
	return Stamp(path)
}

// Stamp identifies the present state of a file, "" if there is none. It does not read it.
func Stamp(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode())
}

// TrustedFolders returns the folders that the user trusts, sorted by path.
func TrustedFolders() ([]string, error) {
	folders, err := trusted()
	return slices.Sorted(maps.Keys(folders)), err
}

// Trusts says how far the user trusts a folder. Only `cairn trust` makes a folder trusted.
// listed reports whether the folder is in the list, and configured whether it is there with
// this configuration. If the list cannot be read, no folder is trusted.
func Trusts(root string, configuration []byte) (listed, configured bool) {
	folders, err := trusted()
	hash, listed := folders[root]
	return listed && err == nil, listed && err == nil && hash == hashOf(configuration)
}

func hashOf(configuration []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(configuration))
}

// Trust adds a folder with its configuration to the list, or replaces it there.
func Trust(root string, configuration []byte) error {
	if strings.Contains(root, "\n") {
		return fmt.Errorf("%q: a folder with a line break in its path cannot be listed", root)
	}
	return changeTrust(func(folders map[string]string) { folders[root] = hashOf(configuration) })
}

// Distrust removes a folder from the list.
func Distrust(root string) error {
	return changeTrust(func(folders map[string]string) { delete(folders, root) })
}

func changeTrust(change func(folders map[string]string)) error {
	folders, err := trusted()
	if err != nil {
		return err
	}
	change(folders)
	path, err := trustFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var text []byte
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		text = fmt.Appendln(text, folders[folder], folder)
	}
	return atomicfile.Write(path, text, 0o600)
}
