package drift

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"iter"
	"os"
	"path"
	"strings"

	"cairn/internal/folder/workspace"
	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/internal/text/walk"
)

// maxFile bounds the files that are read for names.
const maxFile = 1 << 20

// folder is what a folder contains now.
type folder struct {
	root  *os.Root
	repo  *git.Repository // nil if there is no history
	head  *git.Commit
	files map[string]git.Hash // of head
	paths []string            // of all files
	names map[string]bool     // every path, its folders, and the ends of both
	docs  []string
	// differ lists the files whose content is not that of head.
	differ []git.File
	// progress receives the stages of Check.
	progress func(string)
}

func open(ctx context.Context, dir string, t *workspace.Tasks) (f *folder, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f = &folder{root: root, files: map[string]git.Hash{}, names: map[string]bool{}}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.repo, err = git.Open(dir); err == nil {
		var h git.Hash
		if h, err = f.repo.Head(); err == nil {
			f.head, err = f.repo.Commit(h)
		}
		if err == nil {
			f.files, err = f.repo.Files(f.head)
		}
	}
	if err != nil && err != git.ErrNone {
		return f, fmt.Errorf("reading the git history: %w", err)
	}
	seen := map[string]bool{}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			f.paths = append(f.paths, p)
			for name := range ends(p) {
				f.names[name] = true
			}
		}
	}
	all, err := t.Paths(ctx, true, func(e walk.Entry) {
		if e.Reason == walk.Extension && !e.Dir {
			add(e.Path)
		}
	})
	for _, p := range all {
		add(p)
		if isDocument(p) && !records.MatchString(p) && !walk.IsOurs(strings.Split(p, "/")[0]) {
			f.docs = append(f.docs, p)
		}
	}
	for p := range f.files {
		if _, err := root.Lstat(p); err != nil {
			continue
		}
		add(p)
		if strings.HasPrefix(p, ".github/") && isDocument(p) && !records.MatchString(p) {
			f.docs = append(f.docs, p)
		}
	}
	return f, err
}

func (f *folder) close() {
	f.root.Close()
	if f.repo != nil {
		f.repo.Close()
	}
}

// ends returns the ends of a path and of its folders.
func ends(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := p; dir != "." && dir != "/" && dir != ""; dir = path.Dir(dir) {
			for end, ok := dir, true; ok; _, end, ok = strings.Cut(end, "/") {
				if !yield(end) {
					return
				}
			}
		}
	}
}

// isDocument reports whether a file is prose, whose names are claims rather than evidence.
func isDocument(p string) bool {
	e := strings.ToLower(path.Ext(p))
	return markdown.FormatOf(p).Converted() || prose[e] || len(e) == 2 && isDigit(e[1]) // of a manual
}

var prose = map[string]bool{".md": true, ".markdown": true, ".mdown": true, ".mdx": true, ".rst": true, ".adoc": true, ".org": true, ".tex": true, ".mdc": true}

// programs returns the names that can be those of programs of the folder.
func (f *folder) programs() map[string]bool {
	names := map[string]bool{strings.ToLower(path.Base(f.root.Name())): true}
	for name := range f.names {
		if !strings.Contains(name, "/") && (path.Ext(name) == "" || outline.IsSource(name)) {
			names[strings.TrimSuffix(name, path.Ext(name))] = true
		}
	}
	return names
}

// scan marks the claims whose names are in the folder, and collects the files that differ from the
// last commit.
func (f *folder) scan(ctx context.Context, all []*claim) error {
	x := newIndex(all)
	for name, list := range x.places {
		for _, c := range list {
			c.found = f.names[name]
			x.tokens[c.text] = append(x.tokens[c.text], c)
		}
	}
	have := map[string]bool{}
	for i, p := range f.paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i%256 == 0 {
			f.progress(fmt.Sprintf("Reading file %d of %d", i+1, len(f.paths)))
		}
		text, err := f.read(p)
		if err != nil {
			continue
		}
		have[p] = true
		if h, ok := f.files[p]; ok && h != blobHash(text) {
			f.differ = append(f.differ, git.File{Path: p, Hash: h})
		}
		if isDocument(p) || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue
		}
		tokens(text, func(token []byte, at int) {
			for _, c := range x.tokens[string(token)] {
				switch {
				case c.found:
				case c.kind != Signature:
					c.found = true
				case c.seen != p && isEvidence(p):
					c.seen = p
					var count int
					c.found, count = c.takes(p, text)
					c.count = max(c.count, count)
				}
			}
			x.values.at(text, at, token, false, func(c *claim) { c.found = c.found || isEvidence(p) })
		})
	}
	for p, h := range f.files {
		if _, err := f.root.Lstat(p); err != nil {
			f.differ = append(f.differ, git.File{Path: p, Hash: h})
		}
	}
	return nil
}

// read reads a regular file of the folder.
func (f *folder) read(p string) ([]byte, error) {
	info, err := f.root.Lstat(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, walk.ErrSize
	}
	return f.root.ReadFile(p)
}

func blobHash(text []byte) git.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(text))
	h.Write(text)
	return git.Hash(h.Sum(nil))
}

// isEvidence reports whether a name that was in a file and is not any more was one of the
// folder's own.
func isEvidence(p string) bool {
	return !isDocument(p) && !outline.IsTest(p) && !foreign.MatchString(p)
}

// tokens calls fn with the names in a text: each identifier, and words joined by hyphens,
// dots or slashes. A name before a colon or an equals sign follows again with a colon, and
// one after a quote with a double quote before it. fn does not keep the token; at is its offset.
func tokens(text []byte, fn func(token []byte, at int)) {
	var quoted [130]byte
	for i := 0; i < len(text); {
		if class[text[i]] == 0 {
			i++
			continue
		}
		start := i
		for i < len(text) && (class[text[i]] != 0 || grouped(text, i)) {
			i++
		}
		run := text[start:i]
		quote := start > 0 && (text[start-1] == '"' || text[start-1] == '\'' || text[start-1] == '`')
		if len(run) > 128 {
			continue
		}
		compound := false
		for from := 0; from < len(run); {
			if class[run[from]] == 3 {
				compound = true
				from++
				continue
			}
			end := from // of words joined by hyphens
			for end < len(run) && class[run[end]] != 3 {
				end++
			}
			part := run[from:end]
			if trimmed := bytes.Trim(part, "-"); len(trimmed) > 0 {
				if quote && from == 0 && part[0] != '-' {
					quoted[0] = '"'
					fn(quoted[:1+copy(quoted[1:], trimmed)], start+from)
				}
				if bytes.HasPrefix(part, []byte("--")) {
					fn(part[:len(bytes.TrimRight(part, "-"))], start+from)
				}
				if end == len(run) && assigned(text[i:]) {
					fn(append(append(quoted[:0], trimmed...), ':'), start+from)
				}
				if bytes.IndexByte(trimmed, '-') >= 0 {
					fn(trimmed, start+from)
				}
				at := start + from + len(part) - len(bytes.TrimLeft(part, "-"))
				for w := range bytes.SplitSeq(trimmed, []byte("-")) {
					fn(w, at)
					at += len(w) + 1
				}
			}
			from = end
		}
		if compound {
			fn(bytes.Trim(run, "./-"), start+len(run)-len(bytes.TrimLeft(run, "./-")))
		}
	}
}

// grouped reports whether a comma separates the thousands of a number.
func grouped(text []byte, at int) bool {
	if text[at] != ',' || at == 0 || at+3 >= len(text) || !isDigit(text[at-1]) {
		return false
	}
	n := 1
	for at+n < len(text) && n < 5 && isDigit(text[at+n]) {
		n++
	}
	return n == 4
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// assigned reports whether text begins with a colon or an equals sign that assigns.
func assigned(text []byte) bool {
	text = bytes.TrimLeft(text[:min(len(text), 20)], " ")
	return len(text) > 1 && (text[0] == ':' || text[0] == '=') && text[1] != text[0]
}

// class holds 1 for letters, digits and the underscore, 2 for the hyphen, and 3 for what
// joins names to longer ones.
var class = func() (c [256]byte) {
	for b := range c {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b >= 0x80:
			c[b] = 1
		case b == '-':
			c[b] = 2
		case b == '.' || b == '/':
			c[b] = 3
		}
	}
	return c
}()
