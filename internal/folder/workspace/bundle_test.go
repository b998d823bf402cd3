package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/folder/bundle"
	"cairn/internal/folder/index"
	"cairn/internal/text/receipt"
	"cairn/models/bpe"
	"cairn/retriever"
)

// history makes a repository whose commits change upload.go with its test and its page, and
// returns the open folder.
func withHistory(t *testing.T) *Workspace {
	t.Helper()
	sel := folder(t)
	git := gitIn(t, sel.Root)
	commit := func(subject string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			write(t, filepath.Join(sel.Root, name), text)
		}
		git("add", "-A")
		git("commit", "-q", "-m", subject)
	}
	const upload = "package a\n\n// Upload sends a file and retries failed uploads.\nfunc Upload(name string) error {\n\treturn send(name)\n}\n\nfunc send(name string) error { return nil }\n"
	const page = "# Quota\n\nA user may store ten gigabytes in all.\n"
	git("init", "-q")
	commit("first", map[string]string{"upload.go": upload, "docs/quota.md": page, "copy/upload.go": upload})
	for _, n := range []string{"1", "2", "3"} {
		commit("retry uploads "+n, map[string]string{"upload.go": upload + "\nconst n = " + n + "\n", "docs/quota.md": page + n + "\n"})
	}
	write(t, filepath.Join(sel.Root, ".cairn/cards/aaaaaa.md"), "---\ntitle: Retry failed uploads\ndepends_on: [bbbbbb]\n---\n\nThree times.\n")
	write(t, filepath.Join(sel.Root, ".cairn/cards/bbbbbb.md"), "---\ntitle: Choose a delay\nstatus: done\n---\n\n## Decisions\n\nA second.\n")
	write(t, filepath.Join(sel.Root, "docs/adr/1.md"), "# Uploads are retried\n\nRetry failed uploads three times.\n")
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	return w
}

func TestContext(t *testing.T) {
	w := withHistory(t)
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	ask := func(r bundle.Request) *bundle.Bundle {
		t.Helper()
		b, err := index.ContextOp.Call(t.Context(), w.Folder, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := ask(bundle.Request{Query: "retry failed uploads", Mode: retriever.Keyword})
	whys := map[string]string{}
	var order []string
	for _, i := range b.Items {
		whys[i.Path+"#"+i.Anchor] = i.Why
		if len(order) == 0 || order[len(order)-1] != i.Path {
			order = append(order, i.Path)
		}
		text, err := os.ReadFile(filepath.Join(w.Selection().Root, i.Path))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := receipt.Of(i.Path, i.Anchor, text, i.Lines.Start, i.Lines.End); err != nil || r.Mark.String() != i.Mark {
			t.Errorf("%s has mark %q, want %v, %v", i.Place.String(), i.Mark, r.Mark, err)
		}
	}
	if whys["copy/upload.go#Upload"] != "" || !slices.Equal(order, slices.Compact(slices.Clone(order))) {
		t.Errorf("items in the order of %v, want each file once and no copy", order)
	}
	for _, m := range b.More {
		whys[m.Path+"#"+m.Anchor] = m.Why
	}
	for place, want := range map[string]string{"upload.go#Upload": "similar commits", "docs/quota.md#quota": "similar commits", "docs/adr/1.md#uploads-are-retried": "a decision"} {
		if !strings.Contains(whys[place], want) {
			t.Errorf("%s is there because %q, want %q; all: %v", place, whys[place], want, whys)
		}
	}
	if len(b.Commits) == 0 || !strings.HasPrefix(b.Commits[0].Subject, "retry uploads") {
		t.Errorf("commits %v, want the similar ones first", b.Commits)
	}
	r, err := tasks.ContextRequest("aaaaaa")
	if err != nil {
		t.Fatal(err)
	}
	r.Mode = retriever.Keyword
	if b = ask(r); len(b.Items) < 3 || b.Items[0].Why != "the card" || !strings.Contains(b.Items[1].Text, "A second.") || !strings.HasPrefix(r.Query, "Retry failed uploads\n") {
		t.Errorf("a card: question %q, items %v; want the card and its dependency first", r.Query, b.Items)
	}
	if _, err := tasks.ContextRequest("cccccc"); err == nil {
		t.Error("an unknown card has a context")
	}
	count := (&bpe.Counter{}).CountTokens
	for _, budget := range []int{200, 300, 500, 1000} {
		r.Budget = budget
		for _, r.AsText = range []bool{true, false} {
			b := ask(r)
			if n := count(b.Text()); r.AsText && n > budget || b.Tokens > budget {
				t.Errorf("with budget %d: %d tokens, %d as stated", budget, n, b.Tokens)
			}
			if budget == 200 && b.Omitted == 0 {
				t.Errorf("with budget %d nothing is left out", budget)
			}
		}
	}
	for _, bad := range []bundle.Request{{Query: " "}, {Query: "a", Budget: 100}, {Query: "a", Budget: 1 << 20}} {
		if _, err := index.ContextOp.Call(t.Context(), w.Folder, bad, nil); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// TestContextHasCode: the context of a task that the manual matches best has the best
// sections of source code too.
func TestContextHasCode(t *testing.T) {
	sel := folder(t)
	for name, text := range map[string]string{
		"manual.md":    "# Waiting\n\nThe pool waits for a lease.\n",
		"pool.go":      "package pool\n\n// park waits in line until the lease of another is over, or the pool ends.\nfunc park() {}\n",
		"pool_test.go": "package pool\n\n// TestPark waits for a lease.\nfunc TestPark() {}\n",
	} {
		write(t, filepath.Join(sel.Root, name), text)
	}
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	b, err := index.ContextOp.Call(t.Context(), w.Folder, bundle.Request{Query: "the pool waits for a lease", Mode: retriever.Keyword}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Items) != 2 || b.Items[0].Path != "manual.md" || b.Items[1].Anchor != "park" {
		t.Errorf("items:\n%s", b.Text())
	}
}

func TestReferences(t *testing.T) {
	sel := folder(t)
	for name, text := range map[string]string{
		"store/store.go":      "package store\n\n// Open opens it: see Open.\nfunc Open() int { return 0 }\n\nfunc again() int {\n\treturn Open() // Open\n}\n\ntype T struct{}\n\n// Load loads.\nfunc (t *T) Load() int {\n\treturn 1\n}\n",
		"store/store_test.go": "package store\n\nimport \"testing\"\n\nfunc TestOpen(t *testing.T) {\n\tOpen()\n}\n",
		"go/a.go":             "package a\n\ntype Store struct{ n int }\n\ntype holder struct{ store *Store }\n\nfunc (s *Store) Get() int {\n\treturn s.n\n}\n\ntype Other struct{}\n\nfunc (o Other) Get() int { return 1 }\n\nfunc use(h holder, s *Store, o Other) {\n\ts.Get(\n\to.Get(),\n\tx.Get(),\n\tMake().Get(),\n\th.store.Get(),\n\t)\n\tx := &Store{}\n}\n",
		"main.go":             "package main\n\nimport (\n\t\"fmt\"\n\n\t\"x/store\"\n)\n\nfunc main() {\n\tfmt.Println(\"Open()\", store.Open(), new(store.T).Load(), os.Open(1), Opener())\n}\n",
		"py/shape.py":         "class Shape:\n    def area(self):\n        return self.area() + side(self)\n\ndef side(x):\n    return 1\n",
		"py/use.py":           "from shape import side\n\ndef run(x):\n    return side(x) + x.area()\n",
		"js/math.js":          "export function twice(n) {\n  return 2 * n\n}\n",
		"js/use.ts":           "import { twice } from './math'\n\nexport const four = () => {\n  return [2].map(twice)\n}\n",
		"c/table.h":           "#pragma once\nclass Table {\n public:\n  void Add(int n);\n};\n\n// NewTable makes one.\nTable* NewTable();\n",
		"c/table.cc":          "#include \"c/table.h\"\nvoid Table::Add(int n) {\n  n_ += n;\n}\n",
		"c/use.cc":            "#include \"c/table.h\"\nvoid fill() {\n  Table* table = NewTable();\n  table->Add(1);\n}\n",
		"root.go":             "package expr\n\nfunc Root() {}\n",
		"go/root.go":          "package a\n\nimport \"example.com/x/expr\"\nfunc q() { expr.Root() }\n",
		"rs/src/lib.rs":       "pub mod disk;\n",
		"rs/src/disk.rs":      "pub fn sync(n: u8) -> u8 {\n    n\n}\n",
		"rs/src/run.rs":       "use crate::disk;\n\nfn run() {\n    disk::sync(1);\n}\n",
	} {
		write(t, filepath.Join(sel.Root, name), text)
	}
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	const none = "no definition of a symbol with this name; grep finds the lines that contain it"
	for symbol, want := range map[string]string{
		"Open":               "@@ store/store.go:3-4 #Open  func Open() int\nmain.go:10 #main  call: fmt.Println(\"Open()\", store.Open(), new(store.T).Load(), os.Open(1), Opener())\nstore/store.go:7 #again  call: return Open() // Open\nstore/store_test.go:6 #TestOpen  call: Open()",
		"T.Load":             "@@ store/store.go:12-15 #Load  func (t *T) Load() int\nmain.go:10 #main  call, a guess: fmt.Println(\"Open()\", store.Open(), new(store.T).Load(), os.Open(1), Opener())",
		"Store.Get":          "@@ go/a.go:7-9 #Get  func (s *Store) Get() int\ngo/a.go:16 #use  call: s.Get(\ngo/a.go:18 #use  call: x.Get(),\ngo/a.go:20 #use  call: h.store.Get(),\ngo/a.go:19 #use  call, a guess: Make().Get(),",
		"py/shape.py#side":   "@@ py/shape.py:5-6 #side  def side(x)\npy/shape.py:3 #area  call: return self.area() + side(self)\npy/use.py:1  import: from shape import side\npy/use.py:4 #run  call: return side(x) + x.area()",
		"Shape.area":         "@@ py/shape.py:2-3 #area  def area(self)\npy/shape.py:3 #area  call: return self.area() + side(self)\npy/use.py:4 #run  call, a guess: return side(x) + x.area()",
		"twice()":            "@@ js/math.js:1-3 #twice  export function twice(n)\njs/use.ts:1  import: import { twice } from './math'\njs/use.ts:4 #four  use: return [2].map(twice)",
		"sync":               "@@ rs/src/disk.rs:1-3 #sync  pub fn sync(n: u8) -> u8\nrs/src/run.rs:4 #run  call: disk::sync(1);",
		"Table.Add":          "@@ c/table.cc:2-4 #Add  void Table::Add(int n)\nc/use.cc:4 #fill  call: table->Add(1);\nc/table.h:4 #Table  call, a guess: void Add(int n);",
		"NewTable":           "@@ c/table.h:7-8 #NewTable  Table* NewTable()\nc/use.cc:3 #fill  call: Table* table = NewTable();",
		"Root":               "@@ root.go:3-3 #Root  func Root()\ngo/root.go:4 #q  call: func q() { expr.Root() }",
		"py/use.py#side":     none,
		"missing":            none,
		"other/place.go#run": none,
	} {
		found, err := index.ReferencesOp.Call(t.Context(), w.Folder, bundle.ReferencesRequest{Symbol: symbol}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Text(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", symbol, got, want)
		}
	}
	for _, bad := range []bundle.ReferencesRequest{{Symbol: " "}, {Symbol: "a b"}, {Symbol: "x."}, {Symbol: strings.Repeat("a", 300)}, {Symbol: "Open", Limit: -1}} {
		if _, err := index.ReferencesOp.Call(t.Context(), w.Folder, bad, nil); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	b, err := index.ContextOp.Call(t.Context(), w.Folder, bundle.Request{Query: "side of a shape", Mode: retriever.Keyword}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.Text(), "calls side") {
		t.Errorf("the callers of side are not in\n%s", b.Text())
	}
}
