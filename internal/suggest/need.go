package suggest

import (
	"slices"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/toolsearch"
)

// maxProducers is how many tools may give what an input asks for and still be
// taken for its source: what more give, such as a text or a count, says nothing.
const maxProducers = 3

// needed reports whether an input has to come from somewhere.
func needed(p *catalog.Parameter) bool {
	return p.Required && !p.Settled && !strings.Contains(p.Path, ".")
}

// step is a tool on its way into a plan.
type step struct {
	tool catalog.Tool
	args map[string]any
	// chosen is the ranking's entry; nil for what was given or pulled in.
	chosen *toolsearch.Candidate
	fit    float64 // in [0, 1]
	why    string
}

// prerequisites adds what the steps need, until nothing is missing or the plan
// is full: the tools they are declared to need, and for a required input that
// no argument and no step supplies, the tool that gives it under that name.
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
			found := x.Givers(in.Name)
			found = slices.DeleteFunc(slices.Clone(found), func(p string) bool { return p == id || !gives(x, p, in) })
			if len(found) > 0 && len(found) <= maxProducers {
				add(nearest(found, steps[i].tool.Server), steps[i].fit, "gives "+in.Name+", which "+id+" requires")
			}
		}
	}
	return steps
}

// supplied reports whether another step gives what an input asks for.
func supplied(steps []step, i int, in *catalog.Parameter) bool {
	for j := range steps {
		if j != i && slices.ContainsFunc(steps[j].tool.Gives, func(out catalog.Parameter) bool { return Grade(out, *in) >= Partial }) {
			return true
		}
	}
	return false
}

func gives(x *toolsearch.Index, id string, in *catalog.Parameter) bool {
	t, ok := x.Tool(id)
	return ok && slices.ContainsFunc(t.Gives, func(out catalog.Parameter) bool { return Grade(out, *in) == Exact })
}

// plainName reports whether a name says nothing of what the value is about, or
// is what a person asks for: no tool is its source just by giving one too.
func plainName(name string) bool {
	w := words(name)
	return !slices.ContainsFunc(w, func(w string) bool { return !slices.Contains(common, w) }) || len(w) == 1 && slices.Contains(freeText, w[0])
}

// nearest prefers a tool of the same server.
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
