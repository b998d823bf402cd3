package convert

import (
	"path"
	"strconv"
	"strings"
)

// XLSX converts an Excel workbook. Sheet n becomes a section with the anchor
// sheet-n. Values other than dates are written as stored.
func XLSX(w *writer, data []byte) error {
	const workbook = "xl/workbook.xml"
	a := openArchive(w, data, workbook)
	w.heading(1, a.title("docProps/core.xml"), "")
	targets := a.relations(workbook)
	var sheets []*sheet
	shared := map[int]string{}
	number, size := 0, 0
	dates := dates{styles: a.dateStyles()}
	for x := a.xml(workbook); x.next(); {
		if x.start == "workbookPr" {
			dates.from1904 = x.attr("date1904") == "1" || x.attr("date1904") == "true"
		}
		if x.start != "sheet" {
			continue
		}
		number++
		if name := targets[x.related()]; path.Base(path.Dir(name)) == "worksheets" {
			s := &sheet{number: number, name: x.attr("name"), size: &size}
			a.worksheet(name, s, shared, dates)
			sheets = append(sheets, s)
		}
	}
	a.sharedStrings(shared)
	for _, s := range sheets {
		for _, row := range s.rows {
			for i, cell := range row {
				if rest, ok := strings.CutPrefix(cell, sharedMark); ok {
					n, _ := strconv.Atoi(rest)
					row[i] = shared[n]
				}
			}
		}
		s.write(w)
	}
	return nil
}

// sharedMark is the prefix of a cell that contains the index of a shared string.
const sharedMark = "\x02"

// worksheet reads the rows of a sheet, and adds the indexes of the shared strings in the
// rows that it keeps to shared.
func (a *archive) worksheet(name string, s *sheet, shared map[int]string, dates dates) {
	var row []string
	column, kind, style := 0, "", ""
	for x := a.xml(name); x.next(); {
		switch {
		case x.start == "row":
			if s.more = s.full() && a.half(); s.more {
				return
			}
			row = nil
		case x.start == "c":
			kind, style = x.attr("t"), x.attr("s")
			column = columnOf(x.attr("r"), len(row))
		case x.start == "v" || x.start == "is" || x.start == "f":
			formula := x.start == "f" // its value follows if a program has calculated it
			text := x.textUntil(x.start)
			if column >= maxColumns || text == "" && (formula || column >= len(row)) {
				continue
			}
			if formula {
				text = "=" + text
			} else if kind == "" || kind == "n" {
				text = dates.value(text, style)
			}
			if kind == "s" && !formula {
				if n, err := strconv.Atoi(text); err == nil && !s.full() {
					shared[n] = ""
					text = sharedMark + text
				}
			} else {
				text = escape(cut(text, maxCell))
			}
			for len(row) <= column {
				row = append(row, "")
			}
			row[column] = text
		case x.end == "row" && row != nil:
			s.add(row)
		}
	}
}

// columnOf returns the column, from 0, of a reference such as "AB12". It returns otherwise
// if ref does not begin with a column.
func columnOf(ref string, otherwise int) int {
	n := 0
	for _, c := range ref {
		if c < 'A' || c > 'Z' || n > maxColumns {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	if n == 0 {
		return otherwise
	}
	return n - 1
}

// sharedStrings reads the shared strings whose indexes are the keys of wanted.
func (a *archive) sharedStrings(wanted map[int]string) {
	n, found := -1, 0
	for x := a.xml("xl/sharedStrings.xml"); found < len(wanted) && x.find("si"); {
		n++
		if _, ok := wanted[n]; !ok {
			x.skip()
			continue
		}
		var b strings.Builder
		for depth := x.depth; x.depth >= depth && x.next(); {
			if x.start == "rPh" { // a phonetic guide
				x.skip()
			}
			b.WriteString(x.text)
		}
		wanted[n] = escape(cut(strings.Join(strings.Fields(b.String()), " "), maxCell))
		found++
	}
}
