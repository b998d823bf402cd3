package usage

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cairn/graphrank"
)

// Limits on one trace.
const (
	MaxIntent = 4 << 10 // bytes
	MaxCalls  = 200
	MaxEdges  = 2000
	maxLine   = 1 << 20 // bytes
)

// Trace holds the calls made for one intent.
type Trace struct {
	// Intent is the request in words. Without it, the calls only change the graph.
	Intent string `json:"intent,omitempty"`
	// Calls is in the order of the calls.
	Calls []Call `json:"calls"`
	// Edges holds pairs of positions in Calls. The second call needed a result of the
	// first. A pair of equal positions has no effect.
	Edges [][2]int `json:"edges,omitempty"`
}

// Call is one use of a tool, or of a document under its DocumentID.
type Call struct {
	Tool string `json:"tool"`
	// Success is the outcome. Nil means unknown, which is treated as success.
	Success *bool `json:"success,omitempty" schema:"default=true"`
	// Arguments is the JSON object of the call's arguments, if known.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// OK reports whether the call has not failed.
func (c Call) OK() bool { return c.Success == nil || *c.Success }

// Check returns an error for an invalid trace.
func (t *Trace) Check() error {
	switch {
	case len(t.Calls) == 0:
		return errors.New("calls: none")
	case len(t.Calls) > MaxCalls:
		return fmt.Errorf("calls: %d, want at most %d", len(t.Calls), MaxCalls)
	case len(t.Edges) > MaxEdges:
		return fmt.Errorf("edges: %d, want at most %d", len(t.Edges), MaxEdges)
	case len(t.Intent) > MaxIntent:
		return fmt.Errorf("intent: %d bytes, want at most %d", len(t.Intent), MaxIntent)
	}
	for i, c := range t.Calls {
		if err := checkID(c.Tool); err != nil {
			return fmt.Errorf("calls[%d].tool: %w", i, err)
		}
	}
	for i, e := range t.Edges {
		if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(t.Calls) {
			return fmt.Errorf("edges[%d]: %v, want two positions below %d", i, e, len(t.Calls))
		}
	}
	return nil
}

// uses reports whether a call used a tool.
func (t *Trace) uses(id string) bool {
	return slices.ContainsFunc(t.Calls, func(c Call) bool { return c.Tool == id })
}

// Observations returns the relations in a trace, each once: its edges as dependencies or, if
// it has none, consecutive successful calls as sequences. A trace with edges has no
// sequences, because its other calls can be in any order. Failed calls are ignored. The
// trace must be valid, see Check.
func (t *Trace) Observations() []Observation {
	var observations []Observation
	seen := map[[2]string]bool{}
	add := func(from, to string, typ graphrank.Type) {
		if pair := [2]string{from, to}; from != to && !seen[pair] {
			seen[pair] = true
			observations = append(observations, Observation{From: from, To: to, Type: typ})
		}
	}
	for _, e := range t.Edges {
		if from, to := t.Calls[e[0]], t.Calls[e[1]]; from.OK() && to.OK() {
			add(from.Tool, to.Tool, graphrank.Dependency)
		}
	}
	before := ""
	for _, c := range t.Calls {
		if len(t.Edges) > 0 || !c.OK() {
			continue
		}
		if before != "" {
			add(before, c.Tool, graphrank.Sequence)
		}
		before = c.Tool
	}
	return observations
}

// Memory returns the intent of a trace with its successful tools, in order, and the edges
// between them. ok is false if there is no intent or no tool.
func (t *Trace) Memory() (m Intent, ok bool) {
	m.Text = strings.TrimSpace(strings.ToValidUTF8(t.Intent, ""))
	place := make([]int, len(t.Calls))
	for i, c := range t.Calls {
		place[i] = -1
		if c.OK() {
			place[i] = len(m.Tools)
			m.Tools = append(m.Tools, c.Tool)
		}
	}
	for _, e := range t.Edges {
		if from, to := place[e[0]], place[e[1]]; from >= 0 && to >= 0 && from != to {
			m.Edges = append(m.Edges, [2]int{from, to})
		}
	}
	return m, m.Text != "" && len(m.Tools) > 0
}

// Learn stores the observations, intents and examples of the traces in one transaction: all of
// them or, after an error, none.
func (s *Store) Learn(ctx context.Context, traces ...Trace) error {
	return s.Add(ctx, Change{Traces: traces})
}

// ReadTraces reads one trace from each line. It ignores empty lines and unknown fields. bad has
// an error, "line N: ...", for each invalid line in order; the caller decides whether to learn
// the others. err is the reader's error.
func ReadTraces(r io.Reader) (traces []Trace, bad []error, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\uFEFF")))
		if len(text) == 0 {
			continue
		}
		var t Trace
		err := json.Unmarshal(text, &t)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s: got %s", cmp.Or(wrong.Field, "the trace"), wrong.Value)
		} else if err == nil {
			err = t.Check()
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		traces = append(traces, t)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return traces, bad, fmt.Errorf("line %d: longer than %d bytes", n+1, maxLine)
	}
	return traces, bad, lines.Err()
}
