package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits on what a Session keeps to see the flow of data: of a result in bytes, and the
// shortest value that is no coincidence.
const (
	maxSeen   = 16 << 10
	maxValues = 50 // of one call
	minValue  = 4
)

// Called records a call of a tool with the text of its result. The calls since the last
// search for tools are one trace. An argument that an earlier result contains, and no earlier
// argument, makes an edge.
func (r *Session) Called(c Call, result string) {
	r.touch()
	if len(r.calls.Calls) == MaxCalls {
		r.addInferred()
	}
	now := len(r.calls.Calls)
	r.calls.Intent = r.tools.query
	for _, value := range values(c.Arguments) {
		edge := [2]int{r.origin(value), now}
		if edge[0] >= 0 && len(r.calls.Edges) < MaxEdges && !slices.Contains(r.calls.Edges, edge) {
			r.calls.Edges = append(r.calls.Edges, edge)
		}
	}
	r.calls.Calls = append(r.calls.Calls, c)
	r.results = append(r.results, strings.Clone(result[:min(len(result), maxSeen)]))
	r.last = c.Tool
}

// Ran records the calls of a plan that cairn has run.
func (r *Session) Ran(t Trace) {
	r.touch()
	var ids []string
	for _, c := range t.Calls {
		ids = append(ids, c.Tool)
	}
	r.replace(ids)
	r.add(Change{Traces: []Trace{t}})
}

// origin returns the position of the last call whose result contains a value, -1 if there is
// none or an argument had the value before.
func (r *Session) origin(value string) int {
	from := -1
	for i, c := range r.calls.Calls {
		if strings.Contains(string(c.Arguments), value) {
			return from
		}
		if strings.Contains(r.results[i], value) {
			from = i
		}
	}
	return from
}

// values returns the texts and numbers in the values of arguments that are long enough.
func values(raw json.RawMessage) (found []string) {
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				visit(e)
			}
		case []any:
			for _, e := range v {
				visit(e)
			}
		case string, json.Number:
			if text := fmt.Sprint(v); len(text) >= minValue && len(found) < maxValues {
				found = append(found, text)
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) == nil {
		visit(v)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// takeCalls returns the calls as a change, and drops the weak observations about their tools.
func (r *Session) takeCalls() (c Change) {
	if len(r.calls.Calls) == 0 {
		return c
	}
	var ids []string
	for _, call := range r.calls.Calls {
		ids = append(ids, call.Tool)
	}
	r.replace(ids)
	c.Traces = []Trace{r.calls}
	r.calls, r.results = Trace{}, nil
	return c
}
