package plancheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Kind is the kind of a fault in a plan.
type Kind string

// The kinds of faults, in the order in which a report lists them.
const (
	UnknownTool  Kind = "unknown_tool"  // no tool, or several, have the name
	WrongTool    Kind = "wrong_tool"    // another tool fits the arguments or the intent
	WrongInput   Kind = "wrong_input"   // an argument that the tool does not have
	WrongType    Kind = "wrong_type"    // a value that the schema does not allow
	TypeConflict Kind = "type_conflict" // an output of a type that the input does not allow
	MissingInput Kind = "missing_input" // a required input without a value
	Cycle        Kind = "cycle"         // calls that wait for each other
	WrongOrder   Kind = "wrong_order"   // a call that runs before one that it needs
	MissingEdge  Kind = "missing_edge"  // calls without order, of which one needs the other
	MissingStep  Kind = "missing_step"  // a call that the plan needs and lacks
	Unguarded    Kind = "unguarded"     // an irreversible call that the intent does not request
)

var kinds = []Kind{UnknownTool, Cycle, WrongTool, WrongInput, WrongType, TypeConflict, MissingInput, WrongOrder, MissingStep, MissingEdge, Unguarded}

// Finding is a fault of a plan.
type Finding struct {
	Kind  Kind   `json:"kind"`
	Call  string `json:"call,omitempty"` // the ID of a call
	Tool  string `json:"tool,omitempty"` // the ID of its tool
	Input string `json:"input,omitempty"`
	// Example is the shortest known arguments of a successful call of the tool, if its
	// arguments are wrong.
	Example json.RawMessage `json:"example,omitempty"`
	// Evidence explains the finding in words.
	Evidence string `json:"evidence"`
	// Repair is what the repaired plan does about it; "" if it does nothing.
	Repair string `json:"repair,omitempty"`
	// Candidates lists the IDs of tools, or of calls of the plan, that could repair it, the
	// best first.
	Candidates []string `json:"candidates,omitempty"`
	// Confidence is 1 for what the schemas and the catalogue state, less for evidence from
	// use and from the meaning of the intent.
	Confidence float64 `json:"confidence"`

	repair func(p *Plan)
}

// Report is the result of Check.
type Report struct {
	// Score is the estimated probability that the plan has no fault.
	Score    float64   `json:"score"`
	Findings []Finding `json:"findings"`
	// Repaired is the plan with every repair; nil if there is none.
	Repaired *Plan `json:"repaired,omitempty"`
	// Signs are the features of the score, see Signs.
	Signs Signs `json:"signs"`
}

// checker checks one plan.
type checker struct {
	ctx     context.Context
	index   *toolsearch.Index
	plan    *Plan
	tools   []*catalog.Tool // by position of the call; nil if unknown
	waits   [][2]int        // as Plan.Waits returns them
	ranking *toolsearch.Ranking
	miss    []float64 // by call: how much worse it fits every part than the best tool
	out     Report
}

func (c *checker) find(f Finding) {
	if i := c.plan.Position(f.Call); i >= 0 {
		f.Tool = c.plan.Calls[i].Tool
	}
	c.out.Findings = append(c.out.Findings, f)
}

// Check checks a plan over the tools of an index. lookup returns the tool of a name, and is
// catalog.Lookup; its other errors end the check.
func Check(ctx context.Context, x *toolsearch.Index, lookup func(name string) (catalog.Tool, error), p Plan) (*Report, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	c := &checker{ctx: ctx, index: x, plan: p.clone(), waits: p.Waits(), out: Report{Findings: []Finding{}}}
	if err := c.names(lookup); err != nil {
		return nil, err
	}
	if strings.TrimSpace(p.Intent) != "" {
		var err error
		if c.ranking, err = x.Rank(ctx, p.Intent, toolsearch.Suggesting(nil)); err != nil {
			return nil, err
		}
	}
	if err := c.arguments(); err != nil {
		return nil, err
	}
	c.order()
	if slices.ContainsFunc(c.out.Findings, func(f Finding) bool { return f.Confidence == 1 }) {
		c.out.Signs.Schema = 1
	}
	c.fits()
	c.guards()
	slices.SortStableFunc(c.out.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)))
	})
	for i := range c.out.Findings {
		if f := &c.out.Findings[i]; f.repair != nil {
			if c.out.Repaired == nil {
				c.out.Repaired = c.plan.clone()
			}
			f.repair(c.out.Repaired)
		}
	}
	c.out.Score = c.out.Signs.score()
	return &c.out, nil
}

// names replaces the names of tools by their IDs, and finds the tools of the calls.
func (c *checker) names(lookup func(string) (catalog.Tool, error)) error {
	c.tools = make([]*catalog.Tool, len(c.plan.Calls))
	for i := range c.plan.Calls {
		call := &c.plan.Calls[i]
		t, err := lookup(call.Tool)
		var near []string
		if e, ok := errors.AsType[*catalog.UnknownError](err); ok {
			near = e.Nearest
		} else if e, ok := errors.AsType[*catalog.AmbiguousError](err); ok {
			near = e.Candidates[:min(len(e.Candidates), maxCandidates)]
		} else if err != nil {
			return err
		} else {
			c.tools[i], call.Tool = &t, t.ID
			continue
		}
		f := Finding{Kind: UnknownTool, Call: call.ID, Evidence: err.Error(), Candidates: near, Confidence: 1}
		if len(near) > 0 {
			f.Repair, f.repair = "call "+near[0], swap(call.ID, near[0])
			if t, err := lookup(near[0]); err == nil {
				c.tools[i] = &t // the arguments are checked as those of the repair
			}
		}
		c.find(f)
	}
	return nil
}

// maxCandidates bounds the candidates of a finding.
const maxCandidates = 5

// swap returns a repair that calls another tool.
func swap(call, tool string) func(*Plan) {
	return func(p *Plan) {
		if i := p.Position(call); i >= 0 {
			p.Calls[i].Tool = tool
		}
	}
}

// assign returns a repair that sets an argument of a call.
func assign(call, input string, value any) func(*Plan) {
	return func(p *Plan) { p.Calls[p.Position(call)].Arguments[input] = value }
}

// insert returns a repair that calls a tool too, after some calls and before others.
func insert(tool string, before, after []string) func(*Plan) {
	return func(p *Plan) {
		id := fmt.Sprintf("c%d", len(p.Calls))
		for n := len(p.Calls); p.Position(id) >= 0; n++ {
			id = fmt.Sprintf("c%d", n)
		}
		at := len(p.Calls)
		for _, a := range after {
			if i := p.Position(a); i >= 0 {
				at = min(at, i)
			}
		}
		p.Calls = slices.Insert(p.Calls, at, Call{ID: id, Tool: tool})
		for _, b := range before {
			p.link(b, id)
		}
		for _, a := range after {
			p.link(id, a)
		}
	}
}

// link adds an edge, unless the plan is a list or has the edge.
func (p *Plan) link(from, to string) {
	if i, j := p.Position(from), p.Position(to); p.Edges != nil && i >= 0 && j >= 0 && i != j && !slices.Contains(p.explicit(), [2]int{i, j}) {
		p.Edges = append(p.Edges, Edge{From: from, To: to})
	}
}
