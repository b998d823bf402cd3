package format

import (
	"fmt"
	"strconv"
)

// The bounds of the head of a sheet.
const (
	maxRows    = 20
	maxColumns = 50
	maxCell    = 200 // bytes
)

// sheet is the head of one table of a spreadsheet.
type sheet struct {
	number int // from 1; 0 for a file that is one table
	name   string
	rows   [][]string // of inline Markdown, at most maxRows
	total  int        // rows that are not empty
	width  int        // columns of the widest row
}

// add counts a row, and keeps it while there is room.
func (s *sheet) add(row []string) {
	s.total++
	s.width = max(s.width, len(row))
	if len(s.rows) >= maxRows {
		return
	}
	s.rows = append(s.rows, row[:min(len(row), maxColumns)])
}

// write writes a section of the sheet's size, columns and first rows.
func (s *sheet) write(w *writer) {
	if s.total == 0 {
		return
	}
	if s.number > 0 {
		w.heading(2, s.name, "sheet-"+strconv.Itoa(s.number))
	} else {
		w.heading(1, s.name, "")
	}
	size := fmt.Sprintf("%d rows, %d columns.", s.total, s.width)
	if len(s.rows) < s.total {
		size += fmt.Sprintf(" The first %d rows:", len(s.rows))
	}
	w.paragraph(size)
	for _, row := range s.rows {
		for i, cell := range row {
			row[i] = cut(cell, maxCell)
		}
	}
	w.table(s.rows)
}
