package convert

import (
	"slices"
	"strconv"
	"strings"
)

// convertPPTX converts a PowerPoint presentation with the speaker notes. Slide n becomes a
// section with the anchor slide-n.
func convertPPTX(w *writer, data []byte) error {
	const presentation = "ppt/presentation.xml"
	a := openArchive(w, data)
	if a.files[presentation] == nil {
		return errBroken
	}
	w.heading(1, a.title("docProps/core.xml"), "")
	targets := a.relations(presentation)
	number := 0
	x := a.xml(presentation)
	for x.next() {
		if x.start != "sldId" {
			continue
		}
		number++
		if name := targets[x.related()]; name != "" {
			a.slide(name, number)
		}
	}
	return nil
}

// slideText is the text of a slide.
type slideText struct {
	title string
	body  []func(*writer) // each writes a block
}

// slide writes a slide and its notes.
func (a *archive) slide(name string, number int) {
	s := a.slideText(name)
	if s.title == "" {
		s.title = "Slide " + strconv.Itoa(number)
	}
	a.w.heading(2, s.title, "slide-"+strconv.Itoa(number))
	for _, block := range s.body {
		block(a.w)
	}
	related := a.relations(name)
	ids := make([]string, 0, len(related))
	for id, target := range related {
		if strings.Contains(target, "/notesSlides/") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if notes := a.slideText(related[id]); len(notes.body) > 0 {
			a.w.text("Notes:")
			for _, block := range notes.body {
				block(a.w)
			}
		}
	}
}

// slideText reads the shapes of a slide in order.
func (a *archive) slideText(name string) slideText {
	var s slideText
	var rows [][]string
	var cell []string
	shape, inTable := "", false
	x := a.xml(name)
	for x.next() {
		switch {
		case x.start == "sp":
			shape = ""
		case x.start == "ph":
			shape = x.attr("type")
		case x.start == "tbl":
			inTable, rows = true, nil
		case x.start == "tr":
			rows = append(rows, nil)
		case x.end == "tc" && len(rows) > 0:
			rows[len(rows)-1] = append(rows[len(rows)-1], strings.Join(cell, " "))
			cell = nil
		case x.end == "tbl":
			table := rows
			s.body = append(s.body, func(w *writer) { w.table(table) })
			inTable = false
		case x.start == "p":
			level, text := slideParagraph(x)
			switch {
			case text == "" || shape == "sldNum" || shape == "dt" || shape == "ftr" || shape == "hdr":
			case inTable:
				cell = append(cell, lines(escape(text)))
			case (shape == "title" || shape == "ctrTitle") && s.title == "":
				s.title = lines(text)
			case level > 0 || shape == "body" || shape == "":
				s.body = append(s.body, func(w *writer) { w.item(level, lines(escape(text))) })
			default:
				s.body = append(s.body, func(w *writer) { w.paragraph(lines(escape(text))) })
			}
		}
	}
	return s
}

// slideParagraph reads a paragraph of a shape.
func slideParagraph(x *xmlReader) (level int, text string) {
	var b strings.Builder
	for depth := x.depth; x.depth >= depth && x.next(); {
		switch x.start {
		case "pPr":
			level, _ = strconv.Atoi(x.attr("lvl"))
		case "t":
			for x.next() && x.end != "t" {
				b.WriteString(x.text)
			}
		case "br":
			b.WriteString(lineBreak)
		case "fld":
			if x.attr("type") == "slidenum" {
				x.skip()
			}
		}
	}
	return level, strings.TrimSpace(b.String())
}
