package convert

import (
	"maps"
	"slices"
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
	parts := slices.DeleteFunc(slices.Sorted(maps.Values(a.relations(document))), func(part string) bool { return !drawing.MatchString(part) })
	for _, part := range append([]string{document, "word/footnotes.xml", "word/endnotes.xml"}, parts...) {
		d.blocks(a.xml(part))
	}
	return nil
}

// readStyles finds the styles of headings and list items.
func (d *wordDocument) readStyles(x *xmlReader) {
	d.levels, d.items, d.based = map[string]int{}, map[string]bool{}, map[string]string{}
	id := ""
	for x.next() {
		switch x.start {
		case "style":
			id = x.attr("styleId")
		case "name":
			name := strings.ToLower(x.attr("val"))
			if n, ok := strings.CutPrefix(name, "heading "); ok {
				d.levels[id], _ = strconv.Atoi(n)
			} else if name == "title" {
				d.levels[id] = 1
			}
			d.items[id] = strings.HasPrefix(name, "list bullet") || strings.HasPrefix(name, "list number")
		case "outlineLvl":
			if n, err := strconv.Atoi(x.attr("val")); err == nil && n >= 0 && n < 9 && d.levels[id] == 0 {
				d.levels[id] = n + 1
			}
		case "basedOn":
			d.based[id] = x.attr("val")
		}
	}
}

// level returns the heading level of a style, which may be that of a style that it is based
// on, 0 for none.
func (d *wordDocument) level(style string) (level int) {
	for n := 0; n < 10 && style != "" && level <= 0; n++ {
		level, style = d.levels[style], d.based[style]
	}
	return max(level, 0)
}

// wordDocument writes the paragraphs and tables of a part.
type wordDocument struct {
	w      *writer
	levels map[string]int    // heading levels by style
	items  map[string]bool   // the styles of list items
	based  map[string]string // the style that a style is based on
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
			level = d.level(x.attr("val"))
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
