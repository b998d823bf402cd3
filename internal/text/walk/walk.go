package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/text/outline"
)

// DefaultMaxSize is the default of Options.MaxSize in bytes.
const DefaultMaxSize = 10 << 20

// maxDepth bounds the folders open at once: each costs a file descriptor.
const maxDepth = 128

// Options selects the files to index. Nil and the zero value select Configuration.
type Options struct {
	// Extensions lists the extensions to index in addition to Configuration, with the
	// dot, in any case.
	Extensions []string
	// Ignore lists patterns in the syntax of .gitignore, relative to each root. Rules of
	// .cairnignore files override them.
	Ignore []string
	// MaxSize returns the largest size in bytes of a file with a name; nil means
	// DefaultMaxSize for every name.
	MaxSize func(name string) int64
	// Code selects the roots in which source code is indexed, whatever Extensions has.
	Code Code
	// Everything also selects hidden files and files that look like secrets, and ignores
	// .gitignore and .cairnignore.
	Everything bool
}

// skipDirs lists the names of folders that a walk never enters.
var skipDirs = []string{"node_modules", ".git", "target", "dist", "vendor"}

// OurFolders lists the hidden folders that a walk enters at the top of a root. .gitignore
// does not apply in them, because cards and notes can be searched even if they are not committed.
var OurFolders = []string{".cairn/cards", ".cairn/docs", ".cairn/notes", ".cairn/plans", ".cuedeck/cards", ".cuedeck/docs"}

// Entry is a file to index, or a file or folder that is not indexed, with the reason. The
// reason of a folder applies to everything below it, which has no entries.
type Entry struct {
	// Path is the workspace path. For BadName it is quoted, so that it is one line of
	// valid UTF-8.
	Path string
	Dir  bool
	// Size is in bytes. ModTime and ChangeTime, see the function ChangeTime, are in Unix
	// nanoseconds. All are 0 for folders and for files excluded by their names.
	Size, ModTime, ChangeTime int64
	Reason                    Reason
}

// Walk visits the files of all roots, the main root first, each in the byte order of its
// paths. It does not follow symbolic links. It opens each folder in its parent by os.Root,
// so that it never leaves a root, even if folders are replaced during the walk. A file or
// folder that cannot be read is an Unreadable entry. Walk returns an error only if a root
// cannot be read, ctx ends, or visit returns one.
//
// If a root is inside a git repository, the .gitignore files above it, up to the top of
// the repository, and .git/info/exclude also apply. Rules of .cairnignore override those
// of .gitignore. Neither can include hidden or secret files.
func (t *Tree) Walk(ctx context.Context, o *Options, visit func(Entry) error) error {
	return t.walk(ctx, o, nil, nil, visit)
}

// WalkPaths is Walk for the given workspace paths and everything below them. Otherwise it
// reads only their parents' ignore files, so that the time for one file does not depend on
// the size of its folder. A path that does not exist has no entry.
func (t *Tree) WalkPaths(ctx context.Context, o *Options, paths []string, visit func(Entry) error) error {
	return t.walk(ctx, o, append([]string{}, paths...), nil, visit)
}

// Folders visits the folders that Walk enters at the given paths and below them, or all if
// paths is nil. visit receives the workspace path, "" for the main root, and the place in
// the file system. It is called before the folder is read, so that a caller that starts to
// watch the folder in visit misses no change. Folders skips folders that cannot be opened.
func (t *Tree) Folders(ctx context.Context, o *Options, paths []string, visit func(path, dir string) error) error {
	return t.walk(ctx, o, paths, visit, nil)
}

// walk is Folders with folder, or WalkPaths with visit. It walks everything if paths is nil.
func (t *Tree) walk(ctx context.Context, o *Options, paths []string, folder func(path, dir string) error, visit func(Entry) error) error {
	o = cmp.Or(o, &Options{})
	for _, p := range o.Ignore {
		if err := CheckPattern(p); err != nil {
			return err
		}
	}
	roots := t.opened()
	if len(roots) == 0 {
		return fs.ErrClosed
	}
	only, err := choose(roots, paths)
	if err != nil {
		return err
	}
	for i, r := range roots {
		w := walker{ctx: ctx, o: o, visit: visit, folder: folder, dirOf: r.Dir, only: only[i]}
		if w.only != nil && len(w.only.names) == 0 {
			continue // the paths select nothing in this root
		}
		w.exts = o.extensions()
		w.code = o.Code == CodeOn || o.Code == CodeAuto && hasCode(r.fs)
		if i == 0 {
			w.shadow = map[string]bool{}
			for _, other := range roots[1:] {
				w.shadow[other.Name] = true
			}
		} else {
			w.prefix = r.Name + "/"
		}
		w.cairn, _ = w.cairn.with([]byte(strings.Join(o.Ignore, "\n")), "", "")
		if !o.Everything {
			w.git = above(r.Dir)
		}
		if err := w.dir(r.fs, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// IsIgnoreFile reports whether a name or path is that of a file with ignore rules.
func IsIgnoreFile(name string) bool {
	name = path.Base(name)
	return name == gitIgnore || name == cairnIgnore
}

const (
	gitIgnore   = ".gitignore"
	cairnIgnore = ".cairnignore"
)

type walker struct {
	ctx    context.Context
	o      *Options
	visit  func(Entry) error            // nil in Folders
	folder func(path, dir string) error // nil except in Folders
	dirOf  string                       // the root's place in the file system
	only   *chosen                      // nil selects everything below the current folder
	prefix string                       // of workspace paths
	exts   extensions
	code   bool            // whether source code is indexed
	shadow map[string]bool // names of the other roots; nil except in the main root
	// Rule sets that apply to the current folder, outermost first.
	git, cairn ruleSets
	ours       bool // whether the current folder is in one of OurFolders
}

// dir reads one folder. rel is "" or ends in "/".
func (w *walker) dir(root *os.Root, rel string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.folder != nil && w.only == nil {
		if err := w.folder(strings.TrimSuffix(w.prefix+rel, "/"), filepath.Join(w.dirOf, filepath.FromSlash(rel))); err != nil {
			return err
		}
	}
	entries, err := w.entries(root, rel)
	if err != nil {
		if rel == "" {
			return fmt.Errorf("walking %s: %w", root.Name(), err)
		}
		return w.unreadable(strings.TrimSuffix(rel, "/"), true)
	}
	if !w.o.Everything {
		git, cairn := len(w.git), len(w.cairn)
		defer func() { w.git, w.cairn = w.git[:git], w.cairn[:cairn] }()
		if !w.ours && (w.only != nil || has(entries, gitIgnore)) {
			if err := w.readRules(&w.git, root, gitIgnore, rel); err != nil {
				return err
			}
		}
		if w.only != nil || has(entries, cairnIgnore) {
			if err := w.readRules(&w.cairn, root, cairnIgnore, rel); err != nil {
				return err
			}
		}
	}
	// A folder sorts by its name with a slash, as the paths below it do.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortKey(a), sortKey(b)) })
	for _, e := range entries {
		if err := w.entry(root, rel, e, depth); err != nil {
			return err
		}
	}
	return nil
}

func has(entries []fs.DirEntry, name string) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

// entries lists a folder, or looks for the chosen names in it.
func (w *walker) entries(root *os.Root, rel string) ([]fs.DirEntry, error) {
	if w.only == nil {
		return fs.ReadDir(root.FS(), ".")
	}
	// If the folder was removed while it is open, Lstat would report each name as missing.
	// Reading the folder fails in that case.
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var entries []fs.DirEntry
	for _, name := range w.only.names[rel] {
		info, err := root.Lstat(name)
		switch {
		case err == nil:
			entries = append(entries, fs.FileInfoToDirEntry(info))
		case !errors.Is(err, fs.ErrNotExist):
			if err := w.unreadable(rel+name, false); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

func sortKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func (w *walker) entry(root *os.Root, rel string, e fs.DirEntry, depth int) error {
	name := e.Name()
	p := rel + name
	if clean, err := Clean(w.prefix + p); err != nil || clean != w.prefix+p {
		return w.report(Entry{Path: strings.Trim(fmt.Sprintf("%+q", w.prefix+p), `"`), Dir: e.IsDir(), Reason: BadName})
	}
	out := Entry{Path: w.prefix + p, Dir: e.IsDir()}
	if out.Reason = w.byName(p, name, e, depth); out.Reason != None {
		return w.report(out)
	}
	if e.IsDir() {
		return w.enter(root, p, e, depth)
	}
	if w.visit == nil {
		return nil
	}
	info, err := e.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // removed since the folder was read
	case err != nil:
		return w.unreadable(p, false)
	case info.Mode()&fs.ModeSymlink != 0:
		out.Reason = Symlink
	case !info.Mode().IsRegular():
		out.Reason = Special
	default:
		out.Size, out.ModTime, out.ChangeTime = info.Size(), info.ModTime().UnixNano(), ChangeTime(info)
		if out.Size > w.limit(out.Path) && !(out.Size <= w.o.SizeOf(name) && IsConfiguration(name) && describesInterface(root, name)) {
			out.Reason = TooLarge
		}
	}
	return w.report(out)
}

// limit returns the largest size in bytes at which a file of that name is indexed.
func (w *walker) limit(name string) int64 {
	switch {
	case w.exts.has(name), isInterface(path.Base(name)):
		return w.o.SizeOf(name)
	case outline.IsSource(name):
		return min(w.o.SizeOf(name), outline.MaxSize)
	}
	return min(w.o.SizeOf(name), maxConfiguration)
}

// SizeOf returns the largest size of a file with that name.
func (o *Options) SizeOf(name string) int64 {
	if o == nil || o.MaxSize == nil {
		return DefaultMaxSize
	}
	return o.MaxSize(name)
}

func (w *walker) report(e Entry) error {
	if w.visit == nil {
		return nil
	}
	return w.visit(e)
}

// byName returns the reason, by its name, its type and the ignore rules, why an entry is not
// indexed.
func (w *walker) byName(p, name string, e fs.DirEntry, depth int) Reason {
	isDir := e.IsDir()
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		return Symlink
	case isDir && slices.Contains(skipDirs, name):
		return SkippedDir
	case isDir && depth >= maxDepth:
		return TooDeep
	case isDir && depth == 0 && w.shadow[name]:
		return Shadowed
	case name[0] == '.' && !(isDir && (p == ".cairn" || p == ".cuedeck")) && !w.o.Everything:
		return Hidden
	case !isDir && !e.Type().IsRegular():
		return Special
	case !isDir && isSecret(name) && !w.o.Everything:
		return Secret
	case isDir && (p == ".cairn" || p == ".cuedeck"):
		return None // the entries in it have their own reasons
	case strings.HasPrefix(p, ".cairn/") || strings.HasPrefix(p, ".cuedeck/"):
		if !w.ours && !slices.Contains(OurFolders, p) && !w.o.Everything {
			return Hidden
		}
	}
	if !isDir && !w.exts.has(w.prefix+p) && !IsConfiguration(name) {
		if !w.code || !outline.IsSource(name) {
			return Extension
		}
		if isVendored(p) {
			return Vendored
		}
	}
	if m := w.cairn.match(p, isDir); m != 0 {
		if m > 0 {
			return Ignored
		}
		return None
	}
	if !w.ours && !slices.Contains(OurFolders, p) && w.git.match(p, isDir) > 0 {
		return Ignored
	}
	return None
}

// enter opens a folder in its parent root and walks it.
func (w *walker) enter(root *os.Root, p string, e fs.DirEntry, depth int) error {
	info, err := e.Info()
	if err != nil {
		return w.unreadable(p, true)
	}
	// If a link has replaced the folder, this opens another folder within root.
	sub, err := root.OpenRoot(e.Name())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return w.unreadable(p, true)
	}
	defer sub.Close()
	now, err := sub.Stat(".")
	if err != nil {
		return w.unreadable(p, true) // a folder that may be listed but not entered
	}
	if !os.SameFile(info, now) {
		return w.report(Entry{Path: w.prefix + p, Dir: true, Reason: Symlink})
	}
	if w.only != nil && w.only.whole[p] {
		defer func(only *chosen) { w.only = only }(w.only)
		w.only = nil
	}
	if slices.Contains(OurFolders, p) {
		w.ours = true
		defer func() { w.ours = false }()
	}
	return w.dir(sub, p+"/", depth+1)
}

func (w *walker) unreadable(p string, dir bool) error {
	return w.report(Entry{Path: w.prefix + p, Dir: dir, Reason: Unreadable})
}

// readRules adds the rules of an ignore file in the folder root. A file that cannot be
// read, is a link or is too large has no rules.
func (w *walker) readRules(sets *ruleSets, root *os.Root, name, rel string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	e := Entry{Path: w.prefix + rel + name, Size: info.Size()}
	if e.Size > maxIgnoreFile {
		e.Reason = TooLarge
		return w.report(e)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	all, cut := sets.with(src, rel, "")
	*sets = all
	if cut {
		e.Reason = ManyRules
		return w.report(e)
	}
	return nil
}

// above returns the rules from outside a root that apply to it, outermost first: those in
// info/exclude of its git repository, and in the .gitignore files from the top of the
// repository down to the root's parent.
func above(dir string) ruleSets {
	type file struct{ name, up string } // up is the path from the file's folder to the root
	var files []file
	up := ""
	for at := dir; ; {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if info.IsDir() {
				files = append(files, file{filepath.Join(at, ".git", "info", "exclude"), up})
			}
			break
		}
		parent := filepath.Dir(at)
		if parent == at {
			return nil // no repository
		}
		up = filepath.Base(at) + "/" + up
		at = parent
		files = append(files, file{filepath.Join(at, ".gitignore"), up})
	}
	var sets ruleSets
	for _, f := range slices.Backward(files) {
		info, err := os.Lstat(f.name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
			continue
		}
		if src, err := os.ReadFile(f.name); err == nil {
			sets, _ = sets.with(src, "", f.up)
		}
	}
	return sets
}
