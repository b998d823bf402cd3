package retriever

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIdentifier(t *testing.T) {
	for query, want := range map[string]string{
		"NewIndex": "NewIndex", "foo_bar": "foo_bar", "camelCase": "camelCase", "Foo.Bar": "Bar", "std::sort": "sort", "run()": "run",
		"`NewIndex`": "NewIndex", "Index#search": "search", "p->next": "next", "search": "", "parse the duration": "", "README.md": "",
		"main.go": "", "--force": "", "a b": "", "10.5": "", "Foo.Bar.baz": "baz",
	} {
		if _, got := identifier(query); got != want {
			t.Errorf("identifier(%q) = %q, want %q", query, got, want)
		}
	}
}

// TestPlaceCode: documents come before code in answers to questions, definitions first
// in answers to identifiers, and tests last.
func TestPlaceCode(t *testing.T) {
	for query, want := range map[string]string{
		"how is the index opened": "docs/a.md a.go#f a.go a_test.go",
		"OpenIndex":               "b/a.go#OpenIndex b/index/a.go#OpenIndex-1 a.go#f docs/a.md a.go a_test.go",
		"index.OpenIndex":         "b/index/a.go#OpenIndex-1 b/a.go#OpenIndex a.go#f docs/a.md a.go a_test.go",
	} {
		cs := []candidate{{path: "a_test.go"}, {path: "a.go"}, {path: "a.go", anchor: "f"}, {path: "docs/a.md"}}
		if strings.Contains(query, "OpenIndex") {
			cs = append(cs, candidate{path: "b/a.go", anchor: "OpenIndex"}, candidate{path: "b/index/a.go", anchor: "OpenIndex-1"})
		}
		for i := range cs {
			c := &cs[i]
			c.VectorWeight, c.Vector = 1, 0.8-0.01*float64(i)
			c.Score = c.Recompute()
		}
		placeCode(cs, query, nothing)
		slices.SortFunc(cs, func(a, b candidate) int { return cmp.Compare(b.Score, a.Score) })
		var got []string
		for _, c := range cs {
			if c.Score < 0 || c.Score > 1 || c.Score != c.Recompute() {
				t.Errorf("%q: %s has score %g, its parts %g", query, c.path, c.Score, c.Recompute())
			}
			name := c.path
			if c.anchor != "" {
				name += "#" + c.anchor
			}
			got = append(got, name)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	// A word in lower case is the name of a symbol unless a document has it as a name.
	for path, want := range map[string]string{"docs/a.md#quoted-text": "a.go#quote", "docs/a.md#quote": "docs/a.md#quote", "docs/quote.md#": "docs/quote.md#"} {
		file, anchor, _ := strings.Cut(path, "#")
		cs := []candidate{{path: "a.go", anchor: "quote"}, {path: file, anchor: anchor}, {path: "b.go", anchor: "f"}}
		for i := range cs {
			cs[i].VectorWeight, cs[i].Vector = 1, 0.5+0.1*float64(i%2)
			cs[i].Score = cs[i].Recompute()
		}
		if err := placeCode(cs, "quote", nothing); err != nil {
			t.Fatal(err)
		}
		best := slices.MaxFunc(cs, func(a, b candidate) int { return cmp.Compare(a.Score, b.Score) })
		if got := best.path + "#" + best.anchor; got != want {
			t.Errorf("quote with %s: first is %s, want %s", path, got, want)
		}
	}
	documents := []candidate{{path: "a.md", Explanation: Explanation{Score: 0.5}}}
	if _ = placeCode(documents, "OpenIndex", nothing); documents[0].Score != 0.5 {
		t.Errorf("documents alone: %+v", documents[0])
	}
}

// TestSymbolsAreResults: the best symbols of a file are results of their own, and more
// lists others.
func TestSymbolsAreResults(t *testing.T) {
	var src strings.Builder
	src.WriteString("package a\n")
	for i := range 8 {
		fmt.Fprintf(&src, "\nfunc rotateToken%c(n int) int {\n\treturn n + %d\n}\n", 'A'+i, i)
	}
	f := open(t, map[string]string{"a.go": src.String(), "b.go": "package a\n\nfunc rotateKey() {\n}\n"}, nil)
	a, err := f.Search(context.Background(), Query{Text: "rotate the token", Mode: Keyword})
	must(t, err)
	if a.TotalCount != 2 {
		t.Errorf("total count %d, want that of the files", a.TotalCount)
	}
	if got := strings.Join(a.Results[0].Anchors, " "); got != "rotateTokenA rotateTokenB rotateTokenC" {
		t.Errorf("anchors %s, want the names", got)
	}
	seen := map[string]bool{}
	for _, r := range a.Results {
		for _, place := range append([]string{r.Place()}, placesOf(r)...) {
			if seen[place] {
				t.Errorf("%s twice", place)
			}
			seen[place] = true
		}
	}
	if n := len(a.Results); n != maxSymbols || len(seen) != 8 {
		t.Errorf("%d results and %d symbols, want %d and 8", n, len(seen), maxSymbols)
	}
}

func placesOf(r Result) (places []string) {
	for i := range r.More {
		places = append(places, r.PlaceOf(&r.More[i]))
	}
	return places
}

// nothing is the search for declarations in texts that have none.
func nothing(string, []*candidate) error { return nil }

// TestDeclarationsFirst: a name that is no symbol of the outline is found where it is
// declared; one that may be a word, among the code alone.
func TestDeclarationsFirst(t *testing.T) {
	f := open(t, map[string]string{
		"README.md":    "# Tool\n\nSet fIndices or the monitor. The monitor, fIndices, monitor and fIndices.\n",
		"Use.java":     "class Use {\n  void f(Rule r) {\n    print(r.fIndices, r.fIndices, r.fIndices);\n    r.monitor(monitor, monitor);\n  }\n}\n",
		"Failure.java": "class Failure {\n  private final List<Integer> fIndices = new ArrayList<Integer>();\n  private final Object monitor;\n\n  String message() {\n    return text + other + longer;\n  }\n}\n",
	}, nil)
	for query, want := range map[string]string{"fIndices": "Failure.java", "monitor": "README.md Failure.java"} {
		a, err := f.Search(context.Background(), Query{Text: query, Mode: Keyword})
		must(t, err)
		var got []string
		for _, r := range a.Results {
			got = append(got, r.Path)
		}
		if !strings.HasPrefix(strings.Join(got, " "), want) {
			t.Errorf("%s: %v, want %s first", query, got, want)
		}
	}
}

// TestDefinitionBeyondTheDepth: a symbol whose word is in many better chunks is found, and
// so is a field, before an assignment to it.
func TestDefinitionBeyondTheDepth(t *testing.T) {
	files := map[string]string{
		"types.ts": "export interface Observer {\n  next: number;\n}\n\nexport function unrelated() {\n  return something + other + longer + text + more;\n}\n",
		"State.h":  "class State {\n  int a;\n  double obs_count_;\n  int b;\n  int c;\n};\n",
		"State.cc": "void f() {\n  obs_count_ = 0;\n}\n",
	}
	for i := range 20 {
		files[fmt.Sprintf("observe%d.ts", i)] = "export function observe() {\n  // observer observes observing observed\n  return observer;\n}\n"
		files[fmt.Sprintf("obs%d.ts", i)] = "export function g() {\n  // obs count, obs count\n  return obs.count + obs_count_;\n}\n"
	}
	f := open(t, files, &Options{Depth: 5})
	for query, want := range map[string]string{"Observer": "types.ts", "obs_count_": "State.h"} {
		a, err := f.Search(context.Background(), Query{Text: query, Mode: Keyword})
		must(t, err)
		if len(a.Results) == 0 || a.Results[0].Path != want {
			t.Errorf("%s: %+v, want %s first", query, a.Results, want)
		}
	}
}
