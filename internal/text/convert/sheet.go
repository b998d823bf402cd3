package convert

import (
	"fmt"
	"strconv"
)

// The part of a sheet that is written.
const (
	maxRows    = 20
	maxColumns = 50
	maxCell    = 200 // bytes
)

// sheet is the first rows of one sheet of a spreadsheet.
type sheet struct {
	number int // from 1; 0 for a CSV file
	name   string
	rows   [][]string // inline Markdown, at most maxRows
	total  int        // the number of rows that are not empty
	width  int        // the number of columns of the widest row
}

// add counts a row, and keeps it if it is one of the first maxRows.
func (s *sheet) add(row []string) {
	s.total++
	s.width = max(s.width, len(row))
	if len(s.rows) >= maxRows {
		return
	}
	s.rows = append(s.rows, row[:min(len(row), maxColumns)])
}

// write writes a section with the size of the sheet and its first rows.
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
