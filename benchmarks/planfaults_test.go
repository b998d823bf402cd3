package benchmarks

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/plancheck"
	"cairn/internal/toolbox/toolsearch"
)

// goldPlan is a right plan over an index.
type goldPlan struct {
	set   string
	index *toolsearch.Index
	plan  plancheck.Plan
}

func (g *goldPlan) lookup(name string) (catalog.Tool, error) {
	if t, ok := g.index.Tool(name); ok {
		return t, nil
	}
	return catalog.Tool{}, &catalog.UnknownError{Name: name}
}

// fault is a gold plan with one injected fault.
type fault struct {
	kind  string
	plan  plancheck.Plan
	named func(f *plancheck.Finding) bool // whether a finding names the fault
}

// clonePlan returns a copy of a plan.
func clonePlan(p plancheck.Plan) plancheck.Plan {
	p.Calls, p.Edges = slices.Clone(p.Calls), slices.Clone(p.Edges)
	for i := range p.Calls {
		p.Calls[i].Arguments = maps.Clone(p.Calls[i].Arguments)
	}
	return p
}

var referenceTo = regexp.MustCompile(`^\$(c\d+)`)

// uses returns the arguments of a call that refer to another call.
func uses(c *plancheck.Call, id string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Arguments)) {
		if s, ok := c.Arguments[name].(string); ok {
			if m := referenceTo.FindStringSubmatch(s); m != nil && m[1] == id {
				names = append(names, name)
			}
		}
	}
	return names
}

// dropped returns the plan without call i, and without what it supplies.
func dropped(p plancheck.Plan, i int) plancheck.Plan {
	p = clonePlan(p)
	id := p.Calls[i].ID
	p.Calls = slices.Delete(p.Calls, i, i+1)
	for k := range p.Calls {
		for _, name := range uses(&p.Calls[k], id) {
			delete(p.Calls[k].Arguments, name)
		}
	}
	p.Edges = slices.DeleteFunc(p.Edges, func(e plancheck.Edge) bool { return e.From == id || e.To == id })
	return p
}

// mistyped returns a value of another type, as language models write it.
func mistyped(v any) any {
	switch v := v.(type) {
	case string:
		return []any{v}
	case float64, bool:
		return fmt.Sprint(v)
	case []any:
		if len(v) == 1 {
			if _, nested := v[0].([]any); !nested {
				return v[0]
			}
		}
	}
	return nil
}

// sibling returns the most similar tool that the plan lacks.
func sibling(t *testing.T, g *goldPlan, id string) string {
	tool, _ := g.index.Tool(id)
	r, err := g.index.Rank(t.Context(), strings.Join(toolsearch.Words(tool.BareName()), " ")+". "+tool.Description, toolsearch.Terms{NoMemory: true, NoGraph: true, NoPageRank: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Candidates {
		other, _ := g.index.Tool(c.ID)
		if g.plan.Intent == "" && string(other.Input) == string(tool.Input) {
			continue // another plan without a fault
		}
		if c.ID != id && !slices.ContainsFunc(g.plan.Calls, func(k plancheck.Call) bool { return k.Tool == c.ID }) {
			return c.ID
		}
	}
	return ""
}

// faults injects one fault of each kind that a plan can have, at a place chosen by r.
func (g *goldPlan) faults(t *testing.T, r *rand.Rand) (list []fault) {
	p := g.plan
	onCall := func(id string, kinds ...plancheck.Kind) func(*plancheck.Finding) bool {
		return func(f *plancheck.Finding) bool { return f.Call == id && slices.Contains(kinds, f.Kind) }
	}
	if len(p.Calls) > 1 {
		i := r.IntN(len(p.Calls))
		if p.Intent == "" {
			i = r.IntN(len(p.Calls) - 1) // a path without its end is a plan
		}
		tool := p.Calls[i].Tool
		list = append(list, fault{"drop", dropped(p, i), func(f *plancheck.Finding) bool {
			return (f.Kind == plancheck.MissingStep || f.Kind == plancheck.MissingInput) && slices.Contains(f.Candidates, tool)
		}})
	}
	i := r.IntN(len(p.Calls))
	if other := sibling(t, g, p.Calls[i].Tool); other != "" {
		q := clonePlan(p)
		q.Calls[i].Tool = other
		list = append(list, fault{"swap", q, onCall(p.Calls[i].ID, plancheck.WrongTool)})
	}
	type link struct{ from, to int }
	var links []link
	for j := range p.Calls {
		for i := range p.Calls {
			if len(uses(&p.Calls[j], p.Calls[i].ID)) > 0 {
				links = append(links, link{i, j})
			}
		}
	}
	for _, e := range p.Edges {
		at := func(id string) int {
			return slices.IndexFunc(p.Calls, func(c plancheck.Call) bool { return c.ID == id })
		}
		links = append(links, link{at(e.From), at(e.To)})
	}
	if len(links) > 0 {
		l := links[r.IntN(len(links))]
		from, to := p.Calls[l.from].ID, p.Calls[l.to].ID
		q := clonePlan(p)
		for _, name := range uses(&q.Calls[l.to], from) {
			delete(q.Calls[l.to].Arguments, name)
		}
		q.Edges = slices.DeleteFunc(q.Edges, func(e plancheck.Edge) bool { return e.From == from && e.To == to })
		list = append(list, fault{"break", q, onCall(to, plancheck.MissingEdge, plancheck.MissingInput)})
		q = clonePlan(p)
		if q.Edges == nil {
			q.Calls[l.from], q.Calls[l.to] = q.Calls[l.to], q.Calls[l.from]
		}
		for k, e := range q.Edges {
			if e.From == from && e.To == to {
				q.Edges[k] = plancheck.Edge{From: to, To: from}
			}
		}
		list = append(list, fault{"reverse", q, func(f *plancheck.Finding) bool {
			return (f.Kind == plancheck.WrongOrder || f.Kind == plancheck.Cycle) && (f.Call == from || f.Call == to)
		}})
	}
	type place struct {
		call int
		name string
	}
	var places []place
	for i := range p.Calls {
		tool, _ := g.index.Tool(p.Calls[i].Tool)
		for _, in := range tool.Takes {
			if v, ok := p.Calls[i].Arguments[in.Name]; ok && in.Path == in.Name && len(in.Types) == 1 && mistyped(v) != nil {
				if s, ok := v.(string); ok && strings.HasPrefix(s, "$") {
					continue
				}
				places = append(places, place{i, in.Name})
			}
		}
	}
	if len(places) > 0 {
		at := places[r.IntN(len(places))]
		q := clonePlan(p)
		q.Calls[at.call].Arguments[at.name] = mistyped(q.Calls[at.call].Arguments[at.name])
		id := p.Calls[at.call].ID
		list = append(list, fault{"type", q, func(f *plancheck.Finding) bool {
			return f.Kind == plancheck.WrongType && f.Call == id && f.Input == at.name
		}})
	}
	return list
}

// samePlan reports whether a repair equals the gold plan: the same tools, arguments and
// order. Arguments of a call that the plan lacked cannot be known and are ignored.
func samePlan(got *plancheck.Plan, gold plancheck.Plan, ignore string) bool {
	describe := func(p plancheck.Plan) []string {
		name := map[string]string{}
		for _, c := range p.Calls {
			name[c.ID] = c.Tool
		}
		var list []string
		for k, c := range p.Calls {
			args := map[string]any{}
			if c.Tool != ignore {
				for n, v := range c.Arguments {
					if s, ok := v.(string); ok {
						if m := referenceTo.FindStringSubmatch(s); m != nil {
							v = "$" + name[m[1]]
						}
					}
					args[n] = v
				}
			}
			text, _ := json.Marshal(args)
			line := c.Tool + string(text)
			if p.Edges == nil {
				line = fmt.Sprint(k, line)
			}
			list = append(list, line)
		}
		for _, e := range p.Edges {
			list = append(list, name[e.From]+"→"+name[e.To])
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(describe(*got), describe(gold))
}
