package markdown

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// describe writes the sections of a document, one per line:
// level "trail" #anchor start-line:own-end-line:end-line.
func describe(d *Document) string {
	var b strings.Builder
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "%d %s #%s %d:%d:%d\n", s.Level, strings.Join(s.Trail, " > "), s.Anchor, s.StartLine, s.OwnEndLine, s.EndLine)
	}
	return b.String()
}

// sectionCases are documents with the results of describe, whose lines are joined by " | ".
var sectionCases = []struct {
	name, path, src, want string
}{
	{"empty", "a.md", "", ""},
	{"blank", "a.md", "\n \n", "0  # 1:1:1"},
	{"text only", "a.md", "hello", "0  # 1:1:1"},
	{"text with blank lines", "a.md", "\n\nhello\nyou\n\n\n", "0  # 3:4:4"},
	{"one heading", "a.md", "# A", "1 A #a 1:1:1"},
	{"no final newline", "a.md", "# A\ntext", "1 A #a 1:2:2"},
	{"preamble", "a.md", "intro\n\n# A\n", "0  # 1:1:1 | 1 A #a 3:3:3"},
	{"blank preamble", "a.md", "\n\n# A\n", "1 A #a 3:3:3"},
	{"nesting", "a.md", "# A\na\n## B\nb\n\n### C\nc\n## D\nd\n# E\n",
		"1 A #a 1:2:9 | 2 A > B #b 3:4:7 | 3 A > B > C #c 6:7:7 | 2 A > D #d 8:9:9 | 1 E #e 10:10:10"},
	{"levels skipped", "a.md", "### A\n# B\n#### C\n## D\n", "3 A #a 1:1:1 | 1 B #b 2:2:4 | 4 B > C #c 3:3:3 | 2 B > D #d 4:4:4"},
	{"setext", "a.md", "A\n=\ntext\n\nB\n---\nmore\n", "1 A #a 1:3:7 | 2 A > B #b 5:7:7"},
	{"setext of two lines", "a.md", "A\nb\n===\n", "1 A b #ab 1:3:3"},
	{"rule is no setext", "a.md", "text\n\n---\nmore\n", "0  # 1:4:4"},
	{"setext after list", "a.md", "- a\n---\nb\n", "0  # 1:3:3"},
	{"setext after definition", "a.md", "[a]: b\nT\n===\n", "0  # 1:1:1 | 1 T #t 2:3:3"},
	{"table is no setext", "a.md", "| a | b |\n|---|---|\n", "0  # 1:2:2"},
	{"fence", "a.md", "# A\n```sh\n# not\n```\n## B\n", "1 A #a 1:4:5 | 2 A > B #b 5:5:5"},
	{"tilde fence", "a.md", "~~~\n# not\n```\n# not\n~~~\n# A\n", "0  # 1:5:5 | 1 A #a 6:6:6"},
	{"longer fence", "a.md", "````\n```\n# not\n```\n````\n# A", "0  # 1:5:5 | 1 A #a 6:6:6"},
	{"unclosed fence", "a.md", "# A\n```\n# not\n", "1 A #a 1:3:3"},
	{"fence in list", "a.md", "# A\n- x\n  ```\n  # not\n  ```\n# B\n", "1 A #a 1:5:5 | 1 B #b 6:6:6"},
	{"setext in fence", "a.md", "# A\n```\nnot\n===\n```\n", "1 A #a 1:5:5"},
	{"indented code", "a.md", "# A\n\n    # not\n", "1 A #a 1:3:3"},
	{"tab-indented code", "a.md", "# A\n\n\t# not\n", "1 A #a 1:3:3"},
	{"indented heading", "a.md", "   # A\n", "1 A #a 1:1:1"},
	{"html block", "a.md", "<div>\n# not\n</div>\n\n# A\n", "0  # 1:3:3 | 1 A #a 5:5:5"},
	{"html comment", "a.md", "<!--\n# not\n\n# not\n-->\n# A\n", "0  # 1:5:5 | 1 A #a 6:6:6"},
	{"html headings", "a.md", "<h1 align=\"center\">\n  <img src=\"a.png\" alt=\"Logo\"><br>Orbit &amp; co\n</h1>\n\ntext <h2>not</h2>\n\n```\n<h2>not</h2>\n```\n<!--\n<h2>not</h2> -->\n\n<h2><img alt=\"Use it\"></h2>\n\n# A\n<h2>open\n",
		"1 Orbit & co #orbit--co 1:11:13 | 2 Orbit & co > Use it #use-it 13:13:13 | 1 A #a 15:16:16"},
	{"hash without blank", "a.md", "#tag\n\n# A\n", "0  # 1:1:1 | 1 A #a 3:3:3"},
	{"seven hashes", "a.md", "####### A\n", "0  # 1:1:1"},
	{"closing hashes", "a.md", "## A ##\n### B #\n", "2 A #a 1:1:2 | 3 A > B #b 2:2:2"},
	{"tab after hashes", "a.md", "#\tA\n", "1 A #a 1:1:1"},
	{"escaped hash", "a.md", "\\# A\n", "0  # 1:1:1"},
	{"empty headings", "a.md", "#\n##\n# \n", "1  #section 1:1:2 | 2  >  #section-1 2:2:2 | 1  #section-2 3:3:3"},
	{"heading ends paragraph", "a.md", "text\n# A\nmore\n", "0  # 1:1:1 | 1 A #a 2:3:3"},
	{"repeats", "a.md", "# Foo\n# Foo\n# foo\n", "1 Foo #foo 1:1:1 | 1 Foo #foo-1 2:2:2 | 1 foo #foo-2 3:3:3"},
	{"repeat taken", "a.md", "# Foo\n# Foo 1\n# Foo\n", "1 Foo #foo 1:1:1 | 1 Foo 1 #foo-1 2:2:2 | 1 Foo #foo-2 3:3:3"},
	{"punctuation only", "a.md", "# ???\n# !\n", "1 ??? #section 1:1:1 | 1 ! #section-1 2:2:2"},
	{"inline markup", "a.md", "# The *big* `code_x` [link](u) **b** ~~no~~\n", "1 The big code_x link b no #the-big-code_x-link-b-no 1:1:1"},
	{"reference link", "a.md", "# See [this][r]\n\n[r]: http://x\n", "1 See this #see-this 1:3:3"},
	{"raw html inline", "a.md", "# A <b>b</b> <a name=\"x\"></a>\n", "1 A b #a-b- 1:1:1"},
	{"entity and escape", "a.md", "# A &amp; B \\* C\n", "1 A & B * C #a--b--c 1:1:1"},
	{"autolink", "a.md", "# <https://x.y>\n", "1 https://x.y #httpsxy 1:1:1"},
	{"image", "a.md", "# ![Logo](l.png) Foo\n", "1 Logo Foo #-foo 1:1:1"},
	{"image only", "a.md", "# ![My Logo](l.png)\n", "1 My Logo #my-logo 1:1:1"},
	{"emoji", "a.md", "# 🚀 Go\n", "1 🚀 Go #-go 1:1:1"},
	{"custom id", "a.md", "## Before you begin {#prereq}\n", "2 Before you begin #prereq 1:1:1"},
	{"custom id with class", "a.md", "## A b {.x #y k=v} ##\n", "2 A b #y 1:1:1"},
	{"custom id on setext", "a.md", "A\n=== \n\nB {#c}\n---\n", "1 A #a 1:2:5 | 2 A > B #c 4:5:5"},
	{"custom id with a dot", "a.md", "# A {#v1.2}\n# B {#v1.2}\n", "1 A #v1.2 1:1:1 | 1 B #v1.2-1 2:2:2"},
	{"custom id repeated", "a.md", "# A {#x}\n# X\n# B {#x}\n", "1 A #x 1:1:1 | 1 X #x-1 2:2:2 | 1 B #x-2 3:3:3"},
	{"braces are no id", "a.md", "# A {x}\n# `{#y}`\n", "1 A {x} #a-x 1:1:1 | 1 {#y} #y 2:2:2"},
	{"heading in list", "a.md", "# A\n- ## B\n\n  b\n\nafter\n# C\n", "1 A #a 1:6:6 | 1 C #c 7:7:7"},
	{"heading in nested list", "a.md", "# A\n1. x\n   - ### B\n     y\n", "1 A #a 1:4:4"},
	{"heading in quote", "a.md", "# A\n> ## B\n> b\n\nafter\n", "1 A #a 1:5:5"},
	{"nested heading takes a slug", "a.md", "> # A\n\n# A\n", "0  # 1:1:1 | 1 A #a-1 3:3:3"},
	{"front matter", "a.md", "---\ntitle: T\n---\n# A\n", "1 A #a 4:4:4"},
	{"front matter and text", "a.md", "---\ntitle: T\n---\n\ntext\n# A\n", "0  # 5:5:5 | 1 A #a 6:6:6"},
	{"front matter only", "a.md", "---\ntitle: T\n---\n", "0  # 3:3:3"},
	{"front matter closed by dots", "a.md", "---\ntitle: T\n...\n# A\n", "1 A #a 4:4:4"},
	{"front matter with hash", "a.md", "---\n# comment\ntitle: T\n---\n# A\n", "1 A #a 5:5:5"},
	{"unclosed front matter", "a.md", "---\ntitle: T\n# A\n", "0  # 1:2:2 | 1 A #a 3:3:3"},
	{"broken front matter", "a.md", "---\ntitle: [\n---\n# A\n", "0  # 1:3:3 | 1 A #a 4:4:4"},
	{"rules are no front matter", "a.md", "---\nJust text\n\n---\n# A\n", "0  # 1:4:4 | 1 A #a 5:5:5"},
	{"crlf", "a.md", "# A\r\ntext\r\n\r\nB\r\n---\r\n```\r\n# not\r\n```\r\n", "1 A #a 1:2:8 | 2 A > B #b 4:8:8"},
	{"crlf front matter", "a.md", "---\r\ntitle: T\r\n---\r\n# A\r\n", "1 A #a 4:4:4"},
	{"cr only", "a.md", "# A\rtext\r\r## B\r", "1 A #a 1:2:4 | 2 A > B #b 4:4:4"},
	{"mixed ends", "a.md", "# A\r\n\n## B\r\r## C", "1 A #a 1:1:5 | 2 A > B #b 3:3:3 | 2 A > C #c 5:5:5"},
	{"bom", "a.md", "\ufeff# A\n", "1 A #a 1:1:1"},
	{"bom and front matter", "a.md", "\ufeff---\ntitle: T\n---\n# A\n", "1 A #a 4:4:4"},
	{"bom and crlf", "a.md", "\ufeffintro\r\n# A\r\n", "0  # 1:1:1 | 1 A #a 2:2:2"},
	{"cjk", "a.md", "# 安装 指南\n## 日本語、テスト。\n## 한국어\n",
		"1 安装 指南 #安装-指南 1:1:3 | 2 安装 指南 > 日本語、テスト。 #日本語テスト 2:2:2 | 2 安装 指南 > 한국어 #한국어 3:3:3"},
	{"umlaut and greek", "a.md", "# Überblick\n# ΟΔΟΣ\n", "1 Überblick #überblick 1:1:1 | 1 ΟΔΟΣ #οδος 2:2:2"},
	{"no-break space", "a.md", "# A\u00a0B\n", "1 A B #ab 1:1:1"},
	{"long heading", "a.md", "# " + strings.Repeat("a ", 1000) + "\n", "1 " + strings.Repeat("a ", 127) + "a #" + strings.Repeat("a-", 127) + "a 1:1:1"},
	{"many quotes", "a.md", strings.Repeat(">", 5000) + "\n\n# A\n", "0  # 1:1:1 | 1 A #a 3:3:3"},
	{"markdown extension", "a.MARKDOWN", "# A\n", "1 A #a 1:1:1"},
	{"mdx", "a.mdx", "import X from 'x'\nexport const a = `\n# not\n`\n\n<X>\n\n# A\n\n</X>\n", "0  # 1:6:6 | 1 A #a 8:10:10"},
	{"mdx prose", "a.mdx", "Use it to\nimport things\n\n# A\n", "0  # 1:2:2 | 1 A #a 4:4:4"},
	{"txt", "a.txt", "# A\nb\n===\n", "0  # 1:3:3"},
	{"rst", "a.rst", "Title\n=====\n\ntext\n\nSub\n---\n\nSub 2\n-----\n\nNext\n====\n",
		"1 Title #title 1:4:10 | 2 Title > Sub #sub 6:7:7 | 2 Title > Sub 2 #sub-2 9:10:10 | 1 Next #next 12:13:13"},
	{"rst overline", "a.rst", "=======\n Title\n=======\n\nA\n==\n\nB\n~~~~\n",
		"1 Title #title 1:3:9 | 2 Title > A #a 5:6:9 | 3 Title > A > B #b 8:9:9"},
	{"rst no title", "a.rst", "text\n\n----\n\nmore\ntext\n----\n", "0  # 1:7:7"},
	{"rst short underline", "a.rst", "Long title\n==\n\nA\n==\n", "0  # 1:2:2 | 1 A #a 4:5:5"},
	{"rst literal", "a.rst", "A\n==\n\n::\n\n  B\n  ==\n", "1 A #a 1:7:7"},
	{"rst roles", "a.rst", ":func:`run <x.run>` and ``code`` *it*\n=====================================\n",
		"1 run and code it #run-and-code-it 1:2:2"},
	{"go", "a.go", "// Package a.\npackage a\n\nimport \"fmt\"\n\n// Run runs.\nfunc Run() { fmt.Println() }\n\ntype T struct{}\n\nfunc (t *T) Run() {}\n",
		"0  # 1:4:4 | 1 func Run() #Run 6:7:7 | 1 type T #T 9:9:9 | 1 type T > func (t *T) Run() #Run-1 11:11:11"},
	{"broken go", "a.go", "package a\n\nfunc A() {}\n\nfunc B( {\n", "0  # 1:1:1 | 1 func A() #A 3:3:3 | 1 func B( #B 5:5:5"},
	{"python", "a.py", "import x\n\n# helper\n@dec\ndef f(a):\n    def g(): pass\n\nclass C:\n    def m(self): pass\nasync def h(): pass\n",
		"0  # 1:1:1 | 1 def f(a) #f 3:6:6 | 1 class C #C 8:9:9 | 1 async def h() #h 10:10:10"},
	{"typescript", "a.ts", "import a from 'a'\n/**\n * Doc.\n */\nexport async function verifyToken(t: string) {\n  if (t) {}\n}\nexport const x = 1\nexport default class K {}\ninterface I {}\n",
		"0  # 1:1:1 | 1 export async function verifyToken(t: string) #verifyToken 2:7:7 | 1 export const x #x 8:8:8 | 1 export default class K #K 9:9:9 | 1 interface I #I 10:10:10"},
	{"rust", "a.rs", "use x;\n\n/// Doc\n#[derive(Debug)]\npub struct S;\nimpl Display for S {\n    fn fmt() {}\n}\npub(crate) async fn go() {}\nconst N: u8 = 1;\nmacro_rules! m { }\n",
		"0  # 1:1:1 | 1 pub struct S #S 3:5:5 | 1 impl Display for S #S-1 6:8:8 | 1 pub(crate) async fn go() #go 9:9:9 | 1 const N: u8 #N 10:10:10 | 1 macro_rules! m #m 11:11:11"},
	{"java", "a.java", "package a;\n\n@Deprecated\npublic final class A {\n  void m() {}\n}\ninterface B {}\n", "0  # 1:1:1 | 1 public final class A #A 3:6:6 | 1 interface B #B 7:7:7"},
	{"c", "a.c", "#include <x.h>\n#define MAX(a, b) a\n\n/* Adds. */\nstatic int add(int a, int b)\n{\n    return a;\n}\nint proto(void);\nstruct s {\n  int x;\n};\n",
		"0  # 1:1:1 | 1 #define MAX(a, b) a #MAX 2:2:2 | 1 static int add(int a, int b) #add 4:8:8 | 1 int proto(void); #int-protovoid 9:9:9 | 1 struct s #s 10:12:12"},
	{"class", "a.py", "import x\n\nclass C(B):\n    # Level.\n    @property\n    def level(self):\n        return 1\n\n    LIMIT = 3\n    SIZE = 4\n\n    # Stops.\n\n    def stop(self):\n        pass\n\nif __name__ == '__main__':\n    main()\n",
		"0  # 1:1:1 | 1 class C(B) #C 3:3:15 | 2 class C(B) > def level(self) #level 4:7:7 | 2 class C(B) > LIMIT = 3 #limit--3 9:10:10 | 2 class C(B) > def stop(self) #stop 12:15:15 | 1 if __name__ == '__main__': #if-__name__--__main__ 17:18:18"},
	{"brackets belong to no method", "a.java", "class A {\n  void m() {\n  }\n\n  void n() {\n  }\n\n}\n\nclass B {\n}\n",
		"1 class A #A 1:1:8 | 2 class A > void m() #m 2:3:3 | 2 class A > void n() #n 5:6:6 | 1 class B #B 10:11:11"},
	{"cpp", "a.hpp", "namespace n {\n}\nclass A final : public B {\n};\nvoid A::run(int x) {\n}\n", "1 namespace n #n 1:2:2 | 1 class A final : public B #A 3:4:4 | 1 class A final : public B > void A::run(int x) #run 5:6:6"},
}

// onlyClosing reports whether text is lines that only close symbols.
func onlyClosing(text []byte) bool {
	for line := range bytes.Lines(text) {
		if lineKind(bytes.TrimSpace(line)) != closing {
			return false
		}
	}
	return true
}

func TestSections(t *testing.T) {
	for _, c := range sectionCases {
		d := Parse(c.path, []byte(c.src))
		want := strings.ReplaceAll(c.want, " | ", "\n")
		if want != "" {
			want += "\n"
		}
		if diff := cmp.Diff(want, describe(d)); diff != "" {
			t.Errorf("%s: sections of %q (-want +got):\n%s", c.name, c.src[:min(200, len(c.src))], diff)
		}
		checkInvariants(t, d, []byte(c.src))
	}
}

// checkInvariants checks properties that hold for any document.
func checkInvariants(t *testing.T, d *Document, src []byte) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s %q: %s", d.Path, src[:min(len(src), 300)], fmt.Sprintf(format, args...))
	}
	if d.Title == "" {
		fail("no title")
	}
	if len(src) > 0 && len(d.Sections) == 0 {
		fail("no sections")
	}
	at := d.FrontMatter.End
	if d.FrontMatter.Err != nil {
		at = d.FrontMatter.Start
	}
	anchors := map[string]bool{}
	for i, s := range d.Sections {
		switch {
		case s.Start < at || s.OwnEnd < s.Start || s.End < s.OwnEnd || s.End > len(src):
			fail("section %d: offsets %d %d %d after %d of %d", i, s.Start, s.OwnEnd, s.End, at, len(src))
			return
		case i == 0 && len(strings.TrimSpace(strings.TrimPrefix(string(src[at:s.Start]), bom))) > 0:
			fail("text %q before the first section", src[at:s.Start])
		case i > 0 && s.Start != at && !(FormatOf(d.Path) == source && s.Start > at && onlyClosing(src[at:s.Start])):
			fail("gap between %d and %d", at, s.Start)
		case s.StartLine < 1 || s.OwnEndLine < s.StartLine || s.EndLine < s.OwnEndLine:
			fail("section %d: lines %d %d %d", i, s.StartLine, s.OwnEndLine, s.EndLine)
		case (s.Level == 0) != (s.Anchor == "") || s.Level == 0 && i > 0:
			fail("section %d: level %d with anchor %q", i, s.Level, s.Anchor)
		case anchors[s.Anchor]:
			fail("anchor %q twice", s.Anchor)
		case strings.ContainsAny(s.Anchor, "# \t\n\r"):
			fail("anchor %q", s.Anchor)
		case s.Parent >= i || s.Parent >= 0 && d.Sections[s.Parent].Level >= s.Level:
			fail("section %d: parent %d", i, s.Parent)
		case s.Parent >= 0 && s.End > d.Sections[s.Parent].End:
			fail("section %d ends behind its parent", i)
		case s.Level > 0 && (len(s.Trail) == 0 || s.Trail[len(s.Trail)-1] != s.Heading):
			fail("section %d: trail %q", i, s.Trail)
		}
		if s.Level > 0 {
			if got, ok := Resolve(d, s.Anchor); !ok || got != i {
				fail("anchor %q resolves to %d, %v, want %d", s.Anchor, got, ok, i)
			}
		}
		anchors[s.Anchor] = true
		at = s.OwnEnd
	}
	if len(d.Sections) > 0 && at != len(src) && !(FormatOf(d.Path) == source && at < len(src) && onlyClosing(src[at:])) {
		fail("sections end at %d of %d", at, len(src))
	}
	for name, i := range d.Aliases {
		if name == "" || i < 0 || i >= len(d.Sections) {
			fail("alias %q of section %d", name, i)
		}
	}
}
