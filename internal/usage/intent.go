package usage

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
)

// weakMark ends the record of a weak intent.
const weakMark = 1

// Intent is a request in words and the tools that served it.
type Intent struct {
	Text string `json:"text"`
	// Tools are ids in the order of use; an id may occur twice.
	Tools []string `json:"tools"`
	// Edges are pairs of positions in Tools: the second needed the first's result.
	Edges [][2]int  `json:"edges,omitempty"`
	Last  time.Time `json:"last"`  // when it was last seen, to the second
	Count int       `json:"count"` // how often, at least 1
	// Weak intents were inferred from what an agent looked at. Intents returns them
	// from the third observation on.
	Weak bool `json:"weak,omitempty"`
}

// sameUse reports whether two intents have the same tools and edges.
func (m *Intent) sameUse(o *Intent) bool {
	return m.Text == o.Text && slices.Equal(m.Tools, o.Tools) && slices.Equal(m.Edges, o.Edges)
}

// again returns m observed at now, after old if known is true. A weak observation
// does not change a reported intent.
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

// normal returns the form of a text that identifies an intent: in lower case, with
// single spaces.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func (m *Intent) key() []byte {
	h := sha256.New()
	h.Write([]byte(normal(m.Text)))
	for _, tool := range slices.Compact(slices.Sorted(slices.Values(m.Tools))) {
		h.Write([]byte("\x00" + tool))
	}
	return h.Sum(nil)[:16]
}

// appendIntent writes an intent: last observation (Unix seconds) and count as
// unsigned varints, the text, the number of tools and each of them, the number of
// edges and both ends of each, and weakMark on those that are weak. Texts follow
// their length in bytes; all numbers are unsigned varints.
func appendIntent(b []byte, m *Intent) []byte {
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, unix(m.Last)), uint64(m.Count))
	text(m.Text)
	b = binary.AppendUvarint(b, uint64(len(m.Tools)))
	for _, tool := range m.Tools {
		text(tool)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Edges)))
	for _, e := range m.Edges {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e[0])), uint64(e[1]))
	}
	if m.Weak {
		b = append(b, weakMark)
	}
	return b
}

var errIntent = errors.New("a stored intent is damaged")

func decodeIntent(b []byte) (m Intent, err error) {
	bad := false
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<40 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return int(v)
	}
	size := func() int { // a length or count: each entry takes at least one byte
		n := number()
		if n > len(b) {
			bad, b = true, nil
			return 0
		}
		return n
	}
	text := func() string {
		n := size()
		s := string(b[:n])
		b = b[n:]
		return s
	}
	m.Last = time.Unix(int64(number()), 0)
	m.Count = number()
	m.Text = text()
	for range size() {
		m.Tools = append(m.Tools, text())
	}
	for range size() {
		e := [2]int{number(), number()}
		bad = bad || max(e[0], e[1]) >= len(m.Tools)
		m.Edges = append(m.Edges, e)
	}
	if m.Weak = len(b) == 1 && b[0] == weakMark; m.Weak {
		b = nil
	}
	if bad || len(b) > 0 || len(m.Tools) == 0 {
		return Intent{}, errIntent
	}
	return m, nil
}
