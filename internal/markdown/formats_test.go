package markdown

import (
	"strings"
	"testing"

	"cairn/internal/format"
	"cairn/internal/walk"
)

// TestOutlines compares the sections of text formats that are not Markdown, as
// describe gives them.
func TestOutlines(t *testing.T) {
	for _, c := range []struct{ name, path, src, want string }{
		{"asciidoc", "a.adoc", "= Guide\nA. Author\n\nintro\n\n== Install `cairn` ==\ntext\n\n----\n== not\n----\n\n[[opts]]\n=== Options\nx\n\n== Use\n",
			"1 Guide #guide 1:4:17 | 2 Guide > Install cairn #install-cairn 6:13:15 | 3 Guide > Install cairn > Options #options 14:15:15 | 2 Guide > Use #use 17:17:17"},
		{"asciidoc, titles underlined", "a.asciidoc", "git-add(1)\n==========\n\nNAME\n----\ngit-add - Add\n\n....\nNO\n--\n....\n\nOPTIONS\n-------\n",
			"1 git-add(1) #git-add1 1:2:14 | 2 git-add(1) > NAME #name 4:11:11 | 2 git-add(1) > OPTIONS #options 13:14:14"},
		{"asciidoc, a list is no title", "a.adoc", "some text\n----\nx\n----\n\n* == a\n. == b\n", "0  # 1:7:7"},
		{"org", "a.org", "#+TITLE: My notes\n#+AUTHOR: me\n\nintro\n* TODO [#A] Buy milk :home:shop:\n:PROPERTIES:\n:CUSTOM_ID: milk\n:END:\n** Which\n*bold* text\n* Done\n",
			"1 My notes #my-notes 1:4:11 | 2 My notes > Buy milk #buy-milk 5:8:10 | 3 My notes > Buy milk > Which #which 9:10:10 | 2 My notes > Done #done 11:11:11"},
		{"org without a title", "a.org", "* One\ntext\n** Two\n", "1 One #one 1:2:3 | 2 One > Two #two 3:3:3"},
		{"latex", "a.tex", "\\documentclass{article}\n\\begin{document}\n\\section{Intro~to \\emph{Go} \\& C}\\label{sec:intro}\ntext\n% \\section{no}\n\\begin{verbatim}\n\\section{no}\n\\end{verbatim}\n\\subsection*[short]{Long\n  title}\n\\section{Two}\n",
			"0  # 1:2:2 | 1 Intro to Go & C #intro-to-go--c 3:8:10 | 2 Intro to Go & C > Long title #long-title 9:10:10 | 1 Two #two 11:11:11"},
		{"latex with chapters", "b.tex", "\\chapter{A}\n\\section{B}\n", "1 A #a 1:1:2 | 2 A > B #b 2:2:2"},
		{"html", "a.html", "<h1>A</h1><p>text</p><h2 id=\"Two\">B</h2>text", "1 A #a 1:3:7 | 2 A > B #Two 5:7:7"},
	} {
		text, _, err := TextOf(c.path, []byte(c.src), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := strings.ReplaceAll(strings.TrimSpace(describe(Parse(c.path, text, nil))), "\n", " | ")
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestAnchorsOfFormats: the ids of other formats name their sections.
func TestAnchorsOfFormats(t *testing.T) {
	for _, c := range []struct{ path, src, anchor, heading string }{
		{"a.adoc", "= A\n\n[[opts]]\n== Options\n", "opts", "Options"},
		{"a.adoc", "= A\n\n[#opts.big]\n== Options\n", "opts", "Options"},
		{"a.org", "* A\n* B\n:PROPERTIES:\n:CUSTOM_ID: b-id\n:END:\n", "b-id", "B"},
		{"a.tex", "\\section{A}\n\\section{B}\n\\label{sec:b}\n", "sec:b", "B"},
	} {
		d := Parse(c.path, []byte(c.src), nil)
		i, ok := Resolve(d, c.anchor)
		if !ok || d.Sections[i].Heading != c.heading {
			t.Errorf("%s: %q names section %d, %v, want %s", c.path, c.anchor, i, ok, c.heading)
		}
	}
}

// TestDocumentsHaveFormats: every file that is indexed has a parser of its own, and
// every file that is converted is indexed.
func TestDocumentsHaveFormats(t *testing.T) {
	for _, ext := range walk.Documents {
		if f := FormatOf("x" + ext); f == Markdown && ext != ".md" && ext != ".markdown" {
			t.Errorf("%s files are parsed as Markdown", ext)
		}
		if format.Converts("x"+ext) != (FormatOf("x"+ext) == Converted) {
			t.Errorf("%s: FormatOf and format.Converts differ", ext)
		}
	}
}

func FuzzOutlines(f *testing.F) {
	f.Add("= A\n\n----\n\n[[x]]\n== B\nC\n-\n")
	f.Add("#+TITLE: A\n* TODO B :c:\n:ID: d\n<<e>>\n")
	f.Add("\\section[a]{b {c}}\n\\label{d}\\begin{minted}\n\\end{minted}\n")
	f.Fuzz(func(t *testing.T, src string) {
		for _, path := range []string{"a.adoc", "a.org", "a.tex"} {
			d := Parse(path, []byte(src), nil)
			at := 0
			for _, s := range d.Sections {
				if s.Start < at || s.OwnEnd < s.Start || s.End < s.OwnEnd || s.End > len(src) {
					t.Fatalf("%s: section %q [%d, %d, %d) after %d of %d", path, s.Heading, s.Start, s.OwnEnd, s.End, at, len(src))
				}
				at = s.OwnEnd
			}
		}
	})
}
