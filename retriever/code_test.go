package retriever

import (
	"cmp"
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
		"how is the index opened": "docs/a.md a.go a_test.go",
		"OpenIndex":               "b/a.go#OpenIndex b/index/a.go#OpenIndex-1 a.go docs/a.md a_test.go",
		"index.OpenIndex":         "b/index/a.go#OpenIndex-1 b/a.go#OpenIndex a.go docs/a.md a_test.go",
	} {
		cs := []candidate{{path: "a_test.go"}, {path: "a.go"}, {path: "docs/a.md"}}
		if strings.Contains(query, "OpenIndex") {
			cs = append(cs, candidate{path: "b/a.go", anchor: "OpenIndex"}, candidate{path: "b/index/a.go", anchor: "OpenIndex-1"})
		}
		for i := range cs {
			c := &cs[i]
			c.VectorWeight, c.Vector = 1, 0.8-0.01*float64(i)
			c.Score = c.Recompute()
		}
		placeCode(cs, query)
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
	documents := []candidate{{path: "a.md", Explanation: Explanation{Score: 0.5}}}
	if placeCode(documents, "OpenIndex"); documents[0].Score != 0.5 {
		t.Errorf("documents alone: %+v", documents[0])
	}
}
