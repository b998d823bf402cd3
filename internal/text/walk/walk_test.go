package walk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write makes files below dir; a name that ends in a slash is a folder, a
// value that begins with "->" a link.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(target, p)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, roots ...Root) *Tree {
	t.Helper()
	tree, err := Open(roots...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// documents are the options for files that are usually indexed.
var documents = &Options{Extensions: []string{".md", ".markdown", ".mdx", ".txt", ".rst", ".html", ".pdf"}}

// withDocuments returns o, which may be nil, with the extensions of documents unless it has
// its own.
func withDocuments(o *Options) *Options {
	if o == nil {
		return documents
	}
	with := *o
	if with.Extensions == nil {
		with.Extensions = documents.Extensions
	}
	return &with
}

// walked returns "path" for files to index and "path: reason" for the rest.
func walked(t testing.TB, tree *Tree, o *Options) []string {
	t.Helper()
	var out []string
	last := ""
	err := tree.Walk(context.Background(), withDocuments(o), func(e Entry) error {
		if e.Reason == None {
			out = append(out, e.Path)
		} else {
			out = append(out, e.Path+": "+string(e.Reason))
		}
		if e.Path <= last && len(tree.Roots()) == 1 {
			t.Errorf("%q comes after %q", e.Path, last)
		}
		last = e.Path
		if p, err := Clean(e.Path); e.Reason != BadName && (err != nil || p != e.Path) {
			t.Errorf("path %q is not clean: %q, %v", e.Path, p, err)
		}
		if (e.Reason == None) != (e.ModTime != 0) && e.Reason != TooLarge {
			t.Errorf("%s: modification time %d with reason %v", e.Path, e.ModTime, e.Reason)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWalk(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.md": "s", "d/x.md": "x"})
	for _, c := range []struct {
		name  string
		files map[string]string
		o     *Options
		want  []string
	}{
		{"empty", nil, nil, nil},
		{"extensions", map[string]string{"a.md": "", "b.MD": "", "c.markdown": "", "d.mdx": "", "e.txt": "", "f.rst": "", "g.go": "", "h": ""}, nil,
			[]string{"a.md", "b.MD", "c.markdown", "d.mdx", "e.txt", "f.rst", "g.go: extension not indexed", "h: extension not indexed"}},
		{"manual pages", map[string]string{"man3/a.3caca": "", "b.3caca": ""}, &Options{Extensions: []string{".3"}},
			[]string{"b.3caca: extension not indexed", "man3/a.3caca"}},
		{"other extensions", map[string]string{"a.md": "", "g.GO": ""}, &Options{Extensions: []string{".go"}},
			[]string{"a.md: extension not indexed", "g.GO"}},
		{"order is by path", map[string]string{"a/b.md": "", "a.md": "", "a-b.md": "", "a0.md": "", "B.md": ""}, nil,
			[]string{"B.md", "a-b.md", "a.md", "a/b.md", "a0.md"}},
		{"skipped folders", map[string]string{"node_modules/a.md": "", "x/target/a.md": "", "x/dist/a.md": "", ".git/a.md": "", "vendor/a.md": "", "x/vendor.md": ""}, nil,
			[]string{".git: skipped folder", "node_modules: skipped folder", "vendor: skipped folder", "x/dist: skipped folder", "x/target: skipped folder", "x/vendor.md"}},
		{"hidden", map[string]string{".a.md": "", ".d/a.md": "", "x/.b.md": "", "a.md": ""}, nil,
			[]string{".a.md: hidden", ".d: hidden", "a.md", "x/.b.md: hidden"}},
		{"our folders", map[string]string{
			".cairn/cards/a.md": "", ".cairn/docs/x/a.md": "", ".cairn/config.md": "", ".cairn/index/a.md": "", ".cairn/docs/.x.md": "",
			".cuedeck/cards/a.md": "", ".cuedeck/docs/a.md": "", ".cuedeck/cache/a.md": "", "sub/.cairn/cards/a.md": "",
			".gitignore": ".cairn\n*.md\n", ".cairnignore": "x/\n"}, nil,
			[]string{".cairn/cards/a.md", ".cairn/config.md: hidden", ".cairn/docs/.x.md: hidden", ".cairn/docs/x: ignored", ".cairn/index: hidden",
				".cairnignore: hidden", ".cuedeck/cache: hidden", ".cuedeck/cards/a.md", ".cuedeck/docs/a.md", ".gitignore: hidden", "sub/.cairn: hidden"}},
		{"secrets", map[string]string{".env": "", "prod.env": "", "a.pem": "", "ID_RSA.txt": "", "credentials.txt": "", "x/credentials-a.md": "", "key.md": "", "secrets.txt": ""}, nil,
			[]string{".env: hidden", "ID_RSA.txt: looks like a secret", "a.pem: looks like a secret", "credentials.txt: looks like a secret", "key.md",
				"prod.env: looks like a secret", "secrets.txt: looks like a secret", "x/credentials-a.md: looks like a secret"}},
		{"everything", map[string]string{".github/a.md": "", ".x.md": "", "credentials.md": "", ".gitignore": "*\n", ".cairnignore": "*\n", "vendor/a.md": ""}, &Options{Everything: true},
			[]string{".cairnignore: extension not indexed", ".github/a.md", ".gitignore: extension not indexed", ".x.md", "credentials.md", "vendor: skipped folder"}},
		{"gitignore", map[string]string{".gitignore": "*.txt\n!keep.txt\n/top.md\nbuild/\n", "a.txt": "", "keep.txt": "", "top.md": "", "x/top.md": "", "build/a.md": "",
			"x/.gitignore": "!a.txt\n", "x/a.txt": "", "x/b.txt": ""}, nil,
			[]string{".gitignore: hidden", "a.txt: ignored", "build: ignored", "keep.txt", "top.md: ignored", "x/.gitignore: hidden", "x/a.txt", "x/b.txt: ignored", "x/top.md"}},
		{"cairnignore goes first", map[string]string{".gitignore": "a.md\n", ".cairnignore": "!a.md\nb.md\n", "a.md": "", "b.md": "", "x/.gitignore": "!b.md\n", "x/b.md": ""}, nil,
			[]string{".cairnignore: hidden", ".gitignore: hidden", "a.md", "b.md: ignored", "x/.gitignore: hidden", "x/b.md: ignored"}},
		{"ignore files bring nothing in", map[string]string{".cairnignore": "!.env\n!.x/\n!credentials.md\n!vendor/\n", ".env": "", ".x/a.md": "", "credentials.md": "", "vendor/a.md": ""}, nil,
			[]string{".cairnignore: hidden", ".env: hidden", ".x: hidden", "credentials.md: looks like a secret", "vendor: skipped folder"}},
		{"links", map[string]string{"a.md": "", "in.md": "->a.md", "out.md": "->" + outside + "/secret.md", "dir": "->" + outside + "/d", "loop": "->.", "x/up": "->..", "dead.md": "->none"}, nil,
			[]string{"a.md", "dead.md: symbolic link", "dir: symbolic link", "in.md: symbolic link", "loop: symbolic link", "out.md: symbolic link", "x/up: symbolic link"}},
		{"linked ignore file", map[string]string{"rules": "*\n", ".gitignore": "->rules", "a.md": ""}, nil,
			[]string{".gitignore: symbolic link", "a.md", "rules: extension not indexed"}},
		{"too large", map[string]string{"a.md": "12345", "b.md": "123456"}, &Options{MaxSize: func(string) int64 { return 5 }}, []string{"a.md", "b.md: too large"}},
		{"bad names", map[string]string{"a\nb.md": "", "c\xff.md": "", " d.md": "", `e\f.md`: "", "g.md:h.md": "", "i\n/x.md": "", "ok: j.md": ""}, nil,
			[]string{" d.md: name not usable as a path", `a\nb.md: name not usable as a path`, `c\xff.md: name not usable as a path`,
				`e\\f.md: name not usable as a path`, "g.md:h.md: name not usable as a path", `i\n: name not usable as a path`, "ok: j.md"}},
	} {
		if runtime.GOOS == "windows" && (c.name == "bad names" || strings.Contains(c.name, "link")) {
			continue
		}
		dir := t.TempDir()
		write(t, dir, c.files)
		tree := open(t, Root{Dir: dir})
		if diff := cmp.Diff(c.want, walked(t, tree, c.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		sameInParts(t, c.name, tree, c.o)
	}
}

func TestGitignoreAboveRoot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".gitignore":             "x.md\n",
		"repo/.git/info/exclude": "excluded.md\n",
		"repo/.gitignore":        "*.txt\n/docs/top.md\ndocs/\n",
		"repo/docs/.gitignore":   "!a.txt\n",
		"repo/docs/ws/a.txt":     "", "repo/docs/ws/b.txt": "", "repo/docs/ws/top.md": "", "repo/docs/ws/x.md": "", "repo/docs/ws/excluded.md": "",
		"repo/docs/ws/docs/y.md": "",
	})
	// The root itself is walked although docs/ is ignored: somebody chose it. The
	// file above the repository does not count.
	want := []string{"a.txt", "b.txt: ignored", "docs: ignored", "excluded.md: ignored", "top.md", "x.md"}
	if diff := cmp.Diff(want, walked(t, open(t, Root{Dir: filepath.Join(dir, "repo/docs/ws")}), nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeveralRoots(t *testing.T) {
	main, lib := t.TempDir(), t.TempDir()
	write(t, main, map[string]string{"a.md": "main", "lib/hidden-by-root.md": "", "x/lib/b.md": "b"})
	write(t, lib, map[string]string{"a.md": "lib", "d/c.md": "c", ".cairnignore": "d/no.md\n", "d/no.md": ""})
	tree := open(t, Root{Name: "lib", Dir: lib}, Root{Dir: main})
	want := []string{"a.md", "lib: shadowed by another root", "x/lib/b.md", "lib/.cairnignore: hidden", "lib/a.md", "lib/d/c.md", "lib/d/no.md: ignored"}
	if diff := cmp.Diff(want, walked(t, tree, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for p, want := range map[string]string{"a.md": "main", "lib/a.md": "lib", "./lib//d/c.md": "c", "x/lib/b.md": "b"} {
		got, info, err := tree.ReadFile(p, 0)
		if err != nil || string(got) != want || info.Size() != int64(len(want)) {
			t.Errorf("ReadFile(%q) = %q, %v, want %q", p, got, err, want)
		}
	}
	if _, _, err := tree.ReadFile("lib/../../a.md", 0); !errors.Is(err, ErrPath) {
		t.Errorf("reading out of a root: got %v", err)
	}
	for _, roots := range [][]Root{
		{},
		{{Name: "lib", Dir: lib}},
		{{Dir: main}, {Dir: lib}},
		{{Dir: main}, {Name: "a/b", Dir: lib}},
		{{Dir: main}, {Name: ".x", Dir: lib}},
		{{Dir: main}, {Name: "..", Dir: lib}},
		{{Dir: main}, {Name: "x", Dir: filepath.Join(main, "x")}},
		{{Dir: filepath.Join(main, "x")}, {Name: "x", Dir: main}},
		{{Dir: main}, {Name: "x", Dir: main}},
	} {
		if tree, err := Open(roots...); !errors.Is(err, ErrRoots) {
			t.Errorf("Open(%v): got %v, want ErrRoots", roots, err)
			if err == nil {
				tree.Close()
			}
		}
	}
	if _, err := Open(Root{Dir: filepath.Join(main, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing: got %v", err)
	}
}

func TestReadFile(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.md": "secret", "d/x.md": "secret"})
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.md": "text", "d/b.md": "b", "in.md": "->a.md", "out.md": "->" + outside + "/secret.md", "up.md": "->../" + filepath.Base(outside) + "/secret.md",
		"dir": "->" + outside + "/d", "indir": "->d", "loop": "->loop", "folder.md/": "",
	})
	socket, err := net.Listen("unix", filepath.Join(dir, "s.md"))
	if err == nil {
		defer socket.Close()
	}
	tree := open(t, Root{Dir: dir})
	for _, c := range []struct {
		path  string
		limit int64
		want  error // nil: reads
	}{
		{"a.md", 0, nil}, {"a.md", 4, nil}, {"a.md", 3, ErrSize}, {"d/b.md", 0, nil},
		{"in.md", 0, ErrSymlink}, {"out.md", 0, ErrSymlink}, {"up.md", 0, ErrSymlink}, {"dir/x.md", 0, ErrSymlink}, {"indir/b.md", 0, ErrSymlink},
		{"loop", 0, ErrSymlink}, {"loop/a.md", 0, ErrSymlink}, {"folder.md", 0, ErrSpecial}, {"none.md", 0, fs.ErrNotExist}, {"none/a.md", 0, fs.ErrNotExist},
		{"a.md/b.md", 0, fs.ErrNotExist}, {"../" + filepath.Base(outside) + "/secret.md", 0, ErrPath}, {outside + "/secret.md", 0, ErrPath}, {"", 0, ErrPath},
	} {
		got, _, err := tree.ReadFile(c.path, c.limit)
		if !errors.Is(err, c.want) || strings.Contains(string(got), "secret") || err != nil && got != nil {
			t.Errorf("ReadFile(%q, %d) = %q, %v, want error %v", c.path, c.limit, got, err, c.want)
		}
	}
	if socket != nil {
		if _, _, err := tree.ReadFile("s.md", 0); !errors.Is(err, ErrSpecial) {
			t.Errorf("reading a socket: got %v", err)
		}
		if got := walked(t, tree, nil); !slices.Contains(got, "s.md: not a regular file") {
			t.Errorf("walking a socket: got %q", got)
		}
	}
	if info, err := tree.Stat("a.md"); err != nil || info.Size() != 4 {
		t.Errorf("Stat: got %v, %v", info, err)
	}
	if _, err := tree.Stat("out.md"); !errors.Is(err, ErrSymlink) {
		t.Errorf("Stat of a link: got %v", err)
	}
	if _, err := tree.Stat("in.md"); err == nil || !strings.Contains(err.Error(), `points to "a.md"`) {
		t.Errorf("Stat of a link in the folder: got %v, want its target", err)
	}
}

// A folder and a file are swapped for links to outside and back while they are
// walked and read: nothing from outside may ever show.
func TestSymlinkRace(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"stolen.md": "secret", "a.md": "secret"})
	write(t, dir, map[string]string{"d/a.md": "inside", "f.md": "inside"})
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("no symbolic links here")
	}
	if err := os.Symlink(filepath.Join(outside, "a.md"), filepath.Join(dir, "flink")); err != nil {
		t.Fatal(err)
	}
	tree := open(t, Root{Dir: dir})
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		swap := func(a, b string) { // three renames, as no portable call exchanges two names
			a, b = filepath.Join(dir, a), filepath.Join(dir, b)
			_ = os.Rename(a, a+".tmp")
			_ = os.Rename(b, a)
			_ = os.Rename(a+".tmp", b)
		}
		for {
			select {
			case <-stop:
				return
			default:
				swap("d", "link")
				swap("f.md", "flink")
			}
		}
	})
	deadline := time.Now().Add(300 * time.Millisecond)
	for time.Now().Before(deadline) {
		err := tree.Walk(context.Background(), documents, func(e Entry) error {
			if strings.Contains(e.Path, "stolen") {
				return fmt.Errorf("saw %s", e.Path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
			break
		}
		for _, p := range []string{"d/a.md", "f.md", "link/a.md", "d/stolen.md"} {
			if got, _, err := tree.ReadFile(p, 0); err == nil && string(got) != "inside" {
				t.Fatalf("read %q from %s", got, p)
			}
		}
	}
	close(stop)
	swapper.Wait()
}

func TestWalkStops(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "", "b.md": ""})
	tree := open(t, Root{Dir: dir})
	stop := errors.New("enough")
	n := 0
	if err := tree.Walk(context.Background(), documents, func(Entry) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("got %v after %d entries, want the visitor's error after 1", err, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tree.Walk(ctx, documents, func(Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

func TestDeepTree(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{strings.Repeat("d/", maxDepth-1) + "a.md": "", strings.Repeat("d/", maxDepth+5) + "b.md": ""})
	want := []string{strings.Repeat("d/", maxDepth-1) + "a.md", strings.Repeat("d/", maxDepth) + "d: too deep"}
	if diff := cmp.Diff(want, walked(t, open(t, Root{Dir: dir}), nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		content string
		want    Reason
	}{
		{"empty", "", None}, {"text", "# ü 日本", None}, {"bom", "\ufeffa", None},
		{"nul", "a\x00b", Binary}, {"nul at 8191", strings.Repeat("a", 8191) + "\x00", Binary}, {"nul at 8192", strings.Repeat("a", 8192) + "\x00", None},
		{"latin-1", "caf\xe9", NotUTF8}, {"late", strings.Repeat("a", 9000) + "\xff", NotUTF8}, {"utf-16", "a\x00b\x00", Binary},
		{"utf-16, little end first", "\xff\xfea\x00b\x00", NotUTF8}, {"utf-16, big end first", "\xfe\xff\x00a\x00b", NotUTF8},
		{"surrogate", "\xed\xa0\x80", NotUTF8},
	} {
		if got := Check([]byte(c.content)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if got := WithAdvice(string(NotUTF8)); got != "not UTF-8 (convert to UTF-8)" {
		t.Errorf("WithAdvice of NotUTF8: %q", got)
	}
	if got := WithAdvice(string(Binary)); got != "binary" {
		t.Errorf("WithAdvice of Binary: %q, want no advice", got)
	}
}

// 10,000 files in 500 folders with ignore files.
func BenchmarkWalk(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{".gitignore": "*.log\nbuild/\n/tmp\n!keep.log\ndocs/**/draft-*.md\n.DS_Store\n"}
	for d := range 500 {
		for f := range 20 {
			files[fmt.Sprintf("part%d/dir%d/file%d.md", d%10, d, f)] = "text"
		}
		if d%10 == 0 {
			files[fmt.Sprintf("part%d/dir%d/.gitignore", d%10, d)] = "*.tmp\n"
		}
	}
	write(b, dir, files)
	tree := open(b, Root{Dir: dir})
	for b.Loop() {
		n := 0
		if err := tree.Walk(context.Background(), documents, func(e Entry) error {
			if e.Reason == None {
				n++
			}
			return nil
		}); err != nil || n != 10_000 {
			b.Fatal(n, err)
		}
	}
}

// TestHasCode checks which folders are projects whose sources are indexed.
func TestHasCode(t *testing.T) {
	for file, want := range map[string]bool{
		"go.mod": true, "a/b/c/D.java": true, ".git/HEAD": true, ".hidden/a.go": false, "node_modules/a/a.js": false, "third_party/a.c": false, "a/b.md": false,
		"style.css": false, "Makefile": false, "Dockerfile": false, "Jenkinsfile": true, "main.tf": true,
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{file: ""})
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasCode(root); got != want {
			t.Errorf("hasCode with %s = %v, want %v", file, got, want)
		}
		root.Close()
	}
}

func TestCode(t *testing.T) {
	files := map[string]string{
		"a.md": "", "a.go": "", "lib/b.py": "", "third_party/c.go": "", "third_party/d.md": "", "vendor/e.go": "", "big.sql": strings.Repeat("x", 1<<20+1),
	}
	for name, c := range map[string]struct {
		git  string // the entry that makes the folder a repository
		code Code
		want string
	}{
		"sources":    {"", CodeAuto, "a.go a.md lib/b.py third_party/d.md"},
		"repository": {".git/HEAD", CodeAuto, "a.go a.md lib/b.py third_party/d.md"},
		"worktree":   {".git", CodeAuto, "a.go a.md lib/b.py third_party/d.md"},
		"on":         {"", CodeOn, "a.go a.md lib/b.py third_party/d.md"},
		"off":        {".git/HEAD", CodeOff, "a.md third_party/d.md"},
	} {
		dir := t.TempDir()
		write(t, dir, files)
		if c.git != "" {
			write(t, dir, map[string]string{c.git: ""})
		}
		var got []string
		reasons := map[string]Reason{}
		err := open(t, Root{Dir: dir}).Walk(t.Context(), &Options{Extensions: documents.Extensions, Code: c.code}, func(e Entry) error {
			if reasons[e.Path] = e.Reason; e.Reason == None {
				got = append(got, e.Path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if c.code == CodeOn && (reasons["third_party/c.go"] != Vendored || reasons["vendor"] != SkippedDir || reasons["big.sql"] != TooLarge) {
			t.Errorf("%s: %v", name, reasons)
		}
	}
}

// TestLargeConfiguration: configuration of more than 256 KiB is data, unless its name or
// its beginning says that it describes an interface.
func TestLargeConfiguration(t *testing.T) {
	large := strings.Repeat("x: 1\n", 60_000)
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"v1.51.yaml": "# The API\n\nswagger: \"2.0\"\n" + large, "openapi.yaml": large, "values.yaml": large,
		"api.config.json": "{\n  \"openapi\": \"3.0.0\",\n" + large, "huge.yaml": "openapi: 3.0.0\n" + strings.Repeat(large, 40),
	})
	got := map[string]Reason{}
	if err := open(t, Root{Dir: dir}).Walk(t.Context(), documents, func(e Entry) error { got[e.Path] = e.Reason; return nil }); err != nil {
		t.Fatal(err)
	}
	want := map[string]Reason{"v1.51.yaml": None, "openapi.yaml": None, "values.yaml": TooLarge, "api.config.json": None, "huge.yaml": TooLarge}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
