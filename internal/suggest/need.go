package suggest

import (
	"slices"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/toolsearch"
)

// maxProducers bounds the tools with an output that matches an input. When more
// tools have one, such as a text or a count, none of them is a prerequisite.
const maxProducers = 3

// needed reports whether an input needs a value from the intent or another tool.
func needed(p *catalog.Parameter) bool {
	return p.Required && !p.Settled && !strings.Contains(p.Path, ".")
}

// step is a tool of a plan that is being built.
type step struct {
	tool catalog.Tool
	args map[string]any
	// chosen is the ranking's entry; nil for a given tool or a prerequisite.
	chosen *toolsearch.Candidate
	fit    float64 // in [0, 1]
	why    string
}

// prerequisites adds the tools that the steps need, until none is missing or the
// plan is full: tools they are declared to need and, for a required input that no
// argument and no step supplies, a tool with an output of that name.
func prerequisites(x *toolsearch.Index, steps []step, literals []Literal) []step {
	in := map[string]bool{}
	for _, s := range steps {
		in[s.tool.ID] = true
	}
	add := func(id string, fit float64, why string) {
		if t, ok := x.Tool(id); ok && !in[id] && len(steps) < maxSteps {
			in[id] = true
			steps = append(steps, step{tool: t, args: arguments(&t, literals), fit: fit, why: why})
		}
	}
	for i := 0; i < len(steps); i++ {
		id := steps[i].tool.ID
		for _, n := range x.DirectNeeds(id) {
			add(n, steps[i].fit, "declared to be needed by "+id)
		}
		for p := range steps[i].tool.Takes {
			in := &steps[i].tool.Takes[p]
			if !needed(in) || steps[i].args[in.Path] != nil || supplied(steps, i, in) || plainName(in.Name) {
				continue
			}
			found := x.Producers(in.Name)
			found = slices.DeleteFunc(slices.Clone(found), func(p string) bool { return p == id || !produces(x, p, in) })
			if len(found) > 0 && len(found) <= maxProducers {
				add(nearest(found, steps[i].tool.Server), steps[i].fit, "gives "+in.Name+", which "+id+" requires")
			}
		}
	}
	return steps
}

// supplied reports whether another step has an output that matches an input.
func supplied(steps []step, i int, in *catalog.Parameter) bool {
	for j := range steps {
		if j != i && slices.ContainsFunc(steps[j].tool.Gives, func(out catalog.Parameter) bool { return Grade(out, *in) >= Partial }) {
			return true
		}
	}
	return false
}

// produces reports whether a tool has an output with exactly the name of an input.
func produces(x *toolsearch.Index, id string, in *catalog.Parameter) bool {
	t, ok := x.Tool(id)
	return ok && slices.ContainsFunc(t.Gives, func(out catalog.Parameter) bool { return Grade(out, *in) == Exact })
}

// plainName reports whether a name has common words only, or is a word for free
// text. An output with such a name does not make a tool a prerequisite.
func plainName(name string) bool {
	w := toolsearch.Words(name)
	return !slices.ContainsFunc(w, func(w string) bool { return !slices.Contains(common, w) }) || len(w) == 1 && slices.Contains(freeText, w[0])
}

// nearest returns the first tool of the same server, else the first.
func nearest(ids []string, server string) string {
	if server != "" {
		for _, id := range ids {
			if strings.HasPrefix(id, server+":") {
				return id
			}
		}
	}
	return ids[0]
}
