package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestEditFrontMatter(t *testing.T) {
	when := time.Date(2026, 1, 2, 10, 43, 0, 0, time.UTC)
	for _, c := range []struct {
		name, src string
		edits     []FieldEdit
		want      string
	}{
		{"value keeps its comment", "---\ntitle: A # why\nstatus: todo   # set by hand\n---\nbody\n", []FieldEdit{{"status", "done"}}, "---\ntitle: A # why\nstatus: done   # set by hand\n---\nbody\n"},
		{"new key comes last", "---\ntitle: A\n# end\n---\n", []FieldEdit{{"assignee", "@dev"}}, "---\ntitle: A\n# end\nassignee: \"@dev\"\n---\n"},
		{"quotes are kept", "---\na: \"x\"\nb: 'y'\n---\n", []FieldEdit{{"a", "z"}, {"b", "it's"}}, "---\na: \"z\"\nb: 'it''s'\n---\n"},
		{"CRLF", "---\r\na: x\r\nz: 1\r\n---\r\nbody\r\n", []FieldEdit{{"a", "v"}, {"b", "n"}}, "---\r\na: v\r\nz: 1\r\nb: \"n\"\r\n---\r\nbody\r\n"},
		{"BOM", "\ufeff---\na: x\n---\n", []FieldEdit{{"a", "v"}}, "\ufeff---\na: v\n---\n"},
		{"no line break at the end", "---\na: x\n---", []FieldEdit{{"a", "v"}}, "---\na: v\n---"},
		{"dots close", "---\na: x\n...\nb", []FieldEdit{{"b", "v"}}, "---\na: x\nb: v\n...\nb"},
		{"remove", "---\na: x\nb:\n  - 1\n  - 2\n# c\nc: z\n---\n", []FieldEdit{{"b", nil}, {"nope", nil}}, "---\na: x\n# c\nc: z\n---\n"},
		{"block list keeps lines", "---\ntags:\n  - a   # first\n  # about b\n  - 'b'\n  - c\nz: 1\n---\n", []FieldEdit{{"tags", []string{"b", "c", "new tag"}}}, "---\ntags:\n  # about b\n  - 'b'\n  - c\n  - new tag\nz: 1\n---\n"},
		{"list without indent", "---\ntags:\n- a\n- b\nz: 1\n---\n", []FieldEdit{{"tags", []string{"b"}}}, "---\ntags:\n- b\nz: 1\n---\n"},
		{"list emptied", "---\ntags: # t\n- a\n- b\nz: 1\n---\n", []FieldEdit{{"tags", []string{}}}, "---\ntags: [] # t\nz: 1\n---\n"},
		{"flow list", "---\ntags: [a, \"b, c\"] # t\n---\n", []FieldEdit{{"tags", []string{"x:y", "1"}}}, "---\ntags: [\"x:y\", \"1\"] # t\n---\n"},
		{"flow list over lines", "---\ntags: [a,\n  b] # t\nz: 1\n---\n", []FieldEdit{{"tags", []string{"q"}}}, "---\ntags: [q] # t\nz: 1\n---\n"},
		{"null", "---\na:\nb: ~\n---\n", []FieldEdit{{"a", "x"}, {"b", "v"}}, "---\na: x\nb: v\n---\n"},
		{"block scalar", "---\nnotes: |\n  # no comment\n\n  two\n\nz: 1\n---\n", []FieldEdit{{"notes", "short"}}, "---\nnotes: short\n\nz: 1\n---\n"},
		{"plain over lines", "---\na: one\n  two\nz: 1\n---\n", []FieldEdit{{"a", "three"}}, "---\na: three\nz: 1\n---\n"},
		{"quoted over lines", "---\na: \"one\n  # two\" # c\nz: 1\n---\n", []FieldEdit{{"a", "three"}}, "---\na: \"three\" # c\nz: 1\n---\n"},
		{"newline in value", "---\na: x\n---\n", []FieldEdit{{"a", "l1\nl2: \"q\" \\ \u2028\x01"}}, "---\na: \"l1\\nl2: \\\"q\\\" \\\\ \\u2028\\x01\"\n---\n"},
		{"time", "---\na: x\n---\n", []FieldEdit{{"updated", when}}, "---\na: x\nupdated: 2026-01-02T10:43:00Z\n---\n"},
		{"golden 12", "---\ntitle: x\n---\n", []FieldEdit{{"title", `Fix: "a" # b`}, {"assignee", "@developer"}}, "---\ntitle: \"Fix: \\\"a\\\" # b\"\nassignee: \"@developer\"\n---\n"},
		{"quoted key", "---\n\"a\" : x\n---\n", []FieldEdit{{"a", "v"}}, "---\n\"a\" : v\n---\n"},
		{"indented mapping", "---\n  a: x\n  b: y\n---\n", []FieldEdit{{"a", "z"}, {"c", "w"}}, "---\n  a: z\n  b: y\n  c: w\n---\n"},
		{"nested", "---\na:\n  status: inner\nstatus: outer\n---\n", []FieldEdit{{"status", "new"}}, "---\na:\n  status: inner\nstatus: new\n---\n"},
		{"key within a quoted value", "---\nb: \"\n a: x\n\"\n---\n", []FieldEdit{{"a", "v"}}, "---\nb: \"\n a: x\n\"\na: v\n---\n"},
		{"empty block", "---\n---\n", []FieldEdit{{"a", "b"}}, "---\na: b\n---\n"},
	} {
		got, err := EditFrontMatter([]byte(c.src), c.edits...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: EditFrontMatter(%q, %v)\n got %q, %v\nwant %q", c.name, c.src, c.edits, got, err, c.want)
		}
	}
}

func TestEditFrontMatterRefuses(t *testing.T) {
	for _, c := range []struct {
		name, src string
		edit      FieldEdit
	}{
		{"none", "# A\n", FieldEdit{"a", "b"}},
		{"broken", "---\na: [\n---\n", FieldEdit{"a", "b"}},
		{"flow mapping", "---\n{a: x}\n---\n", FieldEdit{"a", "b"}},
		{"flow mapping, new key", "---\n{a: x}\n---\n", FieldEdit{"b", "b"}},
		{"not UTF-8", "---\na: x\n---\n", FieldEdit{"a", "\xff"}},
		{"type", "---\na: x\n---\n", FieldEdit{"a", 1.5}},
	} {
		src := []byte(c.src)
		if got, err := EditFrontMatter(src, c.edit); err == nil {
			t.Errorf("%s: EditFrontMatter(%q, %v) = %q, want an error", c.name, c.src, c.edit, got)
		}
		if string(src) != c.src {
			t.Errorf("%s: the source changed to %q", c.name, src)
		}
	}
	if _, err := EditFrontMatter([]byte("x"), FieldEdit{"a", "b"}); !errors.Is(err, ErrNoFrontMatter) {
		t.Errorf("got %v, want ErrNoFrontMatter", err)
	}
}

// randomBlock returns random front matter with all forms of values, and the lines of each
// key.
func randomBlock(r *rand.Rand, eol string) (keys []string, own map[string]string, text string) {
	values := []string{" plain text", " \"quoted: # x\"", " 'single # y'", " [a, \"b\", 'c']", "\n  - a\n  - b # c", "\n- x\n- y", " |\n  line # 1\n\n  line 2", " >\n  folded", " 12", " true", " ~", "", " 2026-01-02", " {k: v}", "\n  sub: x\n  other: [1, 2]", " one\n  two", " x # comment", " y #   two  ", " \"multi\n  line\"", " 012345", " ünï cödé"}
	junk := []string{"", "# comment\n", "\n", "  # indented\n", "# status: todo\n"}
	var b strings.Builder
	scalar := false
	own = map[string]string{}
	for i := range 2 + r.IntN(7) { // a block without any key is no mapping
		key := fmt.Sprintf("k%d", i)
		if j := junk[r.IntN(len(junk))]; !scalar || j[:min(1, len(j))] != " " { // there it would be text
			b.WriteString(j)
		}
		line := key + ":" + values[r.IntN(len(values))] + "\n"
		keys, own[key] = append(keys, key), strings.ReplaceAll(line, "\n", eol)
		scalar = strings.ContainsAny(line, "|>")
		b.WriteString(line)
	}
	return keys, own, strings.ReplaceAll("---\n"+b.String()+"---\n\n# Body\n\nstatus: x\n---\n", "\n", eol)
}

func TestEditKeepsEveryOtherByte(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []any{"x", "@y", "a: b", "", "two\nlines", []string{}, []string{"a", "z"}, []string{"p q", "#"}, time.Unix(1e9, 0), nil}
	for range 4000 {
		eol := []string{"\n", "\r\n"}[r.IntN(2)]
		keys, own, text := randomBlock(r, eol)
		if r.IntN(4) == 0 {
			text = bom + text
		}
		before := ReadFrontMatter([]byte(text))
		if !before.Found() {
			t.Fatalf("%q does not parse: %v", text, before.Err)
		}
		key, value := keys[r.IntN(len(keys))], values[r.IntN(len(values))]
		got, err := EditFrontMatter([]byte(text), FieldEdit{key, value})
		if err != nil {
			t.Fatalf("EditFrontMatter(%q, %s=%v): %v", text, key, value, err)
		}
		// All bytes before and after the lines of the key are unchanged.
		at := strings.Index(text, eol+own[key]) + len(eol)
		head, tail := text[:at], text[at+len(own[key]):]
		if value == nil { // a comment indented below the key goes with it
			tail = strings.TrimPrefix(tail, "  # indented"+eol)
		}
		if !bytes.HasPrefix(got, []byte(head)) || !bytes.HasSuffix(got, []byte(tail)) {
			t.Fatalf("EditFrontMatter(%q, %s=%v)\n = %q: bytes beside the key changed", text, key, value, got)
		}
		after := ReadFrontMatter(got)
		if value == nil {
			if _, ok := after.Fields[key]; ok {
				t.Fatalf("EditFrontMatter(%q, %s=nil) = %q: the key is still there", text, key, got)
			}
		} else if !reflect.DeepEqual(after.Fields[key], written(value)) {
			t.Fatalf("EditFrontMatter(%q, %s=%v) = %q: value is %v", text, key, value, got, after.Fields[key])
		}
	}
}

// plainKey matches some of the keys that every YAML reader reads as strings.
var plainKey = regexp.MustCompile(`^k[a-z0-9_.-]*$`)

func FuzzEditFrontMatter(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		_, _, text := randomBlock(r, "\n")
		f.Add([]byte(text), "k0", "value: # x")
	}
	f.Add([]byte("---\na: \"\\x\"\n---\n"), "a", "\u0085\ufeff\U0001f680")
	f.Fuzz(func(t *testing.T, src []byte, key, value string) {
		if !plainKey.MatchString(key) {
			return
		}
		saved := bytes.Clone(src)
		out, err := EditFrontMatter(src, FieldEdit{key, value})
		if !bytes.Equal(src, saved) {
			t.Fatal("the source changed")
		}
		if err != nil {
			return
		}
		before, after := ReadFrontMatter(src), ReadFrontMatter(out)
		if got := after.Fields[key]; got != value {
			t.Fatalf("%q: key %s is %q, want %q", out, key, got, value)
		}
		if !bytes.Equal(src[before.End:], out[after.End:]) || !bytes.Equal(src[:before.Start], out[:after.Start]) {
			t.Fatalf("%q -> %q: bytes outside the block changed", src, out)
		}
		again, err := EditFrontMatter(out, FieldEdit{key, value})
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("second edit of %q gives %q, %v", out, again, err)
		}
	})
}
