package usage

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/packed"
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
	b = packed.AppendNumber(packed.AppendNumber(b, int(unix(m.Last))), m.Count)
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
