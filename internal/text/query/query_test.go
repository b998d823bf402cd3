package query

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func ExampleParse() {
	q := Parse(`rotate "access token" -"old key" -legacy`)
	fmt.Printf("%s; must hold %q; excludes %q and %q\n", q.Words, q.Phrases, q.Excluded, q.Dashed)
	fmt.Println(Parse(`tar -x --list`).Words)
	// Output:
	// rotate access token; must hold ["access token"]; excludes ["old key"] and ["legacy"]
	// tar -x --list
}

func TestCutChanged(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string][3]string{
		"token changed:<2w rotate": {"token  rotate", "2026-03-17", ""},
		"changed:2w":               {"", "2026-03-17", ""},
		"changed:>1y token":        {"token", "", "2025-03-31"},
		"token changed:>2026-01-31 changed:<=2026-03-01": {"token", "2026-01-31", "2026-03-01"},
		"changed:36h token":                    {"token", "2026-03-30", ""},
		"token changed:soon":                   {"token changed:soon", "", ""},
		"token changed:2ww changed: changed:>": {"token changed:2ww changed: changed:>", "", ""},
		"changed:2026-02-30 changed:99999999d": {"changed:2026-02-30 changed:99999999d", "", ""},
		"unchanged:2w":                         {"unchanged:2w", "", ""},
	} {
		rest, after, before := CutChanged(text, now)
		got := [3]string{rest}
		for i, at := range []time.Time{after, before} {
			if !at.IsZero() {
				got[i+1] = at.Format(time.DateOnly)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Query
	}{
		{"x y", Query{Words: "x y"}},
		{"  x \t y ", Query{Words: "x y"}},
		{`"session token" expiry`, Query{Words: "session token expiry", Phrases: []string{"session token"}}},
		{"“session token” expiry", Query{Words: "session token expiry", Phrases: []string{"session token"}}},
		{`jaguar -car`, Query{Words: "jaguar", Dashed: []string{"car"}}},
		{`jaguar -"sports car" fast`, Query{Words: "jaguar fast", Excluded: []string{"sports car"}}},
		{`red -car"two doors"`, Query{Words: "red two doors", Phrases: []string{"two doors"}, Dashed: []string{"car"}}},
		// Flags, numbers and hyphens are words.
		{`tar -x -la --list -50 well-known - --`, Query{Words: "tar -x -la --list -50 well-known - --"}},
		{"京 -東京", Query{Words: "京", Dashed: []string{"東京"}}},
		// Quotes in a sentence cite.
		{`add "x y" to every line of a file`, Query{Words: "add x y to every line of a file"}},
		{`the "x y" file`, Query{Words: "the x y file", Phrases: []string{"x y"}}},
		{`don't add "x y" to files`, Query{Words: "don't add x y to files"}},
		// There are no other words.
		{`-car`, Query{Words: "car"}},
		{`-"sports car" -bus`, Query{Words: "sports car bus"}},
		{`"" -car`, Query{Words: "car"}},
		// Plain text.
		{`"open`, Query{Words: `"open`}},
		{`a"b" ""`, Query{Words: "a b", Phrases: []string{"b"}}},
		{"-import \"os\"\n+import \"io\"\n", Query{Words: `-import "os" +import "io"`}},
		{"jaguar -car\n", Query{Words: "jaguar", Dashed: []string{"car"}}},
		{"", Query{}},
		{" ", Query{}},
		{`""`, Query{Words: `""`}},
		{"- -- ---", Query{Words: "- -- ---"}},
	} {
		if diff := cmp.Diff(c.want, Parse(c.text)); diff != "" {
			t.Errorf("Parse(%q) (-want +got)\n%s", c.text, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", `a "b c" -d -"e f" --g -h`, `-"a" -bcd`, "\xff-\"“”", "᾿ -᾿᾿", `add "x" to every line of a file`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Parse(s)
		if strings.TrimSpace(s) != "" && q.Words == "" {
			t.Errorf("Parse(%q) has no words", s)
		}
		if !hasWord(q.Words) && q.Restricts() {
			t.Errorf("Parse(%q) restricts and asks for nothing", s)
		}
		if utf8.ValidString(s) && !utf8.ValidString(fmt.Sprint(q)) {
			t.Errorf("Parse(%q) = %+v, which is not UTF-8", s, q)
		}
	})
}
