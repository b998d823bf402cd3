package convert

import "strings"

// grid writes the paragraphs of an office document, and collects those in a table. It
// keeps the text of a nested table in the cell that contains the table.
type grid struct {
	rows  [][]string
	cell  []string // the paragraphs of the current cell
	depth int      // of nested tables
}

// read handles an event of a table whose elements have the given names. At the end of a
// table it returns the rows.
func (g *grid) read(x *xmlReader, table, row, cell string) (rows [][]string) {
	last := len(g.rows) - 1
	switch {
	case x.start == table:
		if g.depth++; g.depth == 1 {
			g.rows, g.cell = nil, nil
		}
	case x.start == row && g.depth == 1:
		g.rows = append(g.rows, nil)
	case x.end == cell && g.depth == 1 && last >= 0:
		g.rows[last] = append(g.rows[last], strings.Join(g.cell, " "))
		g.cell = nil
	case x.end == table && g.depth > 0:
		if g.depth--; g.depth == 0 {
			return g.rows
		}
	}
	return nil
}

// paragraph writes text as a heading if level is positive, else as a list item if item, its
// nesting, is not negative. In a table it adds text to the current cell.
func (g *grid) paragraph(w *writer, text string, level, item int) {
	escaped := lines(escape(text))
	switch {
	case escaped == "":
	case g.depth > 0:
		w.spend(8 * len(escaped))
		g.cell = append(g.cell, escaped)
	case level > 0:
		w.heading(level, lines(text), "")
	case item >= 0:
		w.item(item, escaped)
	default:
		w.paragraph(escaped)
	}
}
