package store

import (
	"strings"
	"testing"
)

func TestChunkIDRoundTrip(t *testing.T) {
	for _, c := range []struct {
		path, anchor string
		n            int
	}{
		{"docs/auth.md", "login-flow", 0},
		{"docs/c#.notes/a.b#c.md", "x", 12},
		{"ü.md", "", 3},
		{"a.md", "日本語", 1},
	} {
		id := ChunkID(c.path, c.anchor, c.n)
		path, anchor, n, ok := SplitChunkID(id)
		if !ok || path != c.path || anchor != c.anchor || n != c.n {
			t.Errorf("SplitChunkID(%q) = %q, %q, %d, %v; want %q, %q, %d, true", id, path, anchor, n, ok, c.path, c.anchor, c.n)
		}
	}
	for _, id := range []string{"", "a.md", "a.md#x", "a.md#x.", "a.md#x.y", "a.md#x.-1"} {
		if _, _, _, ok := SplitChunkID(id); ok {
			t.Errorf("SplitChunkID(%q) is ok, want not", id)
		}
	}
}

func TestFilterMatch(t *testing.T) {
	auth := Labels{Found: true, Tags: []string{"auth", "Web"}, Priority: "High", Assignee: "@dev"}
	for _, c := range []struct {
		name   string
		f      Filter
		path   string
		labels Labels
		want   bool
	}{
		{"zero matches all", Filter{}, "a.md", Labels{}, true},
		{"tag folds case", Filter{Tags: []string{"AUTH"}}, "a.md", auth, true},
		{"any tag", Filter{Tags: []string{"no", "web"}}, "a.md", auth, true},
		{"no tag", Filter{Tags: []string{"no"}}, "a.md", auth, false},
		{"priority folds case", Filter{Priority: "HIGH"}, "a.md", auth, true},
		{"and", Filter{Priority: "high", Tags: []string{"ui"}}, "a.md", auth, false},
		{"assignee", Filter{Assignee: "@DEV"}, "a.md", auth, true},
		{"no front matter", Filter{Tags: []string{"auth"}}, "a.md", Labels{Tags: []string{"auth"}}, false},
		{"path", Filter{PathPrefix: "docs/"}, "docs/a.md", Labels{}, true},
		{"other path", Filter{PathPrefix: "docs/"}, "src/a.md", Labels{}, false},
	} {
		if got := c.f.Match(c.path, c.labels); got != c.want {
			t.Errorf("%s: Match = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFoldMatchesEqualFold(t *testing.T) {
	labels := []string{"Auth", "auth", "AUTH", "über", "ÜBER", "ſtraße", "STRASSE", "straße", "K", "K", "", "日本"}
	for _, a := range labels {
		for _, b := range labels {
			if got, want := Fold(a) == Fold(b), strings.EqualFold(a, b); got != want {
				t.Errorf("Fold(%q) == Fold(%q) is %v, EqualFold says %v", a, b, got, want)
			}
		}
	}
}
