package convert

import (
	"strconv"
	"strings"
)

// OpenDocument converts an OpenDocument text, presentation or spreadsheet. Slide n
// becomes a section with the anchor slide-n, and sheet n one with the anchor sheet-n. It
// omits deleted text and comments.
func OpenDocument(w *writer, data []byte) error {
	const content = "content.xml"
	a := openArchive(w, data, content)
	if a.xml("META-INF/manifest.xml").find("encryption-data") {
		return errEncrypted
	}
	o := openDocument{w: w, a: a, title: a.title("meta.xml")}
	o.blocks(a.xml(content))
	return nil
}

type openDocument struct {
	w             *writer
	a             *archive
	title         string
	slides, sheet int
	items         int // the nesting of lists
	grid
}

func (o *openDocument) blocks(x *xmlReader) {
	for x.next() {
		o.w.table(o.read(x, "table", "table-row", "table-cell"))
		switch {
		case x.start == "spreadsheet":
			o.sheets(x)
		case x.start == "page":
			if o.slides++; o.slides == 1 {
				o.w.heading(1, o.title, "")
			}
			o.w.heading(2, "Slide "+strconv.Itoa(o.slides), "slide-"+strconv.Itoa(o.slides))
		case x.start == "h" || x.start == "p":
			o.text(x)
		case x.start == "list":
			o.items++
		case x.end == "list":
			o.items--
		case x.start == "tracked-changes", x.start == "annotation", x.start == "forms", x.start == "automatic-styles":
			x.skip()
		}
	}
}

// text reads a paragraph or heading.
func (o *openDocument) text(x *xmlReader) {
	level := 0
	if x.start == "h" {
		level = 1
		if n, err := strconv.Atoi(x.attr("outline-level")); err == nil {
			level = n
		}
	}
	o.paragraph(o.w, openText(x), level, o.items-1)
}

// openText returns the text of the current element, with lineBreak for its line breaks.
func openText(x *xmlReader) string {
	var b strings.Builder
	for depth := x.depth; x.depth >= depth && x.next(); {
		switch x.start {
		case "s", "tab", "note":
			b.WriteByte(' ')
		case "line-break":
			b.WriteString(lineBreak)
		case "annotation", "note-citation":
			x.skip()
		}
		b.WriteString(flat(x.text))
	}
	return b.String()
}

// sheets writes the rows of each sheet of a spreadsheet.
func (o *openDocument) sheets(x *xmlReader) {
	var s *sheet
	size := 0
	for depth := x.depth; x.depth >= depth && x.next(); {
		switch {
		case x.start == "table":
			o.sheet++
			s = &sheet{number: o.sheet, name: x.attr("name"), size: &size}
		case x.start == "table-row" && s != nil && s.full() && o.a.half():
			s.more = true
			s.write(o.w)
			o.w.text("The file is large, so sheets after this one are not read.")
			x.d = nil
			return
		case x.start == "table-row" && s != nil:
			o.row(x, s)
		case x.end == "table" && s != nil:
			s.write(o.w)
			s = nil
		}
	}
}

// row reads a row of a sheet. It expands repeated cells, drops empty cells at the end, and
// counts a repeated row as often as it repeats.
func (o *openDocument) row(x *xmlReader, s *sheet) {
	repeated, _ := strconv.Atoi(x.attr("number-rows-repeated"))
	var row []string
	blank := 0
	for depth := x.depth; x.depth >= depth && x.next(); {
		if x.start != "table-cell" && x.start != "covered-table-cell" {
			continue
		}
		times, _ := strconv.Atoi(x.attr("number-columns-repeated"))
		text := lines(escape(openText(x)))
		if text == "" {
			blank += max(times, 1)
			continue
		}
		for ; blank > 0 && len(row) < maxColumns; blank-- {
			row = append(row, "")
		}
		blank = 0
		for range min(max(times, 1), maxColumns) {
			row = append(row, text)
		}
	}
	if row != nil {
		s.add(row)
		s.total += max(repeated, 1) - 1
	}
}
