package convert

import (
	"maps"
	"strconv"
	"strings"
)

// DOCX converts a Word document. The paragraph styles determine the headings. It
// omits deleted text, comments, headers and footers.
func DOCX(w *writer, data []byte) error {
	const document = "word/document.xml"
	a := openArchive(w, data, document)
	d := wordDocument{w: w}
	d.readStyles(a.xml("word/styles.xml"))
	for _, part := range []string{document, "word/footnotes.xml", "word/endnotes.xml"} {
		d.blocks(a.xml(part))
	}
	return nil
}

// readStyles finds the styles of headings and list items.
func (d *wordDocument) readStyles(x *xmlReader) {
	levels := map[string]int{}
	d.levels, d.items = levels, map[string]bool{}
	based := map[string]string{}
	id := ""
	for x.next() {
		switch x.start {
		case "style":
			id = x.attr("styleId")
		case "name":
			name := strings.ToLower(x.attr("val"))
			if n, ok := strings.CutPrefix(name, "heading "); ok {
				levels[id], _ = strconv.Atoi(n)
			} else if name == "title" {
				levels[id] = 1
			}
			d.items[id] = strings.HasPrefix(name, "list bullet") || strings.HasPrefix(name, "list number")
		case "outlineLvl":
			if n, err := strconv.Atoi(x.attr("val")); err == nil && n >= 0 && n < 9 && levels[id] == 0 {
				levels[id] = n + 1
			}
		case "basedOn":
			based[id] = x.attr("val")
		}
	}
	inherited := map[string]int{}
	for style := range based {
		for base, n := style, 0; base != "" && n < 10; base, n = based[base], n+1 {
			if levels[base] > 0 {
				inherited[style] = levels[base]
				break
			}
		}
	}
	maps.Copy(levels, inherited)
}

// wordDocument writes the paragraphs and tables of a part.
type wordDocument struct {
	w      *writer
	levels map[string]int  // heading levels by style
	items  map[string]bool // the styles of list items
	grid
}

func (d *wordDocument) blocks(x *xmlReader) {
	for x.next() {
		d.w.table(d.read(x, "tbl", "tr", "tc"))
		switch x.start {
		case "p":
			d.text(x)
		case "Fallback", "sectPr":
			x.skip()
		}
	}
}

// text reads a paragraph.
func (d *wordDocument) text(x *xmlReader) {
	var b strings.Builder
	level, item, depth := 0, -1, x.depth
	for x.depth >= depth && x.next() {
		switch x.start {
		case "pStyle":
			level = d.levels[x.attr("val")]
			if d.items[x.attr("val")] {
				item = max(item, 0)
			}
		case "outlineLvl":
			if n, err := strconv.Atoi(x.attr("val")); err == nil && n >= 0 && n < 9 {
				level = n + 1
			}
		case "ilvl":
			item, _ = strconv.Atoi(x.attr("val"))
		case "t":
			for x.next() && x.end != "t" {
				b.WriteString(x.text)
			}
		case "tab":
			b.WriteByte(' ')
		case "br", "cr":
			b.WriteString(lineBreak)
		case "noBreakHyphen":
			b.WriteByte('-')
		case "txbxContent": // a text box inside the paragraph
			b.WriteByte(' ')
		case "del", "Fallback", "instrText", "moveFrom":
			x.skip()
		}
	}
	d.paragraph(d.w, b.String(), level, item)
}
