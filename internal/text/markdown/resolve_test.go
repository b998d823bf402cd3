package markdown

import (
	"fmt"
	"testing"
)

func TestSplitPlace(t *testing.T) {
	for place, want := range map[string]string{
		"a.md":       "a.md  0 0 <nil>",
		"a.md#b":     "a.md b 0 0 <nil>",
		"a#b.md#c":   "a#b.md c 0 0 <nil>",
		"a#b.md:3":   "a#b.md  3 3 <nil>",
		"a#c.md:3":   "a c.md:3 0 0 <nil>",
		"a.md#b:3":   "a.md b:3 0 0 <nil>",
		"#b":         "#b  0 0 <nil>",
		"a.md:3":     "a.md  3 3 <nil>",
		"a.md:3-9":   "a.md  3 9 <nil>",
		"a:1.md:3-9": "a:1.md  3 9 <nil>",
		"a.md:-9":    "a.md:-9  0 0 <nil>",
		"a.md:x":     "a.md:x  0 0 <nil>",
		"a.md:0":     "a.md  0 0 lines 0-0, want FROM-TO with 1 <= FROM <= TO",
		"a.md:9-3":   "a.md  9 3 lines 9-3, want FROM-TO with 1 <= FROM <= TO",
	} {
		path, anchor, from, to, err := SplitPlace(place, func(path string) bool { return path == "a#b.md" })
		if got := fmt.Sprintf("%s %s %d %d %v", path, anchor, from, to, err); got != want {
			t.Errorf("SplitPlace(%q) is %q, want %q", place, got, want)
		}
	}
}
