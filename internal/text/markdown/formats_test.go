package markdown

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestOutlines checks the sections of text formats other than Markdown.
func TestOutlines(t *testing.T) {
	shown := map[*Format]bool{}
	for _, c := range []struct{ name, path, src, want string }{
		{"asciidoc", "a.adoc", "= Guide\nA. Author\n\nintro\n\n== Install `cairn` ==\ntext\n\n----\n== not\n----\n\n[[opts]]\n=== Options\nx\n\n== Use\n",
			"1 Guide #guide 1:4:17 | 2 Guide > Install cairn #install-cairn 6:13:15 | 3 Guide > Install cairn > Options #options 14:15:15 | 2 Guide > Use #use 17:17:17"},
		{"asciidoc, titles underlined", "a.asciidoc", "git-add(1)\n==========\n\nNAME\n----\ngit-add - Add\n\n....\nNO\n--\n....\n\nOPTIONS\n-------\n",
			"1 git-add(1) #git-add1 1:2:14 | 2 git-add(1) > NAME #name 4:11:11 | 2 git-add(1) > OPTIONS #options 13:14:14"},
		{"asciidoc, a list is no title", "a.adoc", "some text\n----\nx\n----\n\n* == a\n. == b\n", "0  # 1:7:7"},
		{"asciidoc, attributes in titles", "a.adoc", ":product: Cairn\n:Version: 2\n= {product} {version} {other} {\n\n== Install {Product}\nx\n",
			"0  # 1:2:2 | 1 Cairn 2 {other} { #cairn-2-other- 3:3:6 | 2 Cairn 2 {other} { > Install Cairn #install-cairn 5:6:6"},
		{"asciidoc, a book", "a.asc", "[[ch1]]\n== Start\n\n=== Aliases\ntext\n", "0  # 1:1:1 | 2 Start #start 2:2:5 | 3 Start > Aliases #aliases 4:5:5"},
		{"asciidoc, a signed message", "b.asc", "-----BEGIN PGP SIGNED MESSAGE-----\n\n= News\n", "0  # 1:1:1 | 1 News #news 3:3:3"},
		{"rdoc", "README.rdoc", "= Mail\n\n== Usage\n\n  == not\n", "1 Mail #mail 1:1:5 | 2 Mail > Usage #usage 3:5:5"},
		{"r markdown", "a.Rmd", "# Fit\n\n```{r}\n# not\n```\n", "1 Fit #fit 1:5:5"},
		{"org", "a.org", "#+TITLE: My notes\n#+AUTHOR: me\n\nintro\n* TODO [#A] Buy milk :home:shop:\n:PROPERTIES:\n:CUSTOM_ID: milk\n:END:\n** Which\n*bold* text\n* Done\n",
			"1 My notes #my-notes 1:4:11 | 2 My notes > Buy milk #buy-milk 5:8:10 | 3 My notes > Buy milk > Which #which 9:10:10 | 2 My notes > Done #done 11:11:11"},
		{"org without a title", "a.org", "* One\ntext\n** Two\n", "1 One #one 1:2:3 | 2 One > Two #two 3:3:3"},
		{"latex", "a.tex", "\\documentclass{article}\n\\begin{document}\n\\section{Intro~to \\emph{Go} \\& C}\\label{sec:intro}\ntext\n% \\section{no}\n\\begin{verbatim}\n\\section{no}\n\\end{verbatim}\n\\subsection*[short]{Long\n  title}\n\\section{Two}\n",
			"0  # 1:2:2 | 1 Intro to Go & C #intro-to-go--c 3:8:10 | 2 Intro to Go & C > Long title #long-title 9:10:10 | 1 Two #two 11:11:11"},
		{"latex with chapters", "b.tex", "\\chapter{A}\n\\section{B}\n", "1 A #a 1:1:2 | 2 A > B #b 2:2:2"},
		{"yaml", "a.yaml", "# head\nname: x\nspec:\n  size: 3\n  template: # why\n    labels:\n      deep:\n        deeper: 1\n  text: |\n    key: no\n\n    more\nlist:\n- key: no\n  a:\n    b: 1\nlast: 1\nend: 2\n",
			"0  # 1:2:2 | 1 spec #spec 3:4:12 | 2 spec > template #spec.template 5:5:8 | 3 spec > template > labels #spec.template.labels 6:8:8 | 2 spec > text #spec.text 9:12:12 | 1 list #list 13:16:16 | 1 last #last 17:18:18"},
		{"json", "a.json", "{\n  \"name\": \"a \\\"b: {\",\n  \"scripts\": {\n    \"build\": \"x\"\n  },\n  \"list\": [\n    {\"no\": {\n    }}\n  ],\n  \"a\": {\n    \"b\": {\n      \"c\": 1\n    },\n    \"d\": 2\n  },\n  \"z\": 1\n}\n",
			"0  # 1:2:2 | 1 scripts #scripts 3:5:5 | 1 list #list 6:9:9 | 1 a #a 10:10:15 | 2 a > b #a.b 11:13:13 | 2 a > d #a.d 14:15:15 | 1 z #z 16:17:17"},
		{"toml", "a.toml", "title = \"x\"\n\n[tool.ruff] # why\nline = 1\ntext = \"\"\"\n[no]\n\"\"\"\n[[bin]]\nname = \"b\"\nlist = [\n[1, 2],\n]\n",
			"0  # 1:1:1 | 1 tool.ruff #tool.ruff 3:7:7 | 1 bin #bin 8:12:12"},
		{"openapi", "api.yaml", "openapi: 3.0.0\npaths:\n  /pets:\n    get:\n      summary: List all pets\n      operationId: listPets\n    post:\n      operationId: addPet\n",
			"0  # 1:1:1 | 1 paths #paths 2:2:8 | 2 paths > /pets #paths./pets 3:3:8 | 3 paths > /pets > GET /pets: List all pets #listPets 4:6:6 | 3 paths > /pets > POST /pets #addPet 7:8:8"},
		{"openapi in json", "api.json", "{\"openapi\": \"3\",\n\"paths\": {\n \"/a\": {\n  \"get\": {\n   \"summary\": \"Get a\"\n  }}}}\n",
			"0  # 1:1:1 | 1 paths #paths 2:2:6 | 2 paths > /a #paths./a 3:3:6 | 3 paths > /a > GET /a: Get a #paths./a.get 4:6:6"},
		{"minified json", "a.json", "{\"a\":{\"b\":{\"c\":1}}}", "1 a #a 1:1:1"},
		{"html", "a.html", "<h1>A</h1><p>text</p><h2 id=\"Two\">B</h2>text", "1 A #a 1:3:7 | 2 A > B #Two 5:7:7"},
	} {
		shown[FormatOf(c.path)] = true
		text, _, err := TextOf(c.path, []byte(c.src), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := strings.ReplaceAll(strings.TrimSpace(describe(Parse(c.path, text))), "\n", " | ")
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	for _, kind := range []string{"PUBLIC KEY BLOCK", "SIGNATURE", "MESSAGE"} {
		if _, _, err := TextOf("a.asc", []byte("-----BEGIN PGP "+kind+"-----\n\niQEzBAEB\n"), nil); err == nil {
			t.Errorf("%s has a text", kind)
		}
	}
	archives, err := filepath.Glob("../convert/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		input, ok := strings.CutPrefix(strings.TrimSpace(string(a.Comment)), "zip ")
		if !ok {
			input = a.Files[0].Name
		}
		shown[FormatOf(input)] = true
	}
	elsewhere := []*Format{Markdown, mdx, rst, source} // have tests of their own
	for _, f := range formats {
		if f.Converted() && !shown[f] {
			t.Errorf("no archive in internal/text/convert/testdata shows a file of %s", f.Kind)
		}
		if f.parse != nil && !f.Converted() && !shown[f] && !slices.Contains(elsewhere, f) {
			t.Errorf("no example shows the sections of %s", f.Kind)
		}
	}
}

// TestAnchorsOfFormats: the ids of other formats name their sections.
func TestAnchorsOfFormats(t *testing.T) {
	for _, c := range []struct{ path, src, anchor, heading string }{
		{"a.adoc", "= A\n\n[[opts]]\n== Options\n", "opts", "Options"},
		{"a.adoc", "= A\n\n[#opts.big]\n== Options\n", "opts", "Options"},
		{"a.rst", "Aah\n===\n\nBee\n---\n\n.. py:function:: json.dumps(obj, *)\n   :module: json\n", "json.dumps", "Bee"},
		{"a.rst", "Aah\n===\n\nBee\n---\n\n.. option:: --force <n>, -f\n", "--force", "Bee"},
		{"a.rst", "Aah\n===\n\nBee\n---\n\n.. c:function:: PyObject *PyList_New(Py_ssize_t len)\n", "PyList_New", "Bee"},
		{"a.org", "* A\n* B\n:PROPERTIES:\n:CUSTOM_ID: b-id\n:END:\n", "b-id", "B"},
		{"a.yml", "a:\n  b:\n    c: 1\n", "a.b", "b"},
		{"a.tex", "\\section{A}\n\\section{B}\n\\label{sec:b}\n", "sec:b", "B"},
	} {
		d := Parse(c.path, []byte(c.src))
		i, ok := Resolve(d, c.anchor)
		if !ok || d.Sections[i].Heading != c.heading {
			t.Errorf("%s: %q names section %d, %v, want %s", c.path, c.anchor, i, ok, c.heading)
		}
	}
}

// TestManual: docs/formats.md names the extensions of the table, and no others.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var inPage, inTable []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		if types := cells[1]; strings.Contains(cells[2], "`.") {
			for kind := range strings.SplitSeq(types, ", ") {
				if word := strings.Fields(kind)[0]; !bytes.Contains(readme, []byte(word)) {
					t.Errorf("README.md does not list %q, which docs/formats.md has", strings.TrimSpace(kind))
				}
			}
		}
		for _, m := range regexp.MustCompile("`([.][a-z0-9]+)`").FindAllStringSubmatch(cells[2], -1) {
			if strings.TrimSpace(cells[1]) != source.Kind {
				inPage = append(inPage, m[1])
			} else if FormatOf("x"+m[1]) != source {
				t.Errorf("docs/formats.md: %s files are not source code", m[1])
			}
		}
	}
	for _, f := range formats {
		inTable = slices.AppendSeq(inTable, strings.FieldsSeq(f.extensions))
	}
	slices.Sort(inPage)
	slices.Sort(inTable)
	if diff := cmp.Diff(inTable, inPage); diff != "" {
		t.Errorf("the extensions in docs/formats.md differ from those of formats (-formats +page):\n%s", diff)
	}
}

func FuzzOutlines(f *testing.F) {
	f.Add("= A\n\n----\n\n[[x]]\n== B\nC\n-\n")
	f.Add("#+TITLE: A\n* TODO B :c:\n:ID: d\n<<e>>\n")
	f.Add("\\section[a]{b {c}}\n\\label{d}\\begin{minted}\n\\end{minted}\n")
	f.Add("a:\n  - b: |\n   c\n  d: {\"e\": [\"f\", {}]}\n[g.h]\n'''\n")
	f.Fuzz(func(t *testing.T, src string) {
		for _, format := range formats {
			if format.Converted() {
				continue
			}
			extension, _, _ := strings.Cut(format.extensions, " ")
			path := "a" + extension
			d := Parse(path, []byte(src))
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
