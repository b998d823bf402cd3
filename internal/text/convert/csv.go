package convert

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// CSV converts the first rows of a table. The separator is the comma, semicolon or
// tab, whichever is most frequent in the first line.
func CSV(w *writer, data []byte) error {
	text := utf8Text(data)
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
	s := sheet{name: w.name}
	for {
		w.step()
		record, err := r.Read()
		if err != nil {
			break // io.EOF; with LazyQuotes there is no other error
		}
		if len(s.rows) >= maxRows {
			s.total++
			s.width = max(s.width, len(record))
			continue
		}
		row := make([]string, len(record))
		for i, cell := range record {
			row[i] = strings.Join(strings.Fields(escape(flat(cell))), " ")
		}
		s.add(row)
	}
	s.write(w)
	return nil
}
