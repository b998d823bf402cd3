package archtest

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the module, and the name of its root package.
const module = "cairn"

// source is what the files of one package say, over all systems and build tags.
type source struct {
	imports, tests map[string]bool // what its files import, and what its tests do
	lines          int             // hand-written lines outside tests
	private        bool            // its tests run with a CAIRN_HOME of their own
}

// load reads every package of cairn by the name of its folder; the root is "cairn".
func load(t *testing.T) map[string]*source {
	t.Helper()
	const root = "../../.."
	pkgs := map[string]*source{}
	other := "\x00" // the folder of another module, whose lines count and whose imports do not
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				other = path + string(filepath.Separator)
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		name := cmp.Or(strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), root)), "/"), "cairn")
		if strings.HasPrefix(path, other) {
			name = filepath.ToSlash(strings.TrimPrefix(filepath.Dir(strings.TrimSuffix(other, string(filepath.Separator))), root+string(filepath.Separator)))
		}
		p := pkgs[name]
		if p == nil {
			p = &source{imports: map[string]bool{}, tests: map[string]bool{}}
			pkgs[name] = p
		}
		test := strings.HasSuffix(path, "_test.go")
		if !test && !generated(f) {
			p.lines += bytes.Count(text, []byte("\n"))
		}
		p.private = p.private || test && (bytes.Contains(text, []byte("testutil.Main(m)")) || bytes.Contains(text, []byte("testutil.Homed{")))
		if strings.HasPrefix(path, other) {
			return nil
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if test {
				p.tests[imp] = true
			} else {
				p.imports[imp] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 50 {
		t.Fatalf("found %d packages, want them all", len(pkgs))
	}
	return pkgs
}

// generated reports whether a generator wrote the file.
func generated(f *ast.File) bool {
	return ast.IsGenerated(f) || len(f.Comments) > 0 && strings.Contains(f.Comments[0].List[0].Text, "DO NOT EDIT")
}

// ours returns the packages of cairn among imported, in order.
func ours(imported map[string]bool) (names []string) {
	for _, imp := range slices.Sorted(maps.Keys(imported)) {
		if name, ok := strings.CutPrefix(imp+"/", module+"/"); ok {
			names = append(names, cmp.Or(strings.TrimSuffix(name, "/"), module))
		}
	}
	return names
}

// roomOf returns the index of the room of a package, or -1.
func roomOf(name string) int {
	found := -1
	for i, r := range rooms {
		if within(name, r.name) && (found < 0 || len(r.name) > len(rooms[found].name)) {
			found = i
		}
	}
	return found
}

// violations returns what is wrong with the imports of a package.
func violations(name string, imported map[string]bool) (wrong []string) {
	row := slices.IndexFunc(imports, func(r row) bool { return r.name == name })
	room := roomOf(name)
	if row < 0 || room < 0 {
		return []string{fmt.Sprintf("%s has no row in the table of imports, or no room", name)}
	}
	allowed := strings.Fields(imports[row].allowed)
	for _, imp := range ours(imported) {
		switch other := roomOf(imp); {
		case other < 0:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which is in no room", name, imp))
		case other != room && !slices.Contains(strings.Fields(rooms[room].allowed), rooms[other].name):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, but the room %s does not import %s", name, imp, rooms[room].name, rooms[other].name))
		case !slices.Contains(allowed, imp):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which its row does not allow", name, imp))
		}
	}
	return wrong
}

// testSupport is the room that every test may import, and no other file.
const testSupport = "internal/base/testutil"

// wholeFolder is the package whose tests add a file type to its table, and then index a
// folder with it.
const wholeFolder = "internal/text/markdown"

// TestRooms: a room imports only rooms that stand above it and that its row names, tests
// included, and stays within its budget of lines.
func TestRooms(t *testing.T) {
	used := map[[2]string]bool{}
	lines := map[string]int{}
	for name, p := range load(t) {
		room := roomOf(name)
		if room < 0 {
			t.Errorf("%s is in no room", name)
			continue
		}
		lines[rooms[room].name] += p.lines
		for _, imp := range ours(p.imports) {
			if other := roomOf(imp); other >= 0 {
				used[[2]string{rooms[room].name, rooms[other].name}] = true
			}
		}
		for _, imp := range ours(p.tests) {
			if other := roomOf(imp); other > room && rooms[other].name != testSupport && name != wholeFolder {
				t.Errorf("a test of %s imports %s, which is in a room below", name, imp)
			}
		}
	}
	total := 0
	for i, r := range rooms {
		for _, name := range strings.Fields(r.allowed) {
			if above := slices.IndexFunc(rooms, func(r room) bool { return r.name == name }); above < 0 || above >= i {
				t.Errorf("the room %s names %s, which is not above it", r.name, name)
			}
			if !used[[2]string{r.name, name}] {
				t.Errorf("the room %s may import %s and does not: take it out of the row", r.name, name)
			}
		}
		n := lines[r.name]
		total += n
		t.Logf("%-24s %6d lines outside tests, budget %6d", r.name, n, r.lines)
		if n > r.lines {
			t.Errorf("the room %s has %d lines outside tests, its budget is %d: fold something, or raise the budget and say why", r.name, n, r.lines)
		}
		if n < r.lines-r.lines/20-100 {
			t.Errorf("the room %s has %d lines outside tests: lower its budget of %d", r.name, n, r.lines)
		}
	}
	t.Logf("%-24s %6d", "all rooms", total)
}

// TestImports: a package imports what its row names, and a row names at most maxImports
// packages or has a reason in wide.
func TestImports(t *testing.T) {
	pkgs := load(t)
	for _, name := range slices.Sorted(maps.Keys(pkgs)) {
		for _, wrong := range violations(name, pkgs[name].imports) {
			t.Error(wrong)
		}
	}
	above := map[string]bool{}
	for _, row := range imports {
		p := pkgs[row.name]
		if p == nil {
			t.Errorf("the table has a row for %s, which is not there", row.name)
			continue
		}
		allowed := strings.Fields(row.allowed)
		for _, imp := range allowed {
			if !above[imp] {
				t.Errorf("the row of %s names %s, which is not above it", row.name, imp)
			}
			if !slices.Contains(ours(p.imports), imp) {
				t.Errorf("%s may import %s and does not: take it out of the row", row.name, imp)
			}
		}
		limit := max(maxImports, wide[row.name])
		if len(allowed) > limit {
			t.Errorf("the row of %s names %d packages, want at most %d", row.name, len(allowed), limit)
		}
		if wide[row.name] > len(allowed) {
			t.Errorf("the row of %s names %d packages: lower its limit of %d in wide", row.name, len(allowed), wide[row.name])
		}
		above[row.name] = true
	}
}

// TestTestsHaveTheirOwnHome: the tests of a package that can open a workspace or read a
// configuration run with a private CAIRN_HOME, not with the developer's.
func TestTestsHaveTheirOwnHome(t *testing.T) {
	pkgs := load(t)
	for name, p := range pkgs {
		if len(p.tests) == 0 || p.private {
			continue
		}
		reached := map[string]bool{}
		for next := append(ours(p.tests), name); len(next) > 0; next = next[1:] {
			if q := pkgs[next[0]]; q != nil && !reached[next[0]] {
				reached[next[0]] = true
				next = append(next, ours(q.imports)...)
			}
		}
		if reached["internal/folder/config"] || reached["internal/toolbox"] {
			t.Errorf("the tests of %s have no TestMain with testutil.Main", name)
		}
	}
}

// TestImportsCanFail makes sure that the tables refuse what they are there to refuse.
func TestImportsCanFail(t *testing.T) {
	for _, c := range []struct{ name, imp string }{
		{"retriever", "indexer"},
		{"tools", "internal/store/flat"},
		{"tools", "internal/store/kv"},
		{"graphrank", "internal/store"},
		{"internal/base/taskdag", "models"},
		{"internal/face/web", "internal/store/docs"},
		{"internal/storehouse", "models"},
	} {
		if len(violations(c.name, map[string]bool{module + "/" + c.imp: true})) == 0 {
			t.Errorf("%s may import %s", c.name, c.imp)
		}
	}
	pkgs := load(t)
	if imp := "github.com/knights-analytics/hugot/pipelines"; !pkgs["models/onnx"].imports[imp] {
		t.Errorf("the imports lack %s, which a file behind the tag ORT imports", imp)
	}
	if wrong := violations("indexer", map[string]bool{"fmt": true, module + "/internal/store": true}); len(wrong) > 0 {
		t.Error(wrong)
	}
}

func TestThirdPartyHasOneImporter(t *testing.T) {
	used := map[string]bool{} // library and package
	for name, p := range load(t) {
		imported := maps.Clone(p.imports)
		maps.Copy(imported, p.tests)
		for imp := range imported {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") {
				continue // the standard library, or ours
			}
			prefix, ok := ownerOf(imp)
			if !ok {
				t.Errorf("%s imports %s, which has no owner: add it to owners with its reason", name, imp)
				continue
			}
			own := slices.IndexFunc(owners[prefix], func(o string) bool { return within(name, o) })
			if owners[prefix] != nil && own < 0 {
				t.Errorf("%s imports %s, which belongs to %v", name, imp, owners[prefix])
			}
			if own >= 0 {
				used[prefix+" "+owners[prefix][own]] = true
			}
			used[prefix] = true
		}
	}
	for library, packages := range owners {
		if !used[library] {
			t.Errorf("%s has an owner and no importer", library)
		}
		for _, p := range packages {
			if !used[library+" "+p] {
				t.Errorf("%s owns %s and does not import it", p, library)
			}
		}
	}
}

func within(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

// ownerOf finds the longest prefix of owners that covers imp.
func ownerOf(imp string) (prefix string, ok bool) {
	for p := range maps.Keys(owners) {
		if within(imp, strings.TrimSuffix(p, "/")) && len(p) > len(prefix) {
			prefix, ok = p, true
		}
	}
	return prefix, ok
}

// TestOwners makes sure that owners match whole path elements.
func TestOwners(t *testing.T) {
	for imp, want := range map[string]string{
		"github.com/blevesearch/bleve/v2/analysis": "github.com/blevesearch/", "go.etcd.io/bbolt": "go.etcd.io/bbolt", "go.etcd.io/bbolted": "", "example.com/x": "",
	} {
		if got, _ := ownerOf(imp); got != want {
			t.Errorf("ownerOf(%q) = %q, want %q", imp, got, want)
		}
	}
}
