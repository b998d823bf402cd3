package tools

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// asWritten begins an id that stands for one the SDK would change: the rest is
// the JSON text of what the client sent.
const asWritten = "\x00"

// exactID returns an id that the SDK takes through unchanged. It reads every
// number as a float and makes an int64 of it, so that 1.5 and 1, and all
// nanoseconds of the clock within 256 of each other, would be one id, and a
// client would wait for an answer that another has got. text is the id as sent.
func exactID(id jsonrpc.ID, text json.RawMessage) jsonrpc.ID {
	switch v := id.Raw().(type) {
	case int64:
		if string(text) == strconv.FormatInt(v, 10) {
			return id
		}
	case string:
		if !strings.HasPrefix(v, asWritten) {
			return id
		}
	default:
		return id
	}
	if len(text) == 0 {
		return id
	}
	exact, err := jsonrpc.MakeID(asWritten + string(text))
	if err != nil {
		return id // unreachable: a string is an id
	}
	return exact
}

// written is id as the client wrote it, ready for encoding/json.
func written(id jsonrpc.ID) any {
	if s, ok := id.Raw().(string); ok {
		if text, ok := strings.CutPrefix(s, asWritten); ok {
			return json.RawMessage(text)
		}
	}
	return id.Raw()
}

// isID reports whether a JSON value is an id that a message can have: a string,
// or a number that whoever reads the answer can hold.
func isID(value json.RawMessage) bool {
	if len(value) > 0 && value[0] == '"' {
		return true
	}
	_, err := strconv.ParseFloat(string(value), 64)
	return err == nil
}

// idWithin is how much of both ends of a message that is too long is searched
// for its id, in bytes. Clients write it before the parameters or last of all.
const idWithin = 512

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
	// What closes last is the message itself.
	if m := lastID.FindSubmatch(end); m != nil && isID(m[1]) {
		return json.RawMessage(m[1])
	}
	return nil
}
