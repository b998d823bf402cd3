package query

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func ExampleParse() {
	fmt.Println(Parse(`rotate "access token" -"old key" -legacy`))
	fmt.Println(Parse(`tar -x --list`))
	// Output:
	// rotate access token; must hold "access token"; excludes "old key", -legacy
	// tar -x --list
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
		if utf8.ValidString(s) && !utf8.ValidString(q.String()) {
			t.Errorf("Parse(%q).String() = %q, which is not UTF-8", s, q)
		}
	})
}
