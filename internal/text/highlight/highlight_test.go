package highlight

import (
	"strings"
	"testing"
)

var letters = map[Kind]string{Comment: "c", String: "s", Number: "n", Keyword: "k", Heading: "h", Inserted: "i", Deleted: "d"}

// marked writes each span as <letter:text>.
func marked(text string, spans []Span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start] + "<" + letters[s.Kind] + ":" + text[s.Start:s.End] + ">")
		at = s.End
	}
	return b.String() + text[at:]
}

func TestCode(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{"go", `return "a\"b" + x2 // why`, `<k:return> <s:"a\"b"> + x2 <c:// why>`},
		{"Go", "x := `a\nb` /* c\nd */ 0x1F", "x := <s:`a\nb`> <c:/* c\nd */> <n:0x1F>"},
		{"python", "def f(): # it's\n    return '''a\nb'''", "<k:def> f(): <c:# it's>\n    <k:return> <s:'''a\nb'''>"},
		{"sh", `echo "$#" a#b # c`, `<k:echo> <s:"$#"> a#b <c:# c>`},
		{"rust", "fn f<'a>(x: &'a str)", "<k:fn> f<'a>(x: &'a <k:str>)"},
		{"sql", "SELECT a FROM b -- c", "<k:SELECT> a <k:FROM> b <c:-- c>"},
		{"yaml", "a: 'b' # c\nurl: http://x/#d", "a: <s:'b'> <c:# c>\nurl: http://x/#d"},
		{"diff", "--- a\n+b\n-c\n d", "<c:--- a>\n<i:+b>\n<d:-c>\n d"},
		{"c", `char *s = "open`, `<k:char> *s = <s:"open>`},
		{"js", "don't // c", "don't <c:// c>"},
		{"unknown", `return "a"`, `return "a"`},
		{"go", "größe := 1", "größe := <n:1>"},
	} {
		if got := marked(c.text, Code(c.language, c.text)); got != c.want {
			t.Errorf("%s: %s, want %s", c.language, got, c.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	text := "---\ntitle: a\n---\n# One\n\nUse `x` and `y.\n\n```go\nreturn 1\n```\n> q\n"
	want := "<c:--->\n<c:title: a>\n<c:--->\n<h:# One>\n\nUse <s:`x`> and `y.\n\n<c:```go>\n<k:return> <n:1>\n<c:```>\n<c:> q>\n"
	if got := marked(text, Markdown(text)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The spans of any text are in order, within the text and not empty.
func FuzzSpans(f *testing.F) {
	f.Add("go", "\"\\")
	f.Add("diff", "\n\n+")
	f.Add("python", "'''")
	f.Fuzz(func(t *testing.T, language, text string) {
		for _, spans := range [][]Span{Code(language, text), Markdown(text)} {
			at := 0
			for _, s := range spans {
				if s.Start < at || s.End < s.Start || s.End > len(text) {
					t.Fatalf("%v after %d in a text of %d bytes", s, at, len(text))
				}
				at = s.End
			}
		}
	})
}
