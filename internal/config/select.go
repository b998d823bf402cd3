// Package config decides which folder a command works on and reads its settings
// from the folder's config.toml and the environment. It opens no index.
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

	"cairn/internal/home"
)

// Rule names what decided which folder is the workspace.
type Rule string

// The rules, in the order they are tried.
const (
	RuleFlag    Rule = "flag -C"
	RuleCairn   Rule = "CAIRN_WORKSPACE"
	RuleCue     Rule = "CUE_WORKSPACE"
	RuleParent  Rule = "nearest parent with .cairn or .cuedeck"
	RuleCurrent Rule = "current folder"
)

// markers are the folders that make their parent a workspace.
var markers = []string{".cairn", ".cuedeck"}

// Selection is the folder chosen and why.
type Selection struct {
	Root string `json:"root"` // absolute, symlinks resolved
	Rule Rule   `json:"rule"`
	// Further are the folders of CAIRN_ROOTS and of `cairn roots`, by name.
	Further []Root `json:"further,omitempty"`
}

// SelectOptions says what a selection is made from. The zero value means this
// process: its working folder, environment, home folder and system.
type SelectOptions struct {
	Flag string              // value of -C; "" when not given
	Dir  string              // working folder; "" is os.Getwd
	Env  func(string) string // nil is os.Getenv
	Home string              // "" is os.UserHomeDir
	Temp string              // "" is os.TempDir
}

// RefusedError is returned for a folder that must not become a workspace, such
// as "/" or the home folder: indexing it would take in far too much, or write
// into a folder that belongs to the system.
type RefusedError struct {
	Dir  string
	Why  string
	Rule Rule
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s (chosen by %s) is %s and cannot be a workspace; name a project folder with -C DIR or CAIRN_WORKSPACE, or run `cairn init` inside one",
		e.Dir, e.Rule, e.Why)
}

// ForeignError is returned for a workspace that no one named, above the working folder,
// and that belongs to another user: its cards and settings would be the other user's.
type ForeignError struct{ Root string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s, the nearest parent with .cairn or .cuedeck, belongs to another user; name a folder with -C, or allow this one with `cairn trust %[1]s`", e.Root)
}

// Select chooses the workspace: the -C flag, else CAIRN_WORKSPACE, else
// CUE_WORKSPACE, else the nearest parent of the working folder (itself
// included) that holds .cairn or .cuedeck, else the working folder. The user's further
// folders for it come along. A folder that is named but does not exist is an error; a
// marker in a folder that would be refused is passed over. A marker that is a link is
// an error, and so is one of another user's that the user does not trust.
func Select(o SelectOptions) (Selection, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Selection{}, err
	}
	refuse := refusal{home: resolve(o.Home), temp: resolve(o.Temp)}
	sel, err := o.workspace(refuse)
	if err != nil {
		return Selection{}, err
	}
	sel.Further, err = further(sel.Root, o.Env("CAIRN_ROOTS"), refuse)
	return sel, err
}

// workspace chooses the main folder.
func (o SelectOptions) workspace(refuse refusal) (Selection, error) {
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		return Selection{}, fmt.Errorf("resolving the working folder: %w", err)
	}
	named, rule := o.named()
	if named == "" {
		if dir, rule, err = o.nearest(dir, refuse); err != nil {
			return Selection{}, err
		} else if why := refuse.why(dir); why != "" {
			return Selection{}, &RefusedError{Dir: dir, Why: why, Rule: rule}
		}
		return Selection{Root: dir, Rule: rule}, nil
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(dir, named)
	}
	root, err := filepath.EvalSymlinks(named)
	if errors.Is(err, fs.ErrNotExist) {
		return Selection{}, fmt.Errorf("workspace %s (from %s) does not exist", named, rule)
	} else if err != nil {
		return Selection{}, fmt.Errorf("resolving workspace %s (from %s): %w", named, rule, err)
	}
	if info, err := os.Stat(root); err != nil {
		return Selection{}, fmt.Errorf("looking at workspace %s (from %s): %w", named, rule, err)
	} else if !info.IsDir() {
		return Selection{}, fmt.Errorf("workspace %s (from %s) is not a folder", named, rule)
	}
	if why := refuse.why(root); why != "" {
		return Selection{}, &RefusedError{Dir: root, Why: why, Rule: rule}
	}
	_, err = marker(root)
	return Selection{Root: root, Rule: rule}, err
}

func (o SelectOptions) withDefaults() (SelectOptions, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return o, fmt.Errorf("finding the working folder: %w", err)
		}
		o.Dir = dir
	}
	if o.Home == "" {
		// A process without a home folder has none to protect.
		o.Home, _ = os.UserHomeDir()
	}
	if o.Temp == "" {
		o.Temp = os.TempDir()
	}
	return o, nil
}

func (o SelectOptions) named() (string, Rule) {
	if o.Flag != "" {
		return o.Flag, RuleFlag
	}
	if dir := o.Env("CAIRN_WORKSPACE"); dir != "" {
		return dir, RuleCairn
	}
	return o.Env("CUE_WORKSPACE"), RuleCue
}

// nearest walks up from dir to the first folder that holds a marker.
func (o SelectOptions) nearest(dir string, r refusal) (string, Rule, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if r.why(at) == "" {
			mark, err := marker(at)
			if err != nil {
				return "", "", err
			}
			if mark != nil {
				return at, RuleParent, o.own(at, mark)
			}
		}
		if at == filepath.Dir(at) {
			return dir, RuleCurrent, nil
		}
	}
}

// marker returns the folder in dir that makes it a workspace; nil without one.
func marker(dir string) (fs.FileInfo, error) {
	for _, m := range markers {
		info, err := os.Lstat(filepath.Join(dir, m))
		switch {
		case err != nil: // a folder that cannot be read holds no marker
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s is a link, which cairn does not follow: make it a folder, or remove it", filepath.Join(dir, m))
		case info.IsDir():
			return info, nil
		}
	}
	return nil, nil
}

// own fails with a *ForeignError unless dir and the marker in it are the user's, or the
// user trusts dir.
func (o SelectOptions) own(dir string, mark fs.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	sudo := o.Env("SUDO_UID")
	if (home.Foreign(info, sudo) || home.Foreign(mark, sudo)) && !home.Trusted(dir) {
		return &ForeignError{dir}
	}
	return nil
}

// refusal knows which folders are never a workspace.
type refusal struct{ home, temp string }

// systemTrees are refused with everything below them; systemFolders only as such.
var (
	systemTrees = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
		"/usr", "/snap", "/nix", "/var/lib", "/var/cache", "/var/run", "/var/log",
		"/Applications", "/Library", "/System", "/private/etc",
	}
	systemFolders = []string{"/opt", "/var", "/srv", "/mnt", "/media", "/home", "/Users", "/Volumes", "/private", "/private/var", "/tmp", "/var/tmp", "/private/tmp"}
	// Sources and FreeBSD's home folders lie below /usr and are people's own.
	exceptions = []string{"/usr/src", "/usr/local/src", "/usr/home"}
)

// why says what dir is when it may not be a workspace, "" when it may.
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
		return "" // every folder below the home folder is the user's
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

// windowsWhy refuses the folders programs are installed in, on any drive.
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

// below reports whether dir lies strictly below tree. Both are clean and absolute.
func below(dir, tree string) bool {
	rel, err := filepath.Rel(tree, dir)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// resolve follows symlinks where it can, so that comparisons see real paths.
func resolve(dir string) string {
	if dir == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}
