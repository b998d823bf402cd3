package usage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"cairn/internal/text/secret"
)

// MaxExample bounds the arguments kept as the example of a tool, in bytes of JSON, and
// maxExamples the number of examples.
const (
	MaxExample  = 2 << 10
	maxExamples = 50_000
)

// example is the shortest arguments of a successful call.
type example struct {
	arguments json.RawMessage // without white space, with secrets masked
	last      uint64          // time of the observation, in Unix seconds
}

// encode returns the record of an example: the time, 8 bytes, little-endian, and the JSON.
func (e *example) encode() []byte {
	return append(binary.LittleEndian.AppendUint64(nil, e.last), e.arguments...)
}

func decodeExample(b []byte) (example, error) {
	if len(b) < 8 || !json.Valid(b[8:]) {
		return example{}, errors.New("a damaged example of a call")
	}
	return example{bytes.Clone(b[8:]), binary.LittleEndian.Uint64(b)}, nil
}

// keep adds the arguments of a tool to the delta if they are shorter than the example.
// The caller holds s.mu for reading.
func (s *Store) keep(d *delta, tool string, arguments json.RawMessage, now time.Time) {
	old, known := latest(d.examples, s.examples, tool)
	if !known && len(s.examples)+len(d.examples) < maxExamples || known && len(arguments) < len(old.arguments) {
		d.examples[tool] = &example{arguments, unix(now)}
	}
}

// Example returns the shortest known arguments of a successful call of a tool; nil if there
// are none.
func (s *Store) Example(_ context.Context, tool string) (arguments json.RawMessage, err error) {
	err = s.view(func() error {
		arguments = s.examples[tool].arguments
		return nil
	})
	return arguments, err
}

// addExamples adds the arguments of the successful calls of a trace to found, by tool, with
// secrets masked. The shortest of each tool remain.
func addExamples(found map[string]json.RawMessage, t *Trace, masks *secret.Masks) {
	for _, c := range t.Calls {
		var args map[string]any
		if !c.OK() || json.Unmarshal(c.Arguments, &args) != nil || len(args) == 0 {
			continue
		}
		short := masks.Arguments(args)
		if old, known := found[c.Tool]; len(short) <= MaxExample && (!known || len(short) < len(old)) {
			found[c.Tool] = short
		}
	}
}
