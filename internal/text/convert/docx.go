package convert

import (
	"maps"
	"strconv"
	"strings"
)

// convertDOCX converts a Word document. The paragraph styles determine the headings. It
// omits deleted text, comments, headers and footers.
func convertDOCX(w *writer, data []byte) error {
	a := openArchive(w, data)
	d := wordDocument{w: w}
	d.readStyles(a.xml("word/styles.xml"))
	for _, part := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml"} {
		if part == "word/document.xml" && a.files[part] == nil {
			return errBroken
		}
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
	table  *wordTable      // the outermost open table
	depth  int             // of nested tables
}

type wordTable struct {
	rows [][]string
	cell []string // the paragraphs of the current cell
}

func (d *wordDocument) blocks(x *xmlReader) {
	for x.next() {
		switch {
		case x.start == "p":
			d.paragraph(x)
		case x.start == "tbl":
			if d.depth++; d.depth == 1 {
				d.table = &wordTable{}
			}
		case x.start == "tr" && d.depth == 1:
			d.table.rows = append(d.table.rows, nil)
		case x.end == "tc" && d.depth == 1:
			if n := len(d.table.rows); n > 0 {
				d.table.rows[n-1] = append(d.table.rows[n-1], strings.Join(d.table.cell, " "))
			}
			d.table.cell = nil
		case x.end == "tbl" && d.depth > 0:
			if d.depth--; d.depth == 0 {
				d.w.table(d.table.rows)
				d.table = nil
			}
		case x.start == "Fallback", x.start == "sectPr":
			x.skip()
		}
	}
}

// paragraph writes a paragraph, or adds it to the current cell.
func (d *wordDocument) paragraph(x *xmlReader) {
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
	text := lines(escape(b.String()))
	switch {
	case text == "":
	case d.table != nil:
		d.table.cell = append(d.table.cell, text)
	case level > 0:
		d.w.heading(level, lines(b.String()), "")
	case item >= 0:
		d.w.item(item, text)
	default:
		d.w.paragraph(text)
	}
}
