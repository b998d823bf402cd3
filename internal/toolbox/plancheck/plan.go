// Package plancheck checks a plan of tool calls against the schemas and declared needs of
// the tools, past use and the intent, and repairs it. It neither makes plans nor runs tools.
package plancheck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
)

// Limits on one plan.
const (
	MaxCalls   = 60
	MaxEdges   = 2000
	MaxIntent  = 8 << 10 // bytes
	MaxRetries = 5
	MaxTimeout = 600 // seconds
)

// Plan is a list of calls, or a graph of calls if it has edges.
type Plan struct {
	// Intent is the task in words; without it, only the plan itself is checked.
	Intent string `json:"intent,omitempty"`
	Calls  []Call `json:"calls"`
	// Edges are the order of the calls; nil means that they run in the order of the list.
	Edges []Edge `json:"edges,omitzero"`
	// Parameters are values by name, which "$params.NAME" in an argument refers to. A value
	// of null must be set before a run.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Folder is the folder of saved plans. A saved plan is a document NAME.md, see ReadDocument.
const Folder = ".cairn/plans"

// params is the ID that stands for the parameters in references.
const params = "params"

// Call is one use of a tool.
type Call struct {
	ID   string `json:"id"`   // "c0", "c1", … if the caller gave none
	Tool string `json:"tool"` // its ID, or a name that only one server has
	// Arguments are the arguments by name. A string "$ID" or "$ID.output" is the output of
	// another call, and "${ID.output}" in a longer text becomes its text. Nil means that the
	// plan does not state arguments, which are then not checked.
	Arguments map[string]any `json:"arguments,omitzero"`
	// Retries is how often a run repeats the call after an error of the tool, and Timeout
	// its time limit in seconds; 0 means the default.
	Retries int `json:"retries,omitempty"`
	Timeout int `json:"timeout_s,omitempty"`
	// Takes are the inputs of the tool; Fill needs them.
	Takes []catalog.Parameter `json:"-"`
}

// Edge means that call To waits for call From. Input, if not empty, is the argument of To
// that From supplies, from the path Output in its result.
type Edge struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
}

// readJSON decodes a part of a plan. Its errors contain no types of Go.
func readJSON(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(bad.Field), "call.")+": got "+bad.Value, ": "))
	}
	return err
}

// ReadPlan reads a plan: an array of calls, an object with "calls", or the result of
// suggest_dag or its "dag". A call may be the name of a tool.
func ReadPlan(raw json.RawMessage) (Plan, error) {
	var p Plan
	if trimmed := strings.TrimSpace(string(raw)); strings.HasPrefix(trimmed, "[") {
		raw = json.RawMessage(`{"calls":` + trimmed + `}`)
	}
	var in struct {
		Intent string

		Parameters map[string]any

		Calls []json.RawMessage
		Nodes []json.RawMessage
		Edges []struct {
			Edge
			FromTask string `json:"from_task"`
			ToTask   string `json:"to_task"`
			DataPath string
		}
		DAG json.RawMessage
	}
	if err := readJSON(raw, &in); err != nil {
		return p, fmt.Errorf("want an array of calls, or an object with calls or a dag: %w", err)
	}
	p.Intent, p.Parameters = in.Intent, in.Parameters
	if in.DAG != nil {
		if err := readJSON(in.DAG, &in); err != nil { // its dag, if any, is ignored
			return p, fmt.Errorf("dag: %w", err)
		}
	}
	for i, c := range append(in.Calls, in.Nodes...) {
		call, err := readCall(c, i, i < len(in.Calls))
		if err != nil {
			return p, err
		}
		p.Calls = append(p.Calls, call)
	}
	if in.Edges != nil {
		p.Edges = []Edge{}
	}
	for _, e := range in.Edges {
		if e.Edge.Input == "" {
			var from string
			from, e.Edge.Input, _ = strings.Cut(e.DataPath, " → input.")
			if path, ok := strings.CutPrefix(from, "output."); ok && e.Edge.Input != "" {
				e.Edge.Output = path
			}
		}
		e.Edge.From, e.Edge.To = cmp.Or(e.FromTask, e.Edge.From), cmp.Or(e.ToTask, e.Edge.To)
		p.Edges = append(p.Edges, e.Edge)
	}
	return p, p.check()
}

// ReadDocument reads the plan in a Markdown document: its first block of JSON. Its title is
// the intent of a plan without one.
func ReadDocument(text string) (Plan, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	_, block, _ := strings.Cut(text, "\n```json\n")
	block, _, ok := strings.Cut(block, "\n```")
	if !ok {
		return Plan{}, errors.New("the document has no block of JSON")
	}
	p, err := ReadPlan(json.RawMessage(block))
	title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	p.Intent = cmp.Or(p.Intent, title)
	return p, err
}

// Set sets a parameter. The text is JSON if the present value is neither a text nor null.
func (p *Plan) Set(name, text string) error {
	old, ok := p.Parameters[name]
	if !ok {
		return fmt.Errorf("no parameter %q, want one of {%s}", name, strings.Join(slices.Sorted(maps.Keys(p.Parameters)), ","))
	}
	var value any = text
	if _, isText := old.(string); !isText && old != nil {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	p.Parameters[name] = value
	return nil
}

// readCall reads call i. A strict one has no unknown members: a run would ignore a condition or a
// loop, and arguments under another name.
func readCall(raw json.RawMessage, i int, strict bool) (Call, error) {
	var c struct {
		Call
		Name, ToolID, Description string
		Inputs                    map[string]any
	}
	if json.Unmarshal(raw, &c.Tool) != nil {
		if err := readJSON(raw, &c); err != nil {
			return Call{}, fmt.Errorf("calls[%d]: want the name of a tool, or an object with tool and arguments: %w", i, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); strict && err != nil {
			return Call{}, fmt.Errorf("calls[%d]: %s, want {id,tool,arguments,description,retries,timeout_s}; edges state the order", i, strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	if c.Arguments == nil && len(c.Inputs) > 0 {
		c.Arguments = c.Inputs
	}
	c.ID, c.Tool = cmp.Or(c.ID, fmt.Sprintf("c%d", i)), cmp.Or(c.Tool, c.ToolID, c.Name)
	return c.Call, nil
}

func (p *Plan) check() error {
	switch {
	case len(p.Calls) == 0:
		return errors.New("a plan without calls")
	case len(p.Calls) > MaxCalls:
		return fmt.Errorf("%d calls, want at most %d", len(p.Calls), MaxCalls)
	case len(p.Edges) > MaxEdges:
		return fmt.Errorf("%d edges, want at most %d", len(p.Edges), MaxEdges)
	case len(p.Intent) > MaxIntent:
		return fmt.Errorf("an intent of %d bytes, want at most %d", len(p.Intent), MaxIntent)
	}
	seen := map[string]bool{}
	for i, c := range p.Calls {
		if p.Parameters != nil && c.ID == params {
			return fmt.Errorf("a call has the id %q, which stands for the parameters", params)
		}
		if !idPattern.MatchString(c.ID) { // no argument could refer to it
			return fmt.Errorf("calls[%d]: the id is %q, want letters, digits, - and _", i, c.ID)
		}
		if strings.TrimSpace(c.Tool) == "" {
			return fmt.Errorf("calls[%d] names no tool", i)
		}
		if seen[c.ID] {
			return fmt.Errorf("two calls have the id %q", c.ID)
		}
		if min(c.Retries, c.Timeout) < 0 || c.Retries > MaxRetries || c.Timeout > MaxTimeout {
			return fmt.Errorf("calls[%d]: %d retries and %d seconds, want at most %d and %d", i, c.Retries, c.Timeout, MaxRetries, MaxTimeout)
		}
		seen[c.ID] = true
	}
	return nil
}

// clone returns a copy of which calls, arguments and edges can be changed.
func (p *Plan) clone() *Plan {
	q := *p
	q.Calls, q.Edges = slices.Clone(p.Calls), slices.Clone(p.Edges)
	for i := range q.Calls {
		q.Calls[i].Arguments = maps.Clone(q.Calls[i].Arguments)
	}
	return &q
}

// Position returns the position of a call, −1 if there is none.
func (p *Plan) Position(id string) int {
	return slices.IndexFunc(p.Calls, func(c Call) bool { return c.ID == id })
}

// explicit returns the pairs of positions of which the second waits for the first: the edges,
// or without edges the order of the list.
func (p *Plan) explicit() [][2]int {
	var pairs [][2]int
	if p.Edges == nil {
		for j := range max(0, len(p.Calls)-1) {
			pairs = append(pairs, [2]int{j, j + 1})
		}
	}
	for _, e := range p.Edges {
		if i, j := p.Position(e.From), p.Position(e.To); i >= 0 && j >= 0 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

// Waits returns the explicit pairs, and those of the references that do not contradict them.
func (p *Plan) Waits() [][2]int {
	pairs := p.explicit()
	for j, c := range p.Calls {
		for _, r := range references(map[string]any(c.Arguments)) {
			if i := p.Position(r.call); i >= 0 && !suggest.Reaches(pairs, j, i) && !suggest.Reaches(pairs, i, j) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

// Layers returns the IDs of the calls so that each layer waits only for those before it.
func (p *Plan) Layers() ([][]string, error) {
	tasks := make([]taskdag.Task, len(p.Calls))
	for i := range p.Calls {
		tasks[i].ID = p.Calls[i].ID
	}
	for _, w := range p.Waits() {
		tasks[w[1]].DependsOn = append(tasks[w[1]].DependsOn, p.Calls[w[0]].ID)
	}
	g, err := taskdag.New(tasks)
	if err != nil {
		return nil, err
	}
	return g.Groups()
}
