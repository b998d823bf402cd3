package usage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/packed"
	"cairn/internal/text/secret"
)

// weakMark ends the record of a weak intent.
const weakMark = 1

// Intent is a request in words and the tools that served it.
type Intent struct {
	Text string `json:"text"`
	// Tools holds IDs in the order of use. An ID may occur twice.
	Tools []string `json:"tools"`
	// Edges holds pairs of positions in Tools. The second tool needed a result of the first.
	Edges [][2]int  `json:"edges,omitempty"`
	Last  time.Time `json:"last"`  // time of the last observation, in whole seconds
	Count int       `json:"count"` // number of observations, at least 1
	// Weak reports that the intent was inferred from what an agent looked at. Intents
	// returns it from the third observation on.
	Weak bool `json:"weak,omitempty"`
}

// again returns the intent after an observation of m at the time now. old is the intent
// before it, if known. A weak observation does not change the tools of a reported intent.
func (m *Intent) again(old Intent, known bool, now time.Time) Intent {
	next := *m
	if !known || old.Weak && now.Sub(old.Last) > weakLife {
		old = Intent{Weak: m.Weak}
	} else if m.Weak && !old.Weak {
		next = old
	}
	next.Last, next.Count = now, old.Count+1
	next.Weak = m.Weak && old.Weak && next.Count < graphrank.ObservedAfter
	return next
}

// normal returns the normalized text of an intent: in lower case, with single spaces.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func (m *Intent) key() []byte {
	h := sha256.New()
	h.Write([]byte(normal(m.Text)))
	for _, tool := range slices.Compact(slices.Sorted(slices.Values(m.Tools))) {
		h.Write([]byte("\x00" + tool))
	}
	return h.Sum(nil)[:16]
}

// encode returns the record of an intent: the time of the last observation (Unix
// seconds), the count, the text, the number of tools and each tool. The number of edges,
// both ends of each edge, and, if the intent is weak, weakMark follow. Numbers are unsigned
// varints. A text is its length in bytes and the bytes.
func (m *Intent) encode() []byte {
	b := packed.AppendNumber(packed.AppendNumber(nil, int(unix(m.Last))), m.Count)
	b = packed.AppendList(packed.AppendText(b, m.Text), m.Tools)
	b = packed.AppendNumber(b, len(m.Edges))
	for _, e := range m.Edges {
		b = packed.AppendNumber(packed.AppendNumber(b, e[0]), e[1])
	}
	if m.Weak {
		b = append(b, weakMark)
	}
	return b
}

var errIntent = errors.New("a stored intent is damaged")

func decodeIntent(b []byte) (Intent, error) {
	r := &packed.Reader{Rest: string(b)}
	m := Intent{Last: time.Unix(int64(r.Number()), 0), Count: r.Number(), Text: r.Text(), Tools: r.List()}
	for range r.Length(2) {
		e := [2]int{r.Number(), r.Number()}
		if max(e[0], e[1]) >= len(m.Tools) {
			return Intent{}, errIntent
		}
		m.Edges = append(m.Edges, e)
	}
	if m.Weak = r.Rest == string(rune(weakMark)); m.Weak {
		r.Rest = ""
	}
	if !r.Done() || len(m.Tools) == 0 {
		return Intent{}, errIntent
	}
	return m, nil
}

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

// Example returns the shortest known arguments of a successful call of a tool; nil if there
// are none.
func (s *Store) Example(_ context.Context, tool string) (arguments json.RawMessage, err error) {
	err = s.view(func() {
		arguments = s.examples[tool].arguments
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
