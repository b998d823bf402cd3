package convert

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PPTX converts a PowerPoint presentation with the speaker notes. Slide n becomes a
// section with the anchor slide-n.
func PPTX(w *writer, data []byte) error {
	const presentation = "ppt/presentation.xml"
	a := openArchive(w, data, presentation)
	w.heading(1, a.title("docProps/core.xml"), "")
	targets := a.relations(presentation)
	number := 0
	for x := a.xml(presentation); x.find("sldId"); {
		number++
		if name := targets[x.related()]; name != "" {
			a.slide(name, number)
		}
	}
	return nil
}

// drawing matches the name of a part with the text of a diagram, or with a chart.
var drawing = regexp.MustCompile("/diagrams/data|/charts/chart")

// slideText is the text of a slide.
type slideText struct {
	title string
	body  []func(*writer) // each writes a block
}

// slide writes a slide and its notes.
func (a *archive) slide(name string, number int) {
	s := a.slideText(name)
	a.w.heading(2, cmp.Or(s.title, "Slide "+strconv.Itoa(number)), "slide-"+strconv.Itoa(number))
	for _, block := range s.body {
		block(a.w)
	}
	for _, part := range slices.Sorted(maps.Values(a.relations(name))) { // notes after drawings
		notes := strings.Contains(part, "/notesSlides/")
		if !notes && !drawing.MatchString(part) {
			continue
		}
		if s = a.slideText(part); notes && len(s.body) > 0 {
			a.w.text("Notes:")
		}
		for _, block := range s.body {
			block(a.w)
		}
	}
}

// slideText reads the shapes of a slide in order.
func (a *archive) slideText(name string) slideText {
	var s slideText
	var g grid
	shape := ""
	x := a.xml(name)
	for x.next() {
		if table := g.read(x, "tbl", "tr", "tc"); table != nil {
			s.body = append(s.body, func(w *writer) { w.table(table) })
		}
		switch {
		case x.start == "sp":
			shape = ""
		case x.start == "ph":
			shape = x.attr("type")
		case x.start == "p":
			level, text := slideParagraph(x)
			switch {
			case text == "" || shape == "sldNum" || shape == "dt" || shape == "ftr" || shape == "hdr":
			case g.depth > 0:
				g.paragraph(a.w, text, 0, -1)
			case (shape == "title" || shape == "ctrTitle") && s.title == "":
				s.title = lines(text)
			default:
				if level == 0 && shape != "body" && shape != "" {
					level = -1
				}
				a.w.spend(8 * len(text))
				s.body = append(s.body, func(w *writer) { new(grid).paragraph(w, text, 0, level) })
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
