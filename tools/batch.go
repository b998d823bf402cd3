package tools

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

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
