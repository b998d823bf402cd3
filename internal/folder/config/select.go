// Package config selects the folder that a command works on, and reads its settings from
// the folder's config.toml and the environment. It opens no index.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cairn/internal/base/home"
)

// Rule is the rule by which Select has chosen a workspace.
type Rule string

// The rules in the order in which Select tries them.
const (
	RuleFlag    Rule = "flag -C"
	RuleCairn   Rule = "CAIRN_WORKSPACE"
	RuleCue     Rule = "CUE_WORKSPACE"
	RuleParent  Rule = "nearest parent with .cairn or .cuedeck"
	RuleCurrent Rule = "current folder"
)

// markers lists the folders that make their parent a workspace.
var markers = []string{".cairn", ".cuedeck"}

// Selection is the selected folder.
type Selection struct {
	Root string `json:"root"` // absolute, with symbolic links resolved
	Rule Rule   `json:"rule"`
	// Further lists the folders of CAIRN_ROOTS and of `cairn roots`, sorted by name.
	Further []Root `json:"further,omitempty"`
}

// RefusedError reports a folder that cannot be a workspace, such as "/" or the home folder:
// it has too many files, or belongs to the system.
type RefusedError struct {
	Dir  string
	Why  string
	Rule Rule
}

func (e *RefusedError) Error() string {
	if e.Rule == RuleFlag {
		return fmt.Sprintf("%s is %s and cannot be a workspace; name a project folder", e.Dir, e.Why)
	}
	return fmt.Sprintf("%s (chosen by %s) is %s and cannot be a workspace; name a project folder with -C DIR or CAIRN_WORKSPACE, or run `cairn init` inside one",
		e.Dir, e.Rule, e.Why)
}

// Select returns the workspace: flag, which is the value of -C or the folder of a Go program, or
// else CAIRN_WORKSPACE, CUE_WORKSPACE, the nearest parent of the working folder (including itself)
// with .cairn or .cuedeck, or the working folder. It includes the user's further folders. It fails
// if a named folder does not exist, if the marker is a link, and if the marker belongs to another
// user and the user does not trust the folder. It ignores a marker in a folder that cannot be a
// workspace.
func Select(flag string) (Selection, error) {
	refuse := newRefusal()
	sel, err := refuse.workspace(flag)
	if err != nil {
		return Selection{}, err
	}
	sel.Further, err = further(sel.Root, os.Getenv("CAIRN_ROOTS"), refuse)
	return sel, err
}

// workspace chooses the main folder.
func (r refusal) workspace(flag string) (Selection, error) {
	named, rule := os.Getenv("CUE_WORKSPACE"), RuleCue
	if dir := os.Getenv("CAIRN_WORKSPACE"); dir != "" {
		named, rule = dir, RuleCairn
	}
	if flag != "" {
		named, rule = flag, RuleFlag
	}
	var dir string
	if !filepath.IsAbs(named) { // an absolute folder can be used where the working folder cannot
		var err error
		if dir, err = os.Getwd(); err != nil {
			return Selection{}, fmt.Errorf("finding the working folder: %w", err)
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return Selection{}, fmt.Errorf("resolving the working folder: %w", err)
		}
	}
	if named == "" {
		dir, rule, err := r.nearest(dir)
		if err != nil {
			return Selection{}, err
		} else if why := r.why(dir); why != "" {
			return Selection{}, &RefusedError{Dir: dir, Why: why, Rule: rule}
		}
		return Selection{Root: dir, Rule: rule}, nil
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(dir, named)
	}
	var from string // a flag or a Go program names its folder itself
	if rule != RuleFlag {
		from = fmt.Sprintf(" (from %s)", rule)
	}
	var info fs.FileInfo
	root, err := filepath.EvalSymlinks(named)
	if err == nil {
		info, err = os.Stat(root)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Selection{}, fmt.Errorf("workspace %s%s does not exist", named, from)
	case err != nil:
		return Selection{}, fmt.Errorf("resolving workspace %s%s: %w", named, from, err)
	case !info.IsDir():
		return Selection{}, fmt.Errorf("workspace %s%s is not a folder", named, from)
	}
	if why := r.why(root); why != "" {
		return Selection{}, &RefusedError{Dir: root, Why: why, Rule: rule}
	}
	_, err = marker(root)
	return Selection{Root: root, Rule: rule}, err
}

// nearest returns the nearest parent of dir with a marker, or dir.
func (r refusal) nearest(dir string) (string, Rule, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if r.why(at) == "" {
			mark, err := marker(at)
			if err != nil {
				return "", "", err
			}
			if mark != nil {
				return at, RuleParent, own(at, mark)
			}
		}
		if at == filepath.Dir(at) {
			return dir, RuleCurrent, nil
		}
	}
}

// marker returns the marker in dir, nil if there is none.
func marker(dir string) (fs.FileInfo, error) {
	for _, m := range markers {
		info, err := os.Lstat(filepath.Join(dir, m))
		switch {
		case err != nil: // missing, or dir cannot be read
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s is a link, which cairn does not follow: make it a folder, or remove it", filepath.Join(dir, m))
		case info.IsDir():
			return info, nil
		}
	}
	return nil, nil
}

// own fails unless dir and its marker belong to the user, or the user trusts dir. Another user
// would control the cards and settings in it.
func own(dir string, mark fs.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	sudo := os.Getenv("SUDO_UID")
	if home.Foreign(info, sudo) || home.Foreign(mark, sudo) {
		if listed, _ := home.Trusts(dir, nil); !listed {
			return fmt.Errorf("%s, the nearest parent with .cairn or .cuedeck, belongs to another user; name a folder with -C, or allow this one with `cairn trust %[1]s`", dir)
		}
	}
	return nil
}

// refusal decides which folders cannot be a workspace.
type refusal struct{ home, temp string }

func newRefusal() refusal {
	home, _ := os.UserHomeDir() // without a home folder there is none to protect
	return refusal{home: resolve(home), temp: resolve(os.TempDir())}
}

// systemTrees are refused with all folders below them, systemFolders only themselves.
var (
	systemTrees = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
		"/usr", "/snap", "/nix", "/var/lib", "/var/cache", "/var/run", "/var/log",
		"/Applications", "/Library", "/System", "/private/etc",
	}
	systemFolders = []string{"/opt", "/var", "/srv", "/mnt", "/media", "/home", "/Users", "/Volumes", "/private", "/private/var", "/tmp", "/var/tmp", "/private/tmp"}
	// Sources and FreeBSD's home folders are below /usr but belong to users.
	exceptions = []string{"/usr/src", "/usr/local/src", "/usr/home"}
)

// why returns what dir is if it cannot be a workspace, and "" if it can.
func (r refusal) why(dir string) string {
	switch {
	case dir == filepath.Dir(dir):
		return "the root of the file system"
	case r.home != "" && dir == r.home:
		return "your home folder"
	case r.home != "" && below(r.home, dir):
		return "a parent of your home folder"
	case r.temp != "" && dir == r.temp:
		return "the folder for temporary files"
	case r.home != "" && below(dir, r.home):
		return "" // folders below the home folder belong to the user
	case r.temp != "" && below(dir, r.temp):
		return ""
	}
	slashed := filepath.ToSlash(dir)
	if runtime.GOOS == "windows" {
		return windowsWhy(slashed)
	}
	if slices.Contains(systemFolders, slashed) || slices.Contains(exceptions, slashed) {
		return "a system folder"
	}
	for _, tree := range exceptions {
		if strings.HasPrefix(slashed, tree+"/") {
			return ""
		}
	}
	for _, tree := range systemTrees {
		if slashed == tree || strings.HasPrefix(slashed, tree+"/") {
			return "a folder of installed programs or of the system"
		}
	}
	return ""
}

// windowsWhy is why for the system folders of Windows, on any drive.
func windowsWhy(slashed string) string {
	_, rest, _ := strings.Cut(slashed, ":")
	top, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(rest), "/"), "/")
	switch top {
	case "windows", "program files", "program files (x86)", "programdata":
		return "a folder of installed programs or of the system"
	}
	if strings.EqualFold(rest, "/users") {
		return "a system folder"
	}
	return ""
}

// below reports whether dir is strictly below tree. Both must be clean and absolute.
func below(dir, tree string) bool {
	rel, err := filepath.Rel(tree, dir)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// resolve returns dir with symbolic links resolved, if possible.
func resolve(dir string) string {
	if dir == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}
