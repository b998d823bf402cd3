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
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxLine is the maximum size of a message in bytes.
	maxLine = 4 << 20
	// idWithin is the number of bytes at each end of a too long message that are searched
	// for its ID. Clients write the ID before the parameters or at the end.
	idWithin = 512
)

var errLineTooLong = fmt.Errorf("a message may hold at most %d bytes", maxLine)

// line is a line of the input without its line end, or an error. If err is errLineTooLong,
// text is the ID of the message, nil if it is unknown.
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

// readLine returns the next line. The last line may lack a newline.
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
			return text, nil // the next call returns io.EOF
		}
		return text, err
	}
}

var lastID = regexp.MustCompile(`"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*}\s*$`)

// idNear returns the ID of a message, given its two ends; nil if neither contains it.
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
	// The last closing brace ends the message itself.
	if m := lastID.FindSubmatch(end); m != nil {
		return json.RawMessage(m[1])
	}
	return nil
}

// lastBatchVersion is the newest protocol version with JSON-RPC batches; 2025-06-18
// removed them.
const lastBatchVersion = "2025-03-26"

// maxBatch bounds the messages of one batch.
const maxBatch = 256

// batch collects the answers to an array of messages. They are sent together, in the
// order of the messages.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil for notifications
	missing int      // number of answers to come, plus 1 while the array is being read
}

// acceptBatch handles the messages of an array.
func (c *conn) acceptBatch(text []byte) {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	var parts []json.RawMessage
	err := json.Unmarshal(text, &parts)
	switch {
	case err != nil:
		c.refuse(reply{}, jsonrpc.CodeParseError, "Parse error")
		return
	case version > lastBatchVersion:
		c.refuse(reply{}, jsonrpc.CodeInvalidRequest, "Invalid Request: protocol %s has no batches", version)
		return
	case len(parts) == 0 || len(parts) > maxBatch:
		c.refuse(reply{}, jsonrpc.CodeInvalidRequest, "Invalid Request: a batch holds 1 to %d messages", maxBatch)
		return
	}
	b := &batch{answers: make([][]byte, len(parts)), missing: 1}
	for i, part := range parts {
		c.accept(part, reply{batch: b, place: i})
	}
	c.fill(b, 0, nil)
}

// expect counts an answer to come. It does nothing on a nil batch.
func (b *batch) expect() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing++
}

// fill puts an answer in its place and sends the batch once it is complete.
func (c *conn) fill(b *batch, place int, answer []byte) error {
	b.mu.Lock()
	if answer != nil {
		b.answers[place] = answer
	}
	b.missing--
	complete := b.missing == 0
	b.mu.Unlock()
	if !complete {
		return nil
	}
	out := slices.DeleteFunc(b.answers, func(a []byte) bool { return a == nil })
	if len(out) == 0 {
		return nil
	}
	return c.writeLine(append(append([]byte("["), bytes.Join(out, []byte(","))...), ']'))
}
