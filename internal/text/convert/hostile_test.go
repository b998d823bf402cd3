package convert

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// hostileFile is a file that was, or could be, made to exhaust a converter or the parser of
// a text. make returns it: n is its size in bytes or, if the file is compressed, of what it
// unpacks to.
type hostileFile struct {
	name string
	make func(n int) []byte
}

// tokens are the texts with a meaning in each format of text, separated by line breaks.
var tokens = map[string]string{
	"md":    "# a\n[a](\n![a](\n```\n> \n| a |\n<a id=\"\n**a\n[^a]: \na://:b@",
	"mdx":   "import a from 'b'\n<A b={{\nexport const a = {\n<A>\n{/* ",
	"rst":   ".. _a:\n.. a::\n`a`_\n:a:`b\n====\n* a\n| a",
	"adoc":  "== a\n[[a]]\ninclude::a[]\n----\n|===\n* a\n:a: {a}",
	"org":   "* a\n#+begin_src\n[[a][b\n:a:\n| a\n*a",
	"tex":   "\\section{a}\n\\begin{a}\n{\n\\label{a\n$\n%\n\\newcommand{\\a}{\\a\\a}",
	"txt":   "a\nA.\n\f\n    a",
	"html":  "<p>\n<div>\n<a b=\"\n<!--\n<script>\n<table><tr><td>\n<svg>\n&amp;\n<li>\n<h1>\n<select><option>\n<b><p>\n<a href=x>\n<br/>\neyJ sk- ghp_ AKIA xoxb- \na://:b@",
	"csv":   ",\n\"\n\"a\",\na,b\n\"\"\n;",
	"tsv":   "\t\n\"\ta\na\tb",
	"1":     "\\[\n\\h'\n\\fB\n.B a\n.SH a\n.de a\n.Op Fl a\n\\*[a\n\\(em\n.TP",
	"eml":   "a: b\n\n--b\n\n=20\nContent-Type: multipart/mixed; boundary=b\n\n",
	"mbox":  "From a\n\nFrom a\nSubject: a\n\na\n",
	"ipynb": "{\n[\n\"\n{\"cells\":[\n{},\n\"\\u0000",
	"jsonl": "{\n[{},{}]\n{\"role\":\"user\",\"content\":[{}]}\n\"a\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}",
	"json":  "{\"a\":\n[\n\"a\":1,\n\"\n{}",
	"yaml":  "a: &a\n- *a\n- - \n{a: \n? \n|\n# a\n\"a",
	"toml":  "[a]\n[[a]]\na.a.a=1\na={\na=[\n\"\"\"\n# a",
	"go":    "func a() {\n(\n\"\n`\n/*\ntype a struct {\n// a",
	"py":    "def a():\n(\n\"\"\"\n#\nclass a:\nlambda:",
	"js":    "function a(){\n`${\n/\n/*\nclass a{\n=>{",
	"rs":    "fn a(){\nr#\"\n/*\nimpl a{\n<'a\n'a",
	"c":     "#define a(\nint a(){\n/*\n\"\n\\\n#if a",
	"java":  "class a{\n@a(\n/**\n\"\"\"\nvoid a(){",
}

// heads begin the files of formats that are refused without them.
var heads = map[string]string{
	"1": ".TH a 1\n", "eml": "From: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n", "mbox": "From a\n", "ipynb": `{"cells":[`,
}

// families arrange the tokens of a format.
var families = []struct {
	name string
	make func(token string, n int) string
}{
	{"line", func(s string, n int) string { return strings.Repeat(s, n/len(s)) }},
	{"lines", func(s string, n int) string { return strings.Repeat(s+"\n", n/(len(s)+1)) }},
	{"numbered", func(s string, n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "%s%d\n", s, i)
		}
		return b.String()
	}},
}

// hostileFiles returns the corpus: every token in every family, and files that unpack.
func hostileFiles() []hostileFile {
	var all []hostileFile
	for format, list := range tokens {
		for i, token := range strings.Split(list, "\n") {
			for _, f := range families {
				if token == "" {
					token = "\n"
				}
				all = append(all, hostileFile{fmt.Sprintf("%s-%d.%s", f.name, i, format), func(n int) []byte {
					return []byte(heads[format] + f.make(token, n))
				}})
			}
		}
	}
	all = append(append(append(all, hostilePages()...), hostilePDFs()...), hostileArchives()...)
	slices.SortFunc(all, func(a, b hostileFile) int { return strings.Compare(a.name, b.name) })
	return all
}

// hostilePages returns pages whose tree is much larger than their text, and other files
// that have more structure than text.
func hostilePages() []hostileFile {
	line, numbered := families[0].make, families[2].make
	formatted := func(block string) func(int) []byte {
		return func(n int) []byte { return []byte("<div>" + numbered("><b a=", n/20) + "</div>" + line(block, n)) }
	}
	return []hostileFile{
		{"formatted-blocks.html", formatted("<div>x</div>")},
		{"formatted-paragraphs.html", formatted("<p>x")},
		{"formatted-cells.html", formatted("<table><td>x</table>")},
		{"formatted-spans.html", formatted("<span><i></span>x")},
		{"formatted-equal.html", func(n int) []byte { return []byte(line("<b><p>x</p>", n)) }},
		{"formatted-links.html", func(n int) []byte { return []byte(numbered("><a name=x", n/2) + line("<p>x", n/2)) }},
		{"attributes.html", func(n int) []byte { return []byte("<p>x</p><p " + line("a ", n) + ">") }},
		{"attributes-quoted.html", func(n int) []byte { return []byte("<p>x</p><p " + line(`a=">"`, n) + ">") }},
		{"attributes-behind-script.html", func(n int) []byte { return []byte(`<p>x</p><script><a b="</script><p ` + line("a ", n) + ">") }},
		{"attributes-behind-name.html", func(n int) []byte { return []byte(`<p>x</p><p =" ` + line("a ", n) + ">") }},
		{"attributes-slashes.html", func(n int) []byte { return []byte("<p>x</p><p " + line("a/", n) + ">") }},
		{"class-long.html", func(n int) []byte { return []byte(`<p class="` + line("a ", n) + `">x</p>`) }},
		{"emphasis-deep.html", func(n int) []byte {
			return []byte(strings.Repeat("<em>", 400) + line("a*_ ", n) + strings.Repeat("</em>", 400))
		}},
		{"lists-deep.html", func(n int) []byte { return []byte(strings.Repeat("<ul><li>", 90) + line("<ul><li>x</ul>", n)) }},
		{"tables-deep.html", func(n int) []byte { return []byte(strings.Repeat("<table><td>", 90) + line("<p>x", n)) }},
		{"table-uneven.html", func(n int) []byte {
			return []byte("<table><tr>" + line("<td>", n/2) + line("<tr><td>x", n/2) + "</table>")
		}},
		{"definitions.html", func(n int) []byte { return []byte(strings.Repeat("<dl><dd>", 90) + line("<dt id=a>x<dd>y", n)) }},
		{"headers.eml", func(n int) []byte { return []byte("From: a\n" + numbered("a:", n) + "\nx") }},
		{"headers-long.eml", func(n int) []byte { return []byte("Subject: " + line("=?utf-8?q?a?= ", n) + "\n\nx") }},
		{"parts-nested.eml", func(n int) []byte {
			return []byte(line("Content-Type: multipart/mixed; boundary=b\n\n--b\n", n) + "\nx")
		}},
		{"parts-page.eml", func(n int) []byte {
			return []byte("Content-Type: multipart/mixed; boundary=b\n\n" + line("--b\nContent-Type: text/html\n\n<p>x\n", n))
		}},
		{"parameters.eml", func(n int) []byte { return []byte("Content-Type: a/b" + numbered("; a*", n) + "\n\nx") }},
		{"encoded.eml", func(n int) []byte {
			return []byte("Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n" + line("=3Cp=3E", n))
		}},
		{"lines.ipynb", func(n int) []byte {
			return []byte(`{"cells":[{"cell_type":"code","source":[` + line(`"",`, n) + `""]}]}`)
		}},
		{"outputs.ipynb", func(n int) []byte {
			return []byte(`{"cells":[{"cell_type":"code","source":"a","outputs":[` + line(`{},`, n) + `{}]}]}`)
		}},
		{"cells-empty.ipynb", func(n int) []byte { return []byte(`{"cells":[` + line(`{},`, n) + `{}]}`) }},
		{"sheets.ipynb", func(n int) []byte { return []byte(`{"worksheets":[` + line(`{},`, n) + `{}]}`) }},
		{"sheets-cells.ipynb", func(n int) []byte { return []byte(`{"worksheets":[` + line(`{"cells":[{}]},`, n) + `{}]}`) }},
		{"arguments.1", func(n int) []byte { return []byte(".TH a 1\n.B " + line("a ", n)) }},
		{"quoted.1", func(n int) []byte { return []byte(".TH a 1\n.B " + line(`"" `, n)) }},
		{"escapes-open.1", func(n int) []byte { return []byte(".TH a 1\n" + line(`\w'a\*[`, n)) }},
	}
}

// hostileArchives returns files of the formats in zip archives.
func hostileArchives() []hostileFile {
	var all []hostileFile
	for format, body := range map[string]struct{ main, open, text, end string }{
		"docx": {"word/document.xml", "<w:document><w:body><w:p><w:r><w:t>", "a", "</w:t></w:r></w:p></w:body></w:document>"},
		"odt":  {"content.xml", "<o:body><o:text><text:p>", "a", "</text:p></o:text></o:body>"},
		"odp":  {"content.xml", "<o:body><draw:page><text:p>", "a", "</text:p></draw:page></o:body>"},
		"ods":  {"content.xml", "<o:spreadsheet><table:table><table:table-row><table:table-cell><text:p>", "a", "</text:p></table:table-cell></table:table-row></table:table></o:spreadsheet>"},
		"pptx": {"ppt/slides/s.xml", "<p:sp><a:p><a:r><a:t>", "a", "</a:t></a:r></a:p></p:sp>"},
		"xlsx": {"xl/worksheets/s.xml", "<sheetData><row><c t=\"inlineStr\"><is><t>", "a", "</t></is></c></row></sheetData>"},
		"epub": {"a.xhtml", "<html><body><p>", "a", "</p></body></html>"},
	} {
		add := func(name string, make func(n int) string) {
			all = append(all, hostileFile{name + "." + format, func(n int) []byte {
				return archiveOf(format, body.main, make(n))
			}})
		}
		unit := body.open + "a" + body.end
		add("blanks", func(n int) string { return body.open + strings.Repeat(" ", n) + body.end })
		add("text", func(n int) string { return body.open + strings.Repeat("a", n) + body.end })
		add("words", func(n int) string { return body.open + strings.Repeat("a ", n/2) + body.end })
		add("entities", func(n int) string { return body.open + strings.Repeat("&amp;", n/5) + body.end })
		add("attributes", func(n int) string { return "<a " + strings.Repeat("a ", n/2) + ">" })
		add("attributes-quoted", func(n int) string { return "<a " + strings.Repeat(`a="" `, n/5) + ">" })
		add("attribute-long", func(n int) string { return `<a a="` + strings.Repeat("a", n) + `">` + unit })
		add("attributes-each", func(n int) string { return strings.Repeat(`<a b="c" d="e"/>`, n/16) + unit })
		add("units", func(n int) string { return strings.Repeat(unit, n/len(unit)) })
		add("elements", func(n int) string { return strings.Repeat("<a/>", n/4) + unit })
		add("runs", func(n int) string { return body.open + strings.Repeat("a<b/>", n/5) + body.end })
		add("depth", func(n int) string { return strings.Repeat("<a>", n/3) })
		add("unclosed", func(n int) string { return strings.Repeat(body.open, n/len(body.open)) })
		add("comments", func(n int) string { return strings.Repeat("<!--a-->", n/8) + unit })
		add("comment-long", func(n int) string { return "<!--" + strings.Repeat("a", n) + "-->" + unit })
		add("doctype", func(n int) string {
			return "<!DOCTYPE a [" + strings.Repeat(`<!ENTITY a "b">`, n/15) + "]>" + unit
		})
		add("cells", func(n int) string {
			return "<tbl><tr>" + strings.Repeat("<tc><p><t>a</t></p></tc>", n/24) + "</tr></tbl>"
		})
	}
	for format, again := range map[string]string{"pptx": `<p:sldId r:id="r"/>`, "xlsx": `<sheet name="a" r:id="r"/>`, "epub": `<itemref idref="r"/>`} {
		all = append(all, hostileFile{"again." + format, func(n int) []byte {
			return archiveOf(format, "again", strings.Repeat(again, n/len(again)))
		}})
	}
	all = append(all, hostileFile{"entries.docx", func(n int) []byte {
		parts := map[string]string{"word/document.xml": "<w:p><w:t>a</w:t></w:p>"}
		for i := range n / 100 {
			parts[fmt.Sprint("a", i)] = ""
		}
		return zipped(parts)
	}}, hostileFile{"shared.xlsx", func(n int) []byte {
		return zipped(map[string]string{
			"xl/workbook.xml": `<sheet name="a" r:id="r"/>`, "xl/_rels/workbook.xml.rels": `<Relationship Id="r" Target="worksheets/s.xml"/>`,
			"xl/worksheets/s.xml": `<row><c t="s"><v>0</v></c></row>`, "xl/sharedStrings.xml": "<si><t>" + strings.Repeat("*a ", n/3) + "</t></si>",
		})
	}})
	return all
}

// archiveOf returns an archive whose part main has a content. The part "again" is the one
// that lists the others.
func archiveOf(format, main, content string) []byte {
	list := `<p:sldId r:id="r"/><sheet name="a" r:id="r"/><item id="r" href="a.xhtml" media-type="text/html"/><itemref idref="r"/>`
	if main == "again" {
		main, list = "ppt/slides/s.xml", `<item id="r" href="a.xhtml" media-type="text/html"/>`+content
		content = "<p:sp><a:p><a:r><a:t>a</a:t></a:r></a:p></p:sp>"
	}
	relations := `<Relationship Id="r" Target="%s"/>`
	return zipped(map[string]string{
		"ppt/presentation.xml": list, "ppt/_rels/presentation.xml.rels": fmt.Sprintf(relations, "slides/s.xml"),
		"xl/workbook.xml": list, "xl/_rels/workbook.xml.rels": fmt.Sprintf(relations, "worksheets/s.xml"),
		"xl/worksheets/s.xml": "<row/>", "META-INF/container.xml": `<rootfile full-path="b.opf"/>`, "b.opf": list, "a.xhtml": "<p>a</p>",
		main: content,
	})
}

// zipped returns a zip file.
func zipped(parts map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, parts[name])
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// hostilePDFs returns PDF files.
func hostilePDFs() []hostileFile {
	flate := func(text string) string {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	// document returns a file with further objects. The page has further keys.
	document := func(page string, objects ...string) []byte {
		return []byte("%PDF-1.4\n1 0 obj<</Pages 2 0 R/Outlines 8 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>" +
			page + ">>endobj " + strings.Join(objects, " ") + " trailer<</Root 1 0 R>>")
	}
	stream := func(number int, keys, data string) string {
		return fmt.Sprintf("%d 0 obj<</Length %d%s>>stream\n%s\nendstream endobj", number, len(data), keys, data)
	}
	packed := func(number int, keys, text string) string {
		return stream(number, "/Filter/FlateDecode"+keys, flate(text))
	}
	inside := func(objects string) string { return packed(9, "/Type/ObjStm/N 1/First 5", "7 0  "+objects) }
	const font = "5 0 obj<</Subtype/Type1/ToUnicode 7 0 R>>endobj"
	files := map[string]func(n int) []byte{
		"annotations": func(n int) []byte {
			list := packed(10, "/Type/ObjStm/N 1/First 5", "11 0 ["+strings.Repeat("7 0 R ", min(n/50, 200_000))+"]")
			return document("/Annots 11 0 R", inside("<</Contents("+strings.Repeat("a ", n/20)+")>>"), list)
		},
		"mapping": func(n int) []byte {
			return document("/Contents 4 0 R", font, packed(4, "", "BT /F 1 Tf ("+strings.Repeat("a", n/10)+")Tj"),
				packed(7, "", "1 beginbfchar <61> <"+strings.Repeat("0061", n/8)+"> endbfchar"))
		},
		"mapping-range": func(n int) []byte {
			return document("/Contents 4 0 R", font, packed(4, "", "BT /F 1 Tf (a)Tj"), packed(7, "", "1 beginbfrange <0000> <FFFF> <"+strings.Repeat("0061", n/8)+"> endbfrange"))
		},
		"outline": func(n int) []byte {
			var b strings.Builder
			for i := range min(n/100, 9000) {
				fmt.Fprintf(&b, "%d 0 obj<</Title 7 0 R/Dest[3 0 R]/Next %d 0 R>>endobj ", 20+i, 21+i)
			}
			return document("", "8 0 obj<</First 20 0 R>>endobj", b.String(), inside("("+strings.Repeat("a ", n/20)+")"))
		},
		"titles": func(n int) []byte {
			var b strings.Builder
			for i := range min(n/100, 9000) {
				fmt.Fprintf(&b, "%d 0 obj<</Title(a%d)/Dest[3 0 R]/Next %d 0 R>>endobj ", 20+i, i, 21+i)
			}
			return document("/Contents 4 0 R", font, "8 0 obj<</First 20 0 R>>endobj", b.String(), packed(4, "", "BT /F 1 Tf 12 TL "+strings.Repeat("(a)' ", n/5)))
		},
		"arrays":        func(n int) []byte { return document("/Annots 7 0 R", inside("["+strings.Repeat("0 ", n/2)+"]")) },
		"arrays-nested": func(n int) []byte { return document("/Annots 7 0 R", inside("["+strings.Repeat("[]", n/2)+"]")) },
		"dictionaries":  func(n int) []byte { return document("/Annots 7 0 R", inside("["+strings.Repeat("<<>>", n/4)+"]")) },
		"dictionary": func(n int) []byte {
			return document("/Annots 7 0 R", inside("<<"+families[2].make("/a 1", n)+">>"))
		},
		"names":          func(n int) []byte { return document("/Annots 7 0 R", inside("["+strings.Repeat("/a#20", n/5)+"]")) },
		"string":         func(n int) []byte { return document("/Annots 7 0 R", inside("("+strings.Repeat("\\(", n/2)+")")) },
		"hex":            func(n int) []byte { return document("/Annots 7 0 R", inside("<"+strings.Repeat("6", n)+">")) },
		"comments":       func(n int) []byte { return document("", strings.Repeat("trailer%", n/8)) },
		"trailers":       func(n int) []byte { return document("", strings.Repeat("trailer<", n/8)) },
		"trailer-arrays": func(n int) []byte { return document("", strings.Repeat("trailer[0 ", n/10)) },
		"objects":        func(n int) []byte { return document("", families[2].make("1 0 obj ", n)) },
		"objects-same":   func(n int) []byte { return document("", strings.Repeat("1 0 obj(", n/8)) },
		"streams": func(n int) []byte {
			return document("", strings.Repeat("9 0 obj<</Type/ObjStm>>stream ", n/30))
		},
		"stream-kinds": func(n int) []byte {
			return document("", "9 0 obj<<"+strings.Repeat("/ObjStm ", n/8)+"/Type/ObjStm/N 1/First 5/Filter/FlateDecode>>stream\n"+flate("7 0  "+strings.Repeat(" ", n))+"\nendstream endobj")
		},
		"contents-hidden": func(n int) []byte {
			return document("/Contents["+strings.Repeat("4 0 R ", min(n/10, 100_000))+"]", stream(4, "/Filter[/FlateDecode/ASCIIHexDecode]", flate(">"+strings.Repeat("0", n))))
		},
		"contents-again": func(n int) []byte {
			return document("/Contents["+strings.Repeat("4 0 R ", min(n/10, 100_000))+"]", packed(4, "", strings.Repeat(" ", n/10)))
		},
		"contents-lzw": func(n int) []byte {
			return document("/Contents["+strings.Repeat("4 0 R ", min(n/10, 100_000))+"]", stream(4, "/Filter/LZWDecode", "\x80\x0b\x60\x50"))
		},
		"fonts": func(n int) []byte {
			return []byte(strings.Replace(string(document("/Contents 4 0 R", packed(4, "", strings.Repeat("/F 1 Tf ", n/8)))), "/F 5 0 R", "/F<</Subtype/Type1/BaseFont/Times>>", 1))
		},
		"font-widths": func(n int) []byte {
			return document("/Contents 4 0 R", "5 0 obj<</Subtype/Type0/DescendantFonts[<</W[-2000000000 2000000000 1 "+strings.Repeat("0 65535 1 ", n/10)+"]>>]>>endobj", packed(4, "", "/F 1 Tf"))
		},
		"forms": func(n int) []byte {
			form := packed(6, "/Subtype/Form/Resources<</XObject<</X 6 0 R>>>>", strings.Repeat("/X Do ", 100))
			return document("/Contents 4 0 R", form, packed(4, "", strings.Repeat("/X Do ", n/6)))
		},
		"operands": func(n int) []byte { return document("/Contents 4 0 R", packed(4, "", strings.Repeat("1 ", n/2))) },
		"states": func(n int) []byte {
			return document("/Contents 4 0 R", packed(4, "", strings.Repeat("q 1 0 0 1 0 0 cm ", n/17)))
		},
		"hyphens": func(n int) []byte {
			return document("/Contents 4 0 R", font, packed(4, "", "BT /F 1 Tf 12 TL "+strings.Repeat("(aaa-)' ", n/8)))
		},
		"shows": func(n int) []byte {
			return document("/Contents 4 0 R", font, packed(4, "", "BT /F 1 Tf "+strings.Repeat("("+strings.Repeat("a", 80)+")Tj ", n/85)))
		},
		"images": func(n int) []byte { return document("/Contents 4 0 R", packed(4, "", strings.Repeat("BI ", n/3))) },
		"pages": func(n int) []byte {
			return []byte(strings.Replace(string(document("")), "[3 0 R]", "["+strings.Repeat("3 0 R ", n/6)+"]", 1))
		},
		"pages-inline": func(n int) []byte {
			return []byte(strings.Replace(string(document("", packed(4, "", "BT"))), "[3 0 R]", "["+strings.Repeat("<</Contents 4 0 R>>", n/19)+"]", 1))
		},
		"destinations": func(n int) []byte {
			return []byte(strings.Replace(string(document("")), "/Outlines", "/Names<</Dests<</Names["+strings.Repeat("(a)3 ", n/5)+"]>>>>/Outlines", 1))
		},
		"depth": func(n int) []byte { return document("", strings.Repeat("[", n)) },
		"cut": func(n int) []byte {
			whole := document("/Contents 4 0 R", packed(4, "", families[2].make("(a)Tj ", n)))
			return whole[:len(whole)/2]
		},
		"cyclic": func(n int) []byte {
			return document("/Kids[2 0 R 3 0 R]", families[2].make("7 0 obj 7 0 R endobj ", n))
		},
	}
	var all []hostileFile
	for name, f := range files {
		all = append(all, hostileFile{name + ".pdf", f})
	}
	return all
}

// products are files in which one part refers to another, or one element is repeated in
// others, again and again. Only the limit of work or of a child's memory bounds them.
var products = []string{
	"annotations.pdf", "contents-again.pdf", "outline.pdf", "titles.pdf",
	"formatted-blocks.html", "formatted-paragraphs.html", "formatted-cells.html", "formatted-spans.html",
}

// TestHostileFiles converts the files of the corpus. None takes more work than its size
// explains: four times the size takes at most six times the work, up to the limit.
func TestHostileFiles(t *testing.T) {
	const size = 16 << 10
	files := hostileFiles()
	t.Logf("%d files", len(files))
	for _, f := range files {
		c := converterOf(f.name)
		if c == nil {
			continue // package indexer tests the formats of text
		}
		work := func(n int) int64 {
			w := &writer{name: f.name}
			_, err := w.convert(c, f.make(n))
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Errorf("%s: %v", f.name, err)
			}
			return w.work
		}
		small, large := work(size), work(4*size)
		if large > 6*small+1<<22 && !slices.Contains(products, f.name) {
			t.Errorf("%s: %d units of work, and %d for four times the size", f.name, small, large)
		}
	}
}
