// Package home returns the user's private directories in which cairn keeps its own files of
// a folder. It does not open the files.
//
// The directories are never inside the folder, which may come from an untrusted source:
// cairn does not use an index that came with a folder. Each folder has two directories,
// named after the folder and the hash of its path: one in the user's cache directory for
// derived files, and one in the user's data directory for records that cannot be derived.
// Both follow a folder that is moved. CAIRN_HOME replaces both parents. Only the user can
// enter these directories.
package home

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
)

// Variable is the environment variable for a directory whose subdirectories cache and data
// replace the user's cache and data directories.
const Variable = "CAIRN_HOME"

// Place is the pair of private directories of one folder.
type Place struct {
	// Root is the folder: absolute, with symbolic links resolved.
	Root string `json:"-"`
	// Index holds derived files, locks and sockets.
	Index string `json:"index_dir,omitempty"`
	// Records holds the tool catalogue, the usage and the question tasks.
	Records string `json:"records_dir,omitempty"`
}

// Of returns the place of a folder. It creates nothing. It fails if the place would be in
// the folder, because files there could come with the folder.
func Of(root string) (Place, error) {
	caches, data, err := parents()
	if err != nil {
		return Place{}, err
	}
	for _, dir := range []string{caches, data} {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			return Place{}, fmt.Errorf("%s, for cairn's own files, is in the folder %s; set %s to a directory elsewhere", dir, root, Variable)
		}
	}
	name := nameOf(root)
	return Place{Root: root, Index: filepath.Join(caches, name), Records: filepath.Join(data, name)}, nil
}

// parents returns the parents of the directories of all folders.
func parents() (caches, data string, err error) {
	if dir, err := named(); err != nil {
		return "", "", err
	} else if dir != "" {
		return filepath.Join(dir, "cache"), filepath.Join(dir, "data"), nil
	}
	caches, err = os.UserCacheDir()
	if err == nil {
		data, err = userDataDir()
	}
	if err == nil && !(filepath.IsAbs(caches) && filepath.IsAbs(data)) {
		err = errors.New("the path of the home folder is relative") // it would depend on the working folder
	}
	for _, dir := range []string{filepath.Join(caches, "cairn"), filepath.Join(data, "cairn")} {
		if err == nil && isFile(dir) {
			err = fmt.Errorf("%s is not a directory", dir)
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("finding the directory of the index: %w; set %s to a directory for cairn's own files", err, Variable)
	}
	if runtime.GOOS == "windows" { // both are LocalAppData
		return filepath.Join(caches, "cairn", "cache"), filepath.Join(data, "cairn", "data"), nil
	}
	return filepath.Join(caches, "cairn"), filepath.Join(data, "cairn"), nil
}

// Data returns a private directory of the user for records that belong to no single folder. It
// does not create it.
func Data(name string) (string, error) {
	_, data, err := parents()
	return filepath.Join(data, name), err
}

// named returns the directory that Variable names, "" if it is not set. The directory need
// not exist.
func named() (string, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return "", nil
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%s is %q, want an absolute path", Variable, dir)
	}
	if isFile(dir) {
		return "", fmt.Errorf("%s is %q, which is not a directory; set it to a directory for cairn's own files, or unset it", Variable, dir)
	}
	return dir, nil
}

// isFile reports whether dir or a parent of it is a file.
func isFile(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && !info.IsDir() || errors.Is(err, syscall.ENOTDIR)
}

// userDataDir is os.UserCacheDir for data.
func userDataDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		return os.UserCacheDir() // LocalAppData
	case "darwin":
		return os.UserConfigDir() // Application Support
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", errors.New("path in $XDG_DATA_HOME is relative")
		}
		return dir, nil
	}
	dir, err := os.UserHomeDir()
	return filepath.Join(dir, ".local", "share"), err
}

// maxBase bounds the readable part of a directory's name in bytes.
const maxBase = 32

// nameOf returns the name of a folder's directories: the base of its path, with dashes for
// special characters, and 64 bits of the hash of the path.
func nameOf(root string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, filepath.Base(root))
	sum := sha256.Sum256([]byte(root))
	return fmt.Sprintf("%s-%x", base[:min(len(base), maxBase)], sum[:8])
}

// label is the name of the file in each directory that holds the path of the folder and, on
// the next line, its identity.
const label = "folder"

// Make creates the directories of p and their parents. It fails if one of them is a link,
// belongs to another user, or can be written by other users.
func (p Place) Make() error {
	for _, dir := range []string{p.Index, p.Records} {
		err := Private(filepath.Dir(dir))
		if err == nil {
			err = Private(dir)
		}
		if err == nil {
			err = settle(dir)
		}
		if err == nil {
			err = p.claim(dir)
		}
		if err != nil {
			return Explain(err)
		}
	}
	return nil
}

// Follow renames the directories of a folder that was moved to p.Root, unless p has records.
func (p Place) Follow() {
	id := identity(p.Root)
	if _, err := os.Lstat(p.Records); err == nil || id == "" {
		return
	}
	places, _ := All()
	for _, old := range places {
		_, known := labelOf(old.Records)
		if _, err := os.Stat(old.Root); known == id && errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(old.Records, p.Records) // Make reports where cairn cannot write
			_ = os.Rename(old.Index, p.Index)     // an index that stays is made again
		}
	}
}

// Explain adds to err, if it reports that a private directory cannot be written, what the user
// can do.
func Explain(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w; set %s to a directory that cairn can write", err, Variable)
	}
	return err
}

// claim writes the label of the folder in dir, unless dir has it. The name of dir contains a
// hash of the folder's path, so a label of another folder is damaged.
func (p Place) claim(dir string) error {
	id := identity(p.Root)
	if root, known := labelOf(dir); root == p.Root && known == id {
		return nil
	}
	return atomicfile.Write(filepath.Join(dir, label), []byte(p.Root+"\n"+id), 0o600)
}

// files lists the files of cairn at the top of the directories. Package owner locks "lock".
var files = []string{label, "lock", rootsFile, rootsCopy}

// settle removes the pipes and devices in dir, because a process that opens one may wait for
// ever. It renames a directory in the place of a file.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // the next step reports it, unless dir is missing
		case d.Type()&(fs.ModeNamedPipe|fs.ModeDevice) != 0:
			_ = os.Remove(path)
		case d.IsDir() && filepath.Dir(path) == dir && slices.Contains(files, d.Name()):
			return os.Rename(path, path+".damaged")
		}
		return nil
	})
}

// labelOf returns the folder that dir belongs to and its identity, "" without a label.
func labelOf(dir string) (root, id string) {
	text, _ := os.ReadFile(filepath.Join(dir, label)) // claim replaces an unreadable label
	end := max(0, bytes.LastIndexByte(text, '\n'))
	return string(text[:end]), strings.TrimPrefix(string(text[end:]), "\n")
}

// Private creates dir with missing parents, or checks that it is a directory of this user
// and no link. It removes the permission of other users to enter it.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: cairn keeps no private files behind a link", dir)
	case runtime.GOOS == "windows":
		return nil // the mode has no meaning
	case ownerOf(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user; set %s to a directory of your own", dir, Variable)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by other users; look at what is in it, then run `chmod go-rwx %[1]s`", dir)
	case info.Mode().Perm()&0o055 != 0:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// Foreign reports whether a file belongs to a user other than this one, root, and the user
// who has started this process by sudo. sudoUID is the value of SUDO_UID.
func Foreign(info fs.FileInfo, sudoUID string) bool {
	if runtime.GOOS == "windows" {
		return false
	}
	owner, me := ownerOf(info), os.Geteuid()
	return owner != 0 && owner != me && (me != 0 || fmt.Sprint(owner) != sudoUID)
}

// All returns the places of all folders that have private directories.
func All() ([]Place, error) {
	caches, data, err := parents()
	if err != nil {
		return nil, err
	}
	var places []Place
	known := map[string]bool{}
	for _, parent := range []string{caches, data} {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			root, _ := labelOf(filepath.Join(parent, e.Name()))
			if p, err := Of(root); err == nil && e.IsDir() && e.Name() == nameOf(root) && !known[root] {
				known[root] = true
				places = append(places, p)
			}
		}
	}
	return places, nil
}

// rootsFile holds the further folders that are searched with a folder. It is outside the
// folder, so that it cannot come with the folder. rootsCopy is a second copy, written first.
const (
	rootsFile = "roots.json"
	rootsCopy = "roots.json.copy"
)

// roots is the content of rootsFile: absolute paths by name, the number of the change, and a
// checksum.
type roots struct {
	Change int               `json:"change"`
	Roots  map[string]string `json:"roots"`
	Sum    uint32            `json:"sum"`
}

func (r roots) sum() uint32 {
	r.Sum = 0
	text, _ := json.Marshal(r) // plain fields
	return checksum.Of(text)
}

// Roots returns the further folders of p by name.
func (p Place) Roots() (map[string]string, error) {
	_ = settle(p.Records) // a file that still cannot be read is an error
	r, err := p.roots()
	return r.Roots, err
}

// roots returns the newest undamaged content of both files.
func (p Place) roots() (newest roots, err error) {
	newest.Roots = map[string]string{}
	var damaged error
	found := false
	for _, name := range []string{rootsFile, rootsCopy} {
		path := filepath.Join(p.Records, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r roots
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && r.Sum != r.sum() {
			err = errors.New("its checksum is wrong")
		}
		if errors.Is(err, fs.ErrPermission) {
			damaged = err
		} else if err != nil {
			damaged = fmt.Errorf("%s is damaged; remove it, and add the folders again with `cairn roots add`: %w", path, err)
		} else if !found || r.Change > newest.Change {
			newest, found = r, true
		}
	}
	if found {
		damaged = nil
	}
	return newest, damaged
}

// SetRoots replaces the further folders of p.
func (p Place) SetRoots(list map[string]string) error {
	if err := p.Make(); err != nil {
		return err
	}
	before, _ := p.roots() // damaged files are replaced
	r := roots{Change: before.Change + 1, Roots: list}
	r.Sum = r.sum()
	text, _ := json.MarshalIndent(r, "", "\t") // plain fields
	for _, name := range []string{rootsCopy, rootsFile} {
		if err := atomicfile.Write(filepath.Join(p.Records, name), append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	return nil
}
