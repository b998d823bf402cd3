package kv

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cairn/internal/base/checksum"
)

// line is a line of a file of records: a record as JSON and the checksum of its text. The
// last record is {"end":N} with the number of lines before it.
type line struct {
	Sum    uint32          `json:"sum"`
	Record json.RawMessage `json:"record"`
}

type end struct {
	End int `json:"end"`
}

// LineWriter writes records as lines of JSON with checksums, as in a snapshot or a backup. It
// keeps the first error.
type LineWriter struct {
	buffer *bufio.Writer
	lines  int
	err    error
}

// NewLineWriter returns a LineWriter to w.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{buffer: bufio.NewWriter(w)} }

// Write writes a record.
func (w *LineWriter) Write(record any) {
	text, err := json.Marshal(record)
	if err == nil {
		text, err = json.Marshal(line{checksum.Of(text), text})
	}
	if err == nil {
		_, err = w.buffer.Write(append(text, '\n'))
	}
	if w.err == nil {
		w.err = err
	}
	w.lines++
}

// Close writes the end of the file. It returns the first error of all calls.
func (w *LineWriter) Close() error {
	w.Write(end{w.lines})
	return cmp.Or(w.err, w.buffer.Flush())
}

// maxLine bounds a line in bytes: the largest record in base64, and some more.
const maxLine = 64 << 20

// ReadLines calls fn with the undamaged records of r, until fn returns an error. It returns the
// number of lines that are damaged or missing. It fails if a line is longer than maxLine.
func ReadLines[Record any](r io.Reader, fn func(Record) error) (damaged int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	ended := false
	lines := 0
	for in.Scan() {
		lines++
		text := in.Bytes()
		var l line
		var record Record
		var last end
		switch {
		case json.Unmarshal(text, &l) != nil || checksum.Of(l.Record) != l.Sum:
			damaged++
		case bytes.HasPrefix(l.Record, []byte(`{"end":`)) && json.Unmarshal(l.Record, &last) == nil:
			damaged += max(0, last.End+1-lines)
			ended = true
		case json.Unmarshal(l.Record, &record) != nil:
			damaged++
		default:
			if err := fn(record); err != nil {
				return damaged, err
			}
		}
	}
	if !ended {
		damaged++
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return damaged, fmt.Errorf("line %d is longer than %d bytes", lines+1, maxLine)
	}
	return damaged, in.Err()
}
