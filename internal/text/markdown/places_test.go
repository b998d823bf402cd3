package markdown_test

import (
	"slices"
	"testing"

	"cairn/internal/text/markdown"
)

func TestPlaces(t *testing.T) {
	places := markdown.NewPlaces(slices.Values([]string{"a.md", "docs/a.md", "docs/Notes.md", "docs/sub/index.md", "site/_index.md", "x/v1.2.md"}))
	for _, c := range []struct {
		from, link string
		want       string
		ok         bool
	}{
		{"docs/a.md", "[x](Notes.md)", "docs/Notes.md", true},
		{"docs/a.md", "[x](Notes)", "docs/Notes.md", true},
		{"a.md", "[x](docs/sub/)", "docs/sub/index.md", true},
		{"a.md", "[x](/site)", "site/_index.md", true},
		{"a.md", "[x](/notes)", "docs/Notes.md", true},
		{"a.md", "[x](/docs/none)", "", false},
		{"a.md", "[x](Notes.md)", "", false},
		{"docs/a.md", "[[sub/index]]", "docs/sub/index.md", true},
		{"a.md", "[[NOTES.md|notes]]", "docs/Notes.md", true},
		{"a.md", "[[v1.2]]", "x/v1.2.md", true},
		{"docs/sub/index.md", "[[other/A]]", "", true}, // two have that name
		{"a.md", "[[none]]", "", false},
	} {
		file, ok := places.Find(c.from, markdown.Targets(c.from, []byte(c.link))[0])
		if file != c.want || ok != c.ok {
			t.Errorf("%s in %s leads to %q, %v, want %q, %v", c.link, c.from, file, ok, c.want, c.ok)
		}
	}
}
