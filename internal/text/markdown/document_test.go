package markdown

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

func TestFrontMatter(t *testing.T) {
	for _, c := range []struct {
		src, title string
		labels     Labels
		broken     bool
	}{
		{"---\ntitle: A b\ntags: [x, Y z]\npriority: high\nassignee: me\nstatus: active\n---\n# H\n", "A b",
			Labels{Found: true, Tags: []string{"x", "Y z"}, Priority: "high", Assignee: "me", Status: "active"}, false},
		{"---\ntags: x, y\n---\n# H\n", "H", Labels{Found: true, Tags: []string{"x", "y"}}, false},
		{"---\ntags: x\ntitle: 2024\n---\n", "2024", Labels{Found: true, Tags: []string{"x"}}, false},
		{"---\r\ntitle: A\r\nassignee: \"@dev\"\r\n---\r\n", "A", Labels{Found: true, Assignee: "@dev"}, false},
		{"---\n---\n# H\n", "H", Labels{Found: true}, false},
		{"# H\n", "H", Labels{}, false},
		{"text\n", "doc.md", Labels{}, false},
		{"---\ntitle: 'x\nassignee: @dev\n---\nbody\n", "doc.md", Labels{}, true},
		{"---\na: &a [1]\nb: *a\n---\n# H\n", "H", Labels{}, true},
		{"---\ntitle: " + strings.Repeat("x y\n  ", 50<<10) + "\n---\n# H\n", "H", Labels{}, true},
		{"---\na: " + strings.Repeat("[", 100) + "\n---\n# H\n", "H", Labels{}, true},
		{"---\na: " + strings.Repeat("x", 65<<10) + "\n---\n# H\n", "H", Labels{Found: true}, false},
		{"---\na: x\na: y\n---\n# H\n", "H", Labels{}, true},
		{"---\nNo mapping: [\n---\n# H\n", "No mapping: [", Labels{}, false},
		{"---\n- a\n- b\n---\n# H\n", "H", Labels{}, false},
	} {
		d := Parse("doc.md", []byte(c.src))
		src := c.src[:min(80, len(c.src))]
		if d.Title != c.title {
			t.Errorf("title of %q: got %q, want %q", src, d.Title, c.title)
		}
		if diff := cmp.Diff(c.labels, d.Labels); diff != "" {
			t.Errorf("labels of %q (-want +got):\n%s", src, diff)
		}
		if (d.FrontMatter.Err != nil) != c.broken {
			t.Errorf("front matter of %q: got error %v, want one: %v", src, d.FrontMatter.Err, c.broken)
		}
		checkInvariants(t, d, []byte(c.src))
	}
}

// Nested YAML aliases would expand to 10^9 values.
func TestFrontMatterBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 8 {
		b.WriteString(strings.NewReplacer("N", string(rune('0'+i)), "M", string(rune('1'+i))).Replace(
			"aM: &aM [*aN,*aN,*aN,*aN,*aN,*aN,*aN,*aN,*aN,*aN]\n"))
	}
	b.WriteString("---\n# H\n")
	if d := Parse("a.md", []byte(b.String())); d.FrontMatter.Err == nil || d.Title != "H" {
		t.Errorf("got error %v and title %q, want an error and H", d.FrontMatter.Err, d.Title)
	}
}

// A section's hash is that of the text that read_doc returns.
func TestHashes(t *testing.T) {
	src := "intro\r\n\r\n# A\r\n\r\na\r\n## B\r\n  b  \r\n\r\n# C\r\n\r\n"
	d := Parse("a.md", []byte(src))
	want := []string{"intro", "# A\r\n\r\na\r\n## B\r\n  b  ", "## B\r\n  b  ", "# C"}
	if len(d.Sections) != len(want) {
		t.Fatalf("got %d sections, want %d", len(d.Sections), len(want))
	}
	for i, s := range d.Sections {
		if got := string(TrimBlankLines([]byte(src[s.Start:s.End]))); got != want[i] {
			t.Errorf("section %d: got %q, want %q", i, got, want[i])
		}
		sum := sha256.Sum256([]byte(want[i]))
		if s.Hash != hex.EncodeToString(sum[:]) {
			t.Errorf("section %d: hash %s is not of %q", i, s.Hash, want[i])
		}
	}
	if got := string(TrimBlankLines([]byte(" \n\t\n  a \n\n b\n \r\n"))); got != "  a \n\n b" {
		t.Errorf("TrimBlankLines: got %q", got)
	}
	for _, s := range []string{"", " ", "\n", "\r\n \t\r\n"} {
		if got := TrimBlankLines([]byte(s)); len(got) != 0 {
			t.Errorf("TrimBlankLines(%q): got %q, want nothing", s, got)
		}
	}
}

func TestSlug(t *testing.T) {
	for _, c := range []struct{ in, github, cue string }{
		{"API & Auth", "api--auth", "api--auth"},
		{"C++ Guide", "c-guide", "c-guide"},
		{"2.1 Setup", "21-setup", "21-setup"},
		{"foo_bar Baz", "foo_bar-baz", "foobar-baz"},
		{"Überblick", "überblick", "überblick"},
		{"Привет non-latin 你好", "привет-non-latin-你好", "привет-non-latin-你好"},
		{"😄 emoji", "-emoji", "-emoji"},
		{"e\u0301te\u0301", "e\u0301te\u0301", "ete"},
		{"Ⅷ ² ½", "ⅷ--", "ⅷ-²-½"},
		{"a\tb\u00a0c", "abc", "abc"},
		{"İΣΑΣ", "i\u0307σας", "iσας"},
		{"!?", "", ""},
	} {
		if got := Slug(c.in); got != c.github {
			t.Errorf("Slug(%q) = %q, want %q", c.in, got, c.github)
		}
		if got := CueDeckSlug(c.in); got != c.cue {
			t.Errorf("CueDeckSlug(%q) = %q, want %q", c.in, got, c.cue)
		}
	}
}

// TestResolveSpellings: the name of a symbol finds it in the spelling of any language.
func TestResolveSpellings(t *testing.T) {
	d := Parse("auth.rs", []byte("pub fn verify_token(t: &str) -> bool {\n    true\n}\n"))
	for _, anchor := range []string{"verify_token", "VerifyToken", "verifyToken", "verify token", "#VERIFY_TOKEN"} {
		if i, ok := Resolve(d, anchor); !ok || d.Sections[i].Anchor != "verify_token" {
			t.Errorf("Resolve(%q) = %d, %v", anchor, i, ok)
		}
	}
	if _, ok := Resolve(d, "_"); ok {
		t.Error("_ has no section")
	}
}

func TestResolve(t *testing.T) {
	src := strings.Join([]string{
		"before <a id=\"top\"></a>", // 0
		"# Login Flow",              // 1
		"# foo_bar Baz",             // 2
		"<a name=\"old\"></a>", "",
		"# Setup",     // 3
		"# Setup",     // 4
		"# setup",     // 5
		"# X {#v1.2}", // 6
		"text <span id='mid'>x</span>", "",
		"- ## In a list", "",
		"`<a id=\"code\">`", "```", "<a id=\"fence\">", "```", "<!-- <a id=\"comment\"> -->",
		"# Überblick",               // 7
		"## <a name=\"h\"></a>Head", // 8
		"<h2 ID=Html>t</h2>", "",    // 9
		"# foo_bar Baz", // 10
	}, "\n")
	d := Parse("a.md", []byte(src))
	for _, c := range []struct {
		anchor string
		want   int // -1: none
	}{
		{"Login Flow", 1}, {"login flow", 1}, {"login-flow", 1}, {"#login-flow", 1}, {" #Login Flow ", 1}, {"LOGIN-FLOW", 1},
		{"foo_bar-baz", 2}, {"foobar-baz", 2}, {"foo_bar Baz", 2}, {"foo_bar-baz-1", 10}, {"foobar-baz-1", 10},
		{"Setup", 3}, {"setup", 3}, {"setup-1", 4}, {"#setup-2", 5}, {"SETUP", 3},
		{"v12", 6}, {"v1.2", 6}, {"X", 6}, {"x", 6},
		{"top", 0}, {"old", 3}, {"mid", 6}, {"in-a-list", 6}, {"h", 8}, {"Html", 9}, {"t", 9},
		{"%C3%9Cberblick", 7}, {"user-content-login-flow", 1}, {"überblick", 7},
		{"code", -1}, {"fence", -1}, {"comment", -1}, {"", -1}, {"#", -1}, {"nope", -1}, {"setup-3", -1}, {"%zz", -1}, {"!", -1},
	} {
		got, ok := Resolve(d, c.anchor)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("Resolve(%q) = %d, want %d", c.anchor, got, c.want)
		}
	}
	if got := d.At(strings.Index(src, "Überblick")); got != 7 {
		t.Errorf("At inside of section 7: got %d", got)
	}
	if got := d.At(len(src)); got != -1 {
		t.Errorf("At the end: got %d, want -1", got)
	}
	rst := Parse("a.rst", []byte(".. _first:\n\nTitle\n=====\n\n.. _second:\n\ntext\n"))
	for name, want := range map[string]int{"first": 1, "second": 1, "title": 1} {
		if got, ok := Resolve(rst, name); !ok || got != want {
			t.Errorf("rst: Resolve(%q) = %d, %v, want %d", name, got, ok, want)
		}
	}
	code := Parse("a.go", []byte("package a\n\nfunc (s *Server[K]) Verify() {}\n\nconst (\n\tA = 1\n\tB = 2\n)\n"))
	for name, want := range map[string]int{"Verify": 1, "Server.Verify": 1, "A": 2, "B": 2} {
		if got, ok := Resolve(code, name); !ok || got != want {
			t.Errorf("go: Resolve(%q) = %d, %v, want %d", name, got, ok, want)
		}
	}
}

func TestNearest(t *testing.T) {
	paths := []string{"docs/auth.md", "docs/author.md", "guide/setup.md", "README.md", "docs/日本語.md"}
	for _, c := range []struct {
		want string
		n    int
		got  []string
	}{
		{"docs/auht.md", 1, []string{"docs/auth.md"}},
		{"auth.md", 1, []string{"docs/auth.md"}},
		{"docs/auth.md", 2, []string{"docs/auth.md", "docs/author.md"}},
		{"doc/setup.md", 1, []string{"guide/setup.md"}},
		{"readme", 3, []string{"README.md"}},
		{"docs/日本悟.md", 1, []string{"docs/日本語.md"}},
		{"entirely-else", 3, []string{}},
		{"", 3, []string{}},
	} {
		if diff := cmp.Diff(c.got, Nearest(paths, c.want, c.n)); diff != "" {
			t.Errorf("Nearest(%q) (-want +got):\n%s", c.want, diff)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"", "abc", 3}, {"flaw", "lawn", 2}, {"a", "a", 0}} {
		if got := levenshtein([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("levenshtein(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestLinks(t *testing.T) {
	src := strings.Join([]string{
		"---", "title: \"[no](no)\"", "---",
		"[a](b.md#x \"t\") ![i](p (1).png) ![j](<p q.png>)",
		"`[no](no)` [[Wiki|text]] [[other]] [x] (no)",
		"```", "[no](no)", "```",
		"", "    [no](no)", "",
		"[ref]: target.md 'title'", "[^1]: note",
		"[![badge](b.svg)](link.md)", "\\[no](no)",
		"[over",
		"lines](o.md)",
	}, "\r\n")
	type short struct {
		Target string
		Line   int
		Wiki   bool
	}
	var got []short
	for _, l := range Links([]byte(src)) {
		got = append(got, short{l.Raw, l.Line, l.Wiki})
		if c := src[l.Start]; c != '[' && c != '!' {
			t.Errorf("link %q starts at %q", l.Raw, c)
		}
	}
	want := []short{
		{"b.md#x", 4, false}, {"p q.png", 4, false},
		{"Wiki", 5, true}, {"other", 5, true},
		{"target.md", 12, false},
		{"link.md", 14, false}, {"b.svg", 14, false},
		{"o.md", 17, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// Golden vector 35 and its surroundings.
func TestReferences(t *testing.T) {
	src := "See @/a.md, @/b#s. (@#local) x@y.z @user\n```\n@/no.md\n```\n" +
		"foo@/no.md é@/no @/a.md `@/code.md` @/../../x.md! @/d/e.MD#a/b; →@/f @relative.md @/ @#\n"
	type short struct {
		Raw, Path, Anchor string
		Line              int
	}
	var got []short
	for _, r := range References([]byte(src)) {
		got = append(got, short{r.Raw, r.Path, r.Anchor, r.Line})
	}
	want := []short{
		{"@/a.md", "a.md", "", 1}, {"@/b#s", "b.md", "s", 1}, {"@#local", "", "local", 1},
		{"@/code.md", "code.md", "", 5}, {"@/../../x.md", "x.md", "", 5}, {"@/d/e.MD#a/b", "d/e.MD", "a/b", 5}, {"@/f", "f.md", "", 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestFingerprint(t *testing.T) {
	if got := Fingerprint([]byte(" *** \n")); got != 0 {
		t.Errorf("no words: got %x, want 0", got)
	}
	// Three words are one shingle, whose hash the majority is. By hand: FNV-1a of
	// each lower-cased word, mixed, then rotated by 0, 21 and 42 bits, xored and mixed.
	fnv := func(s string) uint64 {
		h := uint64(fnvOffset)
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * fnvPrime
		}
		return mix(h)
	}
	want := mix(fnv("one") ^ bits.RotateLeft64(fnv("two"), 21) ^ bits.RotateLeft64(fnv("three"), 42))
	if got := Fingerprint([]byte("# One, *TWO*\n`three`")); got != want {
		t.Errorf("three words: got %x, want %x", got, want)
	}
	// FNV-1a of "a" is published as af63dc4c8601ec8c.
	if got, want := fnv("a"), mix(0xaf63dc4c8601ec8c); got != want {
		t.Errorf("FNV-1a of a, mixed: got %x, want %x", got, want)
	}
	// Five shingles voting bit by bit, the slow way.
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta")
	var votes [64]int
	for i := 2; i < len(words); i++ {
		h := mix(fnv(words[i-2]) ^ bits.RotateLeft64(fnv(words[i-1]), 21) ^ bits.RotateLeft64(fnv(words[i]), 42))
		for b := range votes {
			votes[b] += int(h>>b&1)*2 - 1
		}
	}
	want = 0
	for b, v := range votes {
		if v > 0 {
			want |= 1 << b
		}
	}
	if got := Fingerprint([]byte(strings.Join(words, " "))); got != want {
		t.Errorf("seven words: got %x, want %x", got, want)
	}

	doc, err := os.ReadFile("testdata/page.md")
	if err != nil {
		t.Fatal(err)
	}
	original := Fingerprint(doc)
	for _, c := range []struct {
		name string
		text string
		max  int
		min  int
	}{
		{"same words in other markup", strings.NewReplacer("`", "", "# ", "## ", "\n", "\r\n").Replace(string(doc)), 0, 0},
		{"another version number", strings.ReplaceAll(string(doc), "1.30", "1.31"), 3, 0},
		{"another page", string(bytes.Repeat([]byte("Grate the cheese over the onions and bake for ten minutes in a hot oven until brown. "), 8)), 64, 20},
	} {
		if n := bits.OnesCount64(original ^ Fingerprint([]byte(c.text))); n > c.max || n < c.min {
			t.Errorf("%s: %d bits differ, want %d to %d", c.name, n, c.min, c.max)
		}
	}
}

func TestLinkShare(t *testing.T) {
	for in, want := range map[string]float64{
		"[Keywords](k.md)\\\n[Operators](o.md)\n": 1,
		"* [`for`](f.md)\n* [while][w]\n":         1,
		"[[Home]]\n[[Tasks|open tasks]]\n":        1,
		"See [abc](a.md).":                        3. / 8,
		"No link, but a[0] and [brackets].":       0,
		"```c\n[Keywords](k.md)\n```\nabcdefgh\n": 0,
		"": 0,
		"![Picture of a cat](c.png) [docs](d.md) abc": 20. / 24,
	} {
		if got := LinkShare("a.md", []byte(in), 0); math.Abs(got-want) > 0.2*want {
			t.Errorf("LinkShare(%q) = %.3f, want about %.3f", in, got, want)
		}
	}
	if got := LinkShare("a.md", []byte("## See also\n\n[abc](a.md)\n"), len("See also")); got < 0.7 {
		t.Errorf("below a heading: %.3f, want nearly 1", got)
	}
	if got := LinkShare("a.txt", []byte("[abc](a.md)"), 0); got != 0 {
		t.Errorf("in a text file: %.3f, want 0", got)
	}
}

func TestPlainText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"# A *b* `c_d` __e__\n\ntext  more\n", "A b c_d e\ntext more"},
		{"A\n===\n\nB\n---\nb", "A\nB\nb"},
		{"[a b](http://x.y/z_(1) \"t\") c[d][e] [f] [g]()", "a b cd f g"},
		{"![alt text](x.png) <img src=x alt=\"An image\"> y", "alt text An image y"},
		{"a <b>c</b>d<br/>e <!-- no\n\nno --> f", "a cd e f"},
		{"x < y & z &amp; &lt;tag&gt; &nbsp;q &bogus; AT&T", "x < y & z & <tag> q &bogus; AT&T"},
		{"| a | b |\n|---|:-:|\n| `c|d` | e |", "a b\nc|d e"},
		{"```go\nx := *p // <a>\n\n  y\n```\nafter", "go\nx := *p // <a>\n  y\nafter"},
		{"~~~\n```\n~~~\nz", "```\nz"},
		{"``` \nopen *x*", "open *x*"},
		{"- [ ] a\n* [x] b\n+ c\n1. d\n> > e", "a\nb\nc\n1. d\ne"},
		{"{{< glossary_tooltip text=\"pods\" term_id=\"pod\" >}} run {{< note >}}hi{{< /note >}}", "pods run hi"},
		{"a {{< glossary_tooltip term_id=\"pod\" >}}s", "a pod s"},
		{"## What's next {#whatsnext}", "What's next"},
		{"{% raw %}x{% endraw %} {y} {{ z }}", "x {y} {{ z }}"},
		{"2 * 3 * 4 snake_case _em_ ~~gone~~ ~tilde", "2 * 3 * 4 snake_case em gone ~tilde"},
		{"\\*not\\* \\[x\\] C:\\path", "*not* [x] C:\\path"},
		{"[label]: http://x.y \"title\"\ntext[^1]\n[^1]: note", "text\n: note"},
		{"<https://x.y/z> <me@x.y> <div class='a>b'>in</div>", "https://x.y/z me@x.y in"},
		{"<script>var x = 1 < 2;</script>text", "text"},
		{"line one\r\nline two\r\n\r\n日本語 *強調*", "line one\nline two\n日本語 強調"},
		{"[[Wiki|name]] a] b", "Wiki name a] b"},
		{"---\n***\n\nx", "x"},
		{"#tag # not", "#tag # not"},
		{"<T> generic List<String> 1<2", "generic List 1<2"},
		{"`open **x**", "open x"},
		{"<!-- open x", "open x"},
		{"a\\\nb", "a\nb"},
		{"1. ```sh\n   a | b\n   ```\n2. *c*", "1.\nsh\n   a | b\n2. c"},
		{"> ```{.python}\n> a[0]\n> ```\n> *c*", "python\n> a[0]\nc"},
		{"```a [b]``` c\n*d*", "a [b] c\nd"},
	} {
		if got := PlainText([]byte(c.in)); got != c.want {
			t.Errorf("PlainText(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
	}
	for _, c := range []struct{ name, fence, in, want string }{
		{"a.txt", "", "\n*a* <b>\n", "*a* <b>"},
		{"a.c", "", "int *p = a[0];\n", "int *p = a[0];"},
		{"a.mdx", "", "import A from 'a'\n\n<A x={1 > 0}>*b*</A>", "b"},
		{"a.md", "", "*b*", "b"},
		{"a.md", "```", "*b* [c]\n~~~\n```\n*d*", "*b* [c]\n~~~\nd"},
		{"a.md", "```", "```\n*d*", "d"},
		{"a.html", "~~~~", "*b* [c]\n~~~", "*b* [c]\n~~~"},
		{"a.txt", "```", "*b* [c]", "*b* [c]"},
	} {
		if got := Plain(c.name, c.fence, []byte(c.in)); got != c.want {
			t.Errorf("Plain(%q, %q, %q) = %q, want %q", c.name, c.fence, c.in, got, c.want)
		}
	}
}

// The block parser drops paragraphs before it parses their inline content. It must find
// the same headings as the full parser.
func TestBlocksAgainstWholeParser(t *testing.T) {
	whole := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
	compare := func(name string, src []byte) {
		t.Helper()
		norm := normalise(src, 0)
		type head struct{ Level, Start int }
		var want, got []head
		_ = ast.Walk(whole.Parse(text.NewReader(norm)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if h, ok := n.(*ast.Heading); ok && entering {
				want = append(want, head{h.Level, bytes.LastIndexByte(norm[:h.Pos()], '\n') + 1})
			}
			return ast.WalkContinue, nil
		})
		for _, h := range parseBlocks("", norm, 0).heads {
			if !bytes.HasPrefix(bytes.TrimLeft(norm[h.start:], " \t"), []byte("<")) { // not in HTML
				got = append(got, head{h.level, h.start})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: headings (-whole +blocks):\n%s", name, diff)
		}
	}
	for _, c := range sectionCases {
		if FormatOf(c.path) == Markdown && c.name != "many quotes" {
			compare(c.name, []byte(c.src))
		}
	}
	for name, src := range corpus(t, 1500) {
		compare(name, src)
	}
}

// corpus returns up to n Markdown files from the folder CAIRN_MARKDOWN, none if it is
// unset.
func corpus(t testing.TB, n int) map[string][]byte {
	dir := os.Getenv("CAIRN_MARKDOWN")
	files := map[string][]byte{}
	if dir == "" {
		return files
	}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || len(files) >= n || !strings.HasSuffix(p, ".md") {
			return err
		}
		src, err := os.ReadFile(p)
		files[p] = src
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRealTree(t *testing.T) {
	files := corpus(t, 1<<20)
	if len(files) == 0 {
		t.Skip("CAIRN_MARKDOWN names no folder with Markdown")
	}
	broken := 0
	for name, src := range files {
		d := Parse(name, src)
		checkInvariants(t, d, src)
		if d.FrontMatter.Err != nil {
			broken++
			t.Logf("%s: %v", name, d.FrontMatter.Err)
		}
	}
	t.Logf("%d files, %d with broken front matter", len(files), broken)
}

// Hostile texts take time in proportion to their length. Without the limits of the
// parsers, some of these would take minutes and exceed the test's time.
func TestHostile(t *testing.T) {
	const n = 64 << 10
	for _, s := range []string{
		">", "> ", "- ", "- a\n", "1. ", "* > ", "[", "# [", "[a](", "[[", "![", "`a``", "*a ", "<a ", "<a b=\"", "<!--", "<script>", "&", "&a",
		"[a]: b\n", "{{<", "{%", "{#", "@/", "@/a", "a\n", "|", "\\", "~~~\n", "<a id=x>", "<h1>\n", "<h1>a</h1>\n", "#\n", "# a\n", "\t", "\r", "---\n", "\x00", "\xff", "_a*",
	} {
		for _, prefix := range []string{"", "# "} {
			src := []byte(prefix + strings.Repeat(s, n/len(s)))
			for _, name := range []string{"a.md", "a.rst", "a.mdx", "a.cpp", "a.ts", "a.go"} {
				d := Parse(name, src)
				if len(d.Sections) == 0 {
					t.Errorf("%s of %q...: no sections", name, src[:20])
				}
			}
			PlainText(src)
			Links(src)
			References(src)
		}
		Parse("a.md", []byte("---\na: "+strings.Repeat(s, 8<<10/len(s))+"\n---\n"))
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range sectionCases {
		f.Add(c.path, []byte(c.src))
	}
	f.Fuzz(func(t *testing.T, name string, src []byte) {
		if len(src) > 4<<10 {
			return
		}
		name = "f" + strings.ToLower(filepath.Ext(filepath.Base(name)))
		d := Parse(name, src)
		checkInvariants(t, d, src)
		if got := Parse(name, src); !cmp.Equal(describe(d), describe(got)) {
			t.Errorf("two parses of %q differ", src)
		}
		Plain(name, "", src)
		for _, l := range Links(src) {
			if l.Start >= len(src) || l.Line < 1 {
				t.Errorf("link %+v in %q", l, src)
			}
		}
		for _, r := range References(src) {
			if r.Start >= len(src) || strings.HasPrefix(r.Path, "../") {
				t.Errorf("reference %+v in %q", r, src)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	benchmark(b, func(src []byte) { Parse("a.md", src) })
}

func BenchmarkPlainText(b *testing.B) {
	benchmark(b, func(src []byte) { PlainText(src) })
}

func BenchmarkFingerprint(b *testing.B) {
	benchmark(b, func(src []byte) { Fingerprint(src) })
}

// benchmark runs over the files of the corpus, or over one page without a corpus.
func benchmark(b *testing.B, run func([]byte)) {
	files := corpus(b, 1<<20)
	if len(files) == 0 {
		src, err := os.ReadFile("testdata/page.md")
		if err != nil {
			b.Fatal(err)
		}
		files["page"] = src
	}
	total := 0
	for _, src := range files {
		total += len(src)
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	for b.Loop() {
		for _, src := range files {
			run(src)
		}
	}
}

func TestHasAliasError(t *testing.T) {
	_, err := readWritten([]byte("a: &x 1\nb: *x\n"))
	if !errors.Is(err, errAlias) {
		t.Errorf("got %v, want a refusal of aliases", err)
	}
	if fields, err := readWritten([]byte("a: \"* &\"\n")); err != nil || fields["a"] != "* &" {
		t.Errorf("got %v, %v; an asterisk in a string is no alias", fields, err)
	}
}
