package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

const (
	// maxLine bounds one message in bytes; requests here are short.
	maxLine = 4 << 20
	// idWithin is how much of both ends of a message that is too long is searched
	// for its id, in bytes. Clients write it before the parameters or last of all.
	idWithin = 512
)

var errLineTooLong = fmt.Errorf("a message may hold at most %d bytes", maxLine)

// line is a line of the input without its end, or why there is none. With
// errLineTooLong text is the id of the message, nil when it is not found.
type line struct {
	text []byte
	err  error
}

// readLines sends the lines of in until it ends or ctx does.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r)
		select {
		case lines <- line{bytes.TrimSpace(text), err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

// readLine returns the next line. A last line without a newline counts.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long && len(text)+len(part) > maxLine {
			long = true
			text = append([]byte{}, append(text, part...)[:idWithin]...)
		} else if !long {
			text = append(text, part...)
		}
		if long { // keep the two ends
			text = append(text, part[max(0, len(part)-idWithin):]...)
			text = append(text[:idWithin], text[max(idWithin, len(text)-idWithin):]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return idNear(text[:idWithin], text[idWithin:]), errLineTooLong
		case err == io.EOF && len(bytes.TrimSpace(text)) > 0:
			return text, nil // the next call reports the end
		}
		return text, err
	}
}

var lastID = regexp.MustCompile(`"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*}\s*$`)

// idNear finds the id of a message in its two ends, nil when it is in neither.
func idNear(start, end []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(start))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for {
		key, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		if key == "id" && isID(value) {
			return value
		}
	}
	// The brace that closes last is the message's own.
	if m := lastID.FindSubmatch(end); m != nil {
		return json.RawMessage(m[1])
	}
	return nil
}
