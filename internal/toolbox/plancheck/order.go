package plancheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/toolbox/suggest"
)

// order checks the order of the calls against references, declared needs, data and use.
func (c *checker) order() {
	for j := range c.plan.Calls {
		call := &c.plan.Calls[j]
		for _, r := range references(map[string]any(call.Arguments)) {
			switch i := c.plan.Position(r.call); {
			case i >= 0 && i != j && suggest.Reaches(c.plan.explicit(), j, i):
				c.before(i, j, "its arguments refer to an output of it", 1)
			case i >= 0 && !c.reaches(i, j):
				c.find(Finding{Kind: Cycle, Call: call.ID, Confidence: 1, Evidence: fmt.Sprintf("its arguments refer to an output of %s, which waits for it", r.call)})
			case r.call == params && c.plan.Parameters != nil:
				if _, ok := c.plan.Parameters[r.output]; !ok {
					c.find(Finding{Kind: MissingInput, Call: call.ID, Confidence: 1, Evidence: fmt.Sprintf("the plan has no parameter %q", r.output)})
				}
			case i < 0 && !r.part: // a part of a text can be a variable of another program
				c.find(Finding{Kind: MissingStep, Call: call.ID, Confidence: 1, Evidence: fmt.Sprintf("an argument refers to call %q, which the plan lacks; the text is written $$%[1]s", r.call)})
			}
		}
	}
	for _, e := range c.plan.Edges {
		if c.plan.Position(e.From) < 0 || c.plan.Position(e.To) < 0 {
			c.find(Finding{Kind: MissingStep, Confidence: 1, Evidence: fmt.Sprintf("an edge from %q to %q names a call that the plan lacks", e.From, e.To)})
		}
	}
	if !c.cycle() {
		c.declared()
		c.learnt()
	}
}

// cycle reports calls that wait for each other.
func (c *checker) cycle() bool {
	for i := range c.plan.Calls {
		if !c.reaches(i, i) {
			continue
		}
		f := Finding{Kind: Cycle, Call: c.plan.Calls[i].ID, Confidence: 1, Evidence: "it waits for itself, through other calls"}
		for k, e := range c.plan.Edges {
			if from, to := c.plan.Position(e.From), c.plan.Position(e.To); from >= 0 && to >= 0 && c.reaches(to, from) && !c.needs(c.plan.Calls[to].Tool, c.plan.Calls[from].Tool) {
				f.Repair = fmt.Sprintf("remove the edge from %s to %s", e.From, e.To)
				f.repair = func(p *Plan) { p.Edges = slices.Delete(p.Edges, k, k+1) }
				break
			}
		}
		c.find(f)
		return true
	}
	return false
}

// needs reports whether a tool is declared to need another.
func (c *checker) needs(tool, other string) bool {
	return slices.Contains(c.index.DirectNeeds(tool), other)
}

// reaches reports whether call to waits for call from, directly or through others. A call
// reaches itself if it is part of a cycle.
func (c *checker) reaches(from, to int) bool {
	return slices.ContainsFunc(c.waits, func(w [2]int) bool { return w[0] == from && suggest.Reaches(c.waits, w[1], to) })
}

// declared checks the needs that the catalogue declares.
func (c *checker) declared() {
	lacking := map[string][]string{} // calls by the tool that they need
	for j, t := range c.tools {
		if t == nil {
			continue
		}
		for _, id := range c.index.DirectNeeds(t.ID) {
			i := slices.IndexFunc(c.plan.Calls, func(k Call) bool { return k.Tool == id })
			if i < 0 {
				lacking[id] = append(lacking[id], c.plan.Calls[j].ID)
				continue
			}
			c.before(i, j, "the catalogue declares it", 1)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(lacking)) {
		f := Finding{Kind: MissingStep, Call: lacking[id][0], Confidence: 1, Candidates: []string{id}, Repair: "add a call of " + id,
			Evidence: fmt.Sprintf("%s needs %s, as the catalogue declares", strings.Join(lacking[id], ", "), id)}
		var before []string
		for i := range c.plan.Calls {
			if c.needs(id, c.plan.Calls[i].Tool) {
				before = append(before, c.plan.Calls[i].ID)
			}
		}
		f.repair = insert(id, before, lacking[id])
		if stray := c.stray(lacking[id]); stray >= 0 {
			f.Kind, f.Call, f.Repair = WrongTool, c.plan.Calls[stray].ID, "call "+id
			f.repair = swap(f.Call, id)
		}
		c.find(f)
	}
}

// stray returns the position of a call for which one of the given calls waits, but whose
// tool is declared to need no tool of the plan and is needed by none; −1 if there is none.
func (c *checker) stray(calls []string) int {
	for i, t := range c.tools {
		if t == nil || !slices.ContainsFunc(calls, func(id string) bool { return c.reaches(i, c.plan.Position(id)) }) {
			continue
		}
		related := slices.ContainsFunc(c.plan.Calls, func(k Call) bool {
			return c.needs(t.ID, k.Tool) || c.needs(k.Tool, t.ID)
		})
		if !related {
			return i
		}
	}
	return -1
}

// before reports that call j does not wait for call i, although it needs it.
func (c *checker) before(i, j int, why string, confidence float64) {
	from, to := c.plan.Calls[i].ID, c.plan.Calls[j].ID
	f := Finding{Kind: MissingEdge, Call: to, Confidence: confidence, Candidates: []string{from},
		Evidence: fmt.Sprintf("%s needs %s: %s", c.plan.Calls[j].Tool, c.plan.Calls[i].Tool, why),
		Repair:   fmt.Sprintf("let %s wait for %s", to, from), repair: func(p *Plan) { p.link(from, to) }}
	switch {
	case c.reaches(i, j):
		return
	case c.reaches(j, i):
		f.Kind, f.repair = WrongOrder, reverse(from, to)
		f.Evidence += ", but it runs before it"
	}
	c.find(f)
}

// reverse returns a repair that runs call from before call to, where the plan has the
// opposite order: it exchanges the two in the list, or reverses the edge.
func reverse(from, to string) func(*Plan) {
	return func(p *Plan) {
		i, j := p.Position(from), p.Position(to)
		if i < 0 || j < 0 {
			return
		}
		if p.Edges == nil {
			p.Calls[i], p.Calls[j] = p.Calls[j], p.Calls[i]
			return
		}
		for k, e := range p.Edges {
			if e.From == to && e.To == from {
				p.Edges[k] = Edge{From: from, To: to}
				return
			}
		}
		p.link(from, to)
	}
}

// learnt checks the order against past use: the numbers of traces in which one tool waited
// for the other.
func (c *checker) learnt() {
	u := c.index.Usage()
	if u == nil {
		return
	}
	for i := range c.plan.Calls {
		for j := range c.plan.Calls {
			from, to := c.plan.Calls[i].Tool, c.plan.Calls[j].Tool
			ab, ba := u.Linked(from, to), u.Linked(to, from)
			sign := (ab - ba) / (ab + ba + 1)
			if from == to || sign <= 0 || c.reaches(i, j) {
				continue
			}
			why := fmt.Sprintf("in %.0f past plans of %.0f", ab, ab+ba)
			s, limit := &c.out.Signs.Unordered, limits.Unordered
			if slices.Contains(c.waits, [2]int{j, i}) {
				s, limit = &c.out.Signs.Reversed, limits.Reversed
			} else if c.reaches(j, i) {
				continue // use shows the order of neighbours only
			}
			if sign > *s {
				*s = sign
				if sign > limit {
					c.before(i, j, why, min(.99, c.out.Signs.wrongOrder()))
				}
			}
		}
	}
}
