package convert

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
)

// CSV converts the rows of a table. The separator is the comma, semicolon or
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
	source := &rowReader{r: bytes.NewReader(text)}
	r := csv.NewReader(source)
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
	s := sheet{name: w.name, size: new(int)}
	for {
		source.n = 0
		record, err := r.Read()
		w.spend(100 + 16*source.n)
		if err != nil {
			break // io.EOF; with LazyQuotes there is no other error
		}
		if s.full() {
			s.total++
			s.width = max(s.width, len(record))
			continue
		}
		s.width = max(s.width, len(record))
		row := make([]string, min(len(record), maxColumns))
		for i := range row {
			row[i] = strings.Join(strings.Fields(escape(flat(cut(record[i], maxCell)))), " ")
		}
		s.add(row)
	}
	s.write(w)
	return nil
}

// rowReader counts the bytes of a row, because csv.Reader allocates all of its cells.
type rowReader struct {
	r io.Reader
	n int // bytes read since the last row
}

func (r *rowReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if r.n += n; r.n > maxToken {
		panic(errToken)
	}
	return n, err
}
