package convert

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// The part of a sheet that is written. Each row is searched, so a file may not have as many
// as it likes.
const (
	pieceRows  = 20      // rows of a section; so many are always written
	maxRows    = 10_000  // of a sheet
	maxSheets  = 1 << 20 // bytes of the rows of a file
	maxColumns = 50
	maxCell    = 200 // bytes
)

// sheet is the first rows of one sheet of a spreadsheet.
type sheet struct {
	number int // from 1; 0 for a CSV file
	name   string
	rows   [][]string // inline Markdown
	size   *int       // bytes of the rows of all sheets
	total  int        // the number of rows that are not empty
	width  int        // the number of columns of the widest row
	more   bool       // the sheet has more rows than total
}

// full reports whether no more rows are kept.
func (s *sheet) full() bool {
	return len(s.rows) >= pieceRows && (len(s.rows) >= maxRows || *s.size > maxSheets)
}

// add counts a row, and keeps it unless the sheet is full.
func (s *sheet) add(row []string) {
	s.total++
	s.width = max(s.width, len(row))
	if s.full() {
		return
	}
	row = row[:min(len(row), maxColumns)]
	for _, cell := range row {
		*s.size += len(cell) + len(" |")
	}
	s.rows = append(s.rows, row)
}

// write writes a section with the size of the sheet and its first rows, and below it one
// for each further pieceRows rows, which begins with the first row.
func (s *sheet) write(w *writer) {
	if s.total == 0 {
		return
	}
	level, id := 1, ""
	if s.number > 0 {
		level, id = 2, "sheet-"+strconv.Itoa(s.number)
	}
	w.heading(level, s.name, id)
	kept, size := 0, len(w.out)
	for ; kept < len(s.rows) && (kept < pieceRows || size <= maxSheets); kept++ {
		size += s.measure(kept)
		if kept > 0 && kept%pieceRows == 0 {
			size += s.measure(0)
		}
	}
	text := fmt.Sprintf("%d rows, %d columns.", s.total, s.width)
	if s.more {
		text = "More than " + text
	}
	if kept < s.total {
		text += fmt.Sprintf(" The first %d rows:", kept)
	}
	w.paragraph(text)
	for at := 0; at < kept; at += pieceRows {
		end := min(at+pieceRows, kept)
		rows := s.rows[at:end]
		if at > 0 {
			w.heading(level+1, fmt.Sprintf("Rows %d to %d", at+1, end), "")
			rows = append([][]string{s.rows[0]}, rows...)
		}
		w.table(rows)
	}
}

// measure cuts the cells of a row and returns the size of the row in bytes.
func (s *sheet) measure(n int) (size int) {
	row := s.rows[n]
	for i, cell := range row {
		row[i] = cut(cell, maxCell)
		size += len(row[i]) + len("  |")
	}
	return size
}

// CSV converts the rows of a table. The separator is the comma, semicolon or
// tab, whichever is most frequent in the first line.
func CSV(w *writer, data []byte) error {
	text := utf8Text(data, "")
	if bytes.IndexByte(text, 0) >= 0 {
		return errBroken
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	comma := ','
	for _, c := range ";\t" {
		if bytes.Count(first, []byte(string(c))) > bytes.Count(first, []byte(string(comma))) {
			comma = c
		}
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
	s := sheet{name: w.name, size: new(int)}
	for {
		from := r.InputOffset()
		record, err := r.Read()
		w.spend(100 + 16*int(r.InputOffset()-from))
		if err != nil {
			break // io.EOF; with LazyQuotes there is no other error
		}
		s.width = max(s.width, len(record))
		var row []string
		if !s.full() {
			row = make([]string, min(len(record), maxColumns))
		}
		for i := range row {
			row[i] = strings.Join(strings.Fields(escape(flat(cut(record[i], maxCell)))), " ")
		}
		s.add(row)
	}
	s.write(w)
	return nil
}
