package scene

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)

// folder is documents by path; one whose text begins with "old " was changed yesterday.
type folder map[string]string

func (f folder) Paths() []string {
	var paths []string
	for p := range f {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

func (f folder) Read(path string) ([]byte, time.Time, error) {
	text, ok := f[path]
	if !ok || text == "unreadable" {
		return nil, time.Time{}, errors.New("closed")
	}
	if strings.HasPrefix(text, "old ") {
		return []byte(text), now.Add(-24 * time.Hour), nil
	}
	return []byte(text), now.Add(-time.Hour), nil
}

func words(text string) int { return len(strings.Fields(text)) }

var docs = folder{
	"cards/a.md":  "old see [design](../docs/d.md) and [[Notes]], [gone](none.md), [out](https://x.y/z.md)",
	"docs/d.md":   "see @/deep/e and [itself](d.md)",
	"notes.md":    "old [back](cards/a.md)",
	"deep/e.md":   "old see [further](/deep/f.md#x)",
	"deep/f.md":   "old the end",
	"global.md":   "old everywhere",
	"other.md":    "old nobody speaks of it",
	"hand.md":     "old at hand",
	"closed.md":   "unreadable",
	"x/notes2.md": "old",
}

func TestWeights(t *testing.T) {
	s := Build(Request{Paths: docs.Paths(), Read: docs.Read, Cards: []string{"cards/a.md"}, Working: []string{"hand.md", "notes.md", "closed.md"}, Global: []string{"global.md"}, TokenLimit: 10_000, Count: words, Now: now})
	var got []string
	for _, i := range s.Items {
		got = append(got, fmt.Sprintf("%s %g %d", i.Path, i.Weight, i.Depth))
	}
	want := []string{
		"cards/a.md 100 0",
		"docs/d.md 100 1", // 50, today
		"notes.md 75 1",   // 50, at hand
		"deep/e.md 25 2",
		"hand.md 15 -1", // 10, at hand
		"deep/f.md 10 3",
		"global.md 10 -1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("items are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.Truncated || strings.Contains(s.Text, truncated) || s.Tokens > s.Limit {
		t.Errorf("truncated %v with %d of %d tokens", s.Truncated, s.Tokens, s.Limit)
	}
	if n := words(s.Text); n != s.Tokens && n > s.Tokens {
		t.Errorf("the text has %d tokens, told are %d", n, s.Tokens)
	}
}

// TestBudget: whatever the limit, the text keeps to it, and what is in it is the
// heaviest.
func TestBudget(t *testing.T) {
	for limit := 1; limit < 260; limit += 7 {
		s := Build(Request{Paths: docs.Paths(), Read: docs.Read, Cards: []string{"cards/a.md"}, TokenLimit: limit, Count: words, Now: now})
		if n := words(s.Text); n > max(limit, 40) {
			t.Errorf("limit %d: %d tokens", limit, n)
		}
		after := false
		for _, i := range s.Items {
			if i.Included && after {
				t.Errorf("limit %d: %s is in though something heavier is not", limit, i.Path)
			}
			after = after || !i.Included
			if i.Included != strings.Contains(s.Text, "## "+i.Path+"\n") {
				t.Errorf("limit %d: %s is said to be in: %v", limit, i.Path, i.Included)
			}
		}
		if s.Truncated != strings.Contains(s.Text, truncated) || s.Truncated != after {
			t.Errorf("limit %d: truncated %v", limit, s.Truncated)
		}
	}
}

func TestFences(t *testing.T) {
	f := folder{"a.md": "# One\n\n````\n```\n````\n\n## Two\n"}
	s := Build(Request{Paths: f.Paths(), Read: f.Read, Cards: []string{"a.md"}, TokenLimit: 1000, Count: words, Now: now})
	if !strings.Contains(s.Text, "\n`````markdown\n# One\n") || !strings.Contains(s.Text, "- line 7: #two\n") {
		t.Errorf("text is\n%s", s.Text)
	}
}
