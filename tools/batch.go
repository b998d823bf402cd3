package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lastBatchVersion is the newest protocol version with JSON-RPC batches; they
// were removed in 2025-06-18.
const lastBatchVersion = "2025-03-26"

// maxBatch bounds the messages of one batch.
const maxBatch = 256

// batch gathers the answers to an array of requests; they leave together, in
// the order of the requests.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil for notifications
	missing int
}

// acceptBatch takes an array of messages apart and returns those for the SDK.
func (c *conn) acceptBatch(text []byte) []jsonrpc.Message {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	if version > lastBatchVersion {
		c.fail(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("Invalid Request: protocol %s has no batches", version))
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || len(parts) == 0 || len(parts) > maxBatch {
		c.fail(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("Invalid Request: a batch holds 1 to %d messages", maxBatch))
		return nil
	}
	b := &batch{answers: make([][]byte, len(parts))}
	for _, part := range parts {
		if wantsAnswer(part) {
			b.missing++
		}
	}
	var msgs []jsonrpc.Message
	for i, part := range parts {
		if msg := c.message(part, b, i); msg != nil {
			msgs = append(msgs, msg)
		}
	}
	return msgs
}

// wantsAnswer reports whether conn.message leads to an answer: for a request
// with an id and for whatever is not a message, not for notifications and answers.
func wantsAnswer(text []byte) bool {
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return true
	}
	req, ok := msg.(*jsonrpc.Request)
	return ok && req.IsCall()
}

// fill puts an answer in its place and sends the batch once it is complete.
func (c *conn) fill(b *batch, place int, text []byte) error {
	b.mu.Lock()
	b.answers[place] = text
	b.missing--
	complete := b.missing == 0
	b.mu.Unlock()
	if !complete {
		return nil
	}
	var out [][]byte
	for _, a := range b.answers {
		if a != nil {
			out = append(out, a)
		}
	}
	return c.writeLine(append(append([]byte("["), bytes.Join(out, []byte(","))...), ']'))
}
