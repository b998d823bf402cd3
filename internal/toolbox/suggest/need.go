package suggest

import (
	"fmt"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// maxProducers bounds the tools with an output that matches an input. If more tools have
// one, such as a text or a count, none of them is a prerequisite.
const maxProducers = 3

// needed reports whether an input needs a value from the intent or another tool.
func needed(p *catalog.Parameter) bool {
	return p.Required && !p.Settled && !strings.Contains(p.Path, ".")
}

// step is a tool of an incomplete plan.
type step struct {
	tool catalog.Tool
	args map[string]any
	// chosen is the ranking's entry; nil for a given tool or a prerequisite.
	chosen  *toolsearch.Candidate
	part    int // of the intent; -1 for none
	purpose toolsearch.Purpose
	fit     float64 // in [0, 1]
	why     string
	needs   int // the step that needs this prerequisite; -1 for other steps
	after   int // the step after which past use ran this prerequisite; -1 for other steps
}

// has reports whether a step uses a tool.
func has(steps []step, tool string) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return s.tool.ID == tool })
}

// step returns a step that was not chosen.
func (p *planner) step(t catalog.Tool, fit float64, why string) step {
	args := map[string]any{}
	p.values.arguments(&t, span{0, len(p.req.Intent)}, args, true, nil)
	return step{tool: t, args: args, part: -1, needs: -1, after: -1, purpose: toolsearch.PurposeOf(&t), fit: fit, why: why}
}

// prerequisites adds the tools that the steps need, until none is missing or the plan is
// full. It adds the tools that past use ran between two chosen ones, and those that the
// catalogue declares as needed. For a required input that no argument and no step supplies, it
// adds a tool with an output of that name, or one that converts an output of another step to
// the input. A tool that only by its name returns the value becomes Missing.Supplier instead,
// because intents seldom need it (benchmarks/plans.md), unless the server states no needs; see acted.
func (p *planner) prerequisites(steps []step) []step {
	add := func(id string, needs int, why string) {
		if t, ok := p.index.Tool(id); ok && !has(steps, id) && len(steps) < maxSteps {
			st := p.step(t, steps[needs].fit, why)
			st.needs = needs
			steps = append(steps, st)
		}
	}
	for i := range p.picked - 1 {
		for _, pair := range [][2]int{{i, i + 1}, {i + 1, i}} {
			from, to := steps[pair[0]].tool.ID, steps[pair[1]].tool.ID
			if between, n := p.observedBetween(from, to); between != "" && !has(steps, between) {
				add(between, pair[1], fmt.Sprintf("observed between %s and %s, %.0f×", from, to, n))
				steps[len(steps)-1].after = pair[0]
			}
		}
	}
	for i := 0; i < len(steps); i++ {
		id := steps[i].tool.ID
		declared := p.index.DirectNeeds(id)
		for _, n := range declared {
			add(n, i, "declared to be needed by "+id)
		}
		if len(declared) > 0 {
			continue // the catalogue lists all its needs
		}
		for n := range steps[i].tool.Takes {
			in := &steps[i].tool.Takes[n]
			if !needed(in) || steps[i].args[in.Path] != nil || slices.ContainsFunc(steps, func(s step) bool { return s.tool.ID != id && gives(&s.tool, in, Partial) }) {
				continue
			}
			if producer := p.producer(&steps[i], in); producer != "" {
				add(producer, i, "gives "+in.Name+", which "+id+" requires")
			} else if converter := p.converter(steps, i, in); converter != "" {
				add(converter, i, "makes "+in.Name+", which "+id+" requires, of what another tool gives")
			}
		}
		if entity := p.acted(&steps[i]); entity != nil {
			if giver := p.giver(steps, i, entity); giver != "" {
				add(giver, i, "by its name finds the "+strings.Join(entity, " ")+" that "+id+" is to act on")
			}
		}
	}
	return steps
}

// leastObserved is the number of observations at which observedBetween returns a tool.
const leastObserved = 2

// observedBetween returns the tool that past use ran most often after one chosen tool and
// before another, and how often, unless it ran these two directly one after the other as often.
// It returns "" if past intents chose the tools.
func (p *planner) observedBetween(from, to string) (id string, n float64) {
	u := p.index.Usage()
	if u == nil || p.ranking.Trust >= trusted {
		return "", 0
	}
	u.Graph(func(g *graphrank.Graph) {
		direct, _ := g.Edge(from, to)
		n = max(leastObserved-1, direct.Count)
		for before := range g.Out(from) {
			if after, ok := g.Edge(before.To, to); ok && before.To != to && min(before.Count, after.Count) > n {
				id, n = before.To, min(before.Count, after.Count)
			}
		}
	})
	return id, n
}

// acted returns the entity that a chosen tool changes, removes or books. It returns nil for
// other tools, if a tool of the server has a required input, because then the schemas state what
// the tools need, and if past intents are trusted.
func (p *planner) acted(st *step) []string {
	if st.chosen == nil || p.ranking.Trust >= trusted || p.index.Requires(st.tool.Server) ||
		st.purpose.Actions&(toolsearch.Changing|toolsearch.Removing|toolsearch.Booking) == 0 {
		return nil
	}
	return st.purpose.Entity
}

// producer returns a tool of the step's server with an output that has the name of an input,
// "" if there is none. The same name in another server, or without servers, often means the
// value of another domain.
func (p *planner) producer(st *step, in *catalog.Parameter) string {
	if st.tool.Server == "" || plainName(in.Name) {
		return ""
	}
	found := slices.DeleteFunc(slices.Clone(p.index.Producers(in.Name)), func(id string) bool {
		t, ok := p.index.Tool(id)
		return id == st.tool.ID || !ok || t.Server != st.tool.Server || !gives(&t, in, Exact)
	})
	if len(found) == 0 || len(found) > maxProducers {
		return ""
	}
	return found[0]
}

// maxConverters bounds the candidates in which converter looks.
const maxConverters = 10

// converter returns one of the best tools for the intent that requires an output of a step
// and returns an object, which the input requires. It returns "" if there is none, or if a
// step already returns such a value. For example, "read a.json and open an issue about it"
// needs a parser in between.
func (p *planner) converter(steps []step, i int, in *catalog.Parameter) string {
	if !slices.Contains(in.Types, "object") {
		return "" // the same type of a number or a text says too little
	}
	fits := func(t *catalog.Tool, in *catalog.Parameter) bool {
		return slices.ContainsFunc(t.Gives, func(out catalog.Parameter) bool {
			return !strings.Contains(out.Path, ".") && len(out.Types) > 0 && len(in.Types) > 0 && compatible(out.Types, in.Types)
		})
	}
	if slices.ContainsFunc(steps, func(s step) bool { return fits(&s.tool, in) }) {
		return ""
	}
	for n := range p.ranking.Candidates[:min(maxConverters, len(p.ranking.Candidates))] {
		c := &p.ranking.Candidates[n]
		t, ok := p.index.Tool(c.ID)
		if !ok || fit(c) < leastFit && c.Whole.BM25 == 0 || !fits(&t, in) || has(steps, c.ID) {
			continue
		}
		for j := range steps {
			if j != i && slices.ContainsFunc(t.Takes, func(x catalog.Parameter) bool {
				return needed(&x) && fits(&steps[j].tool, &x)
			}) {
				return c.ID
			}
		}
	}
	return ""
}

// giver returns a tool of the step's server that by its name reads an entity, "" if there is
// none or another step returns the entity. It is one of the best tools for the intent, does
// not need the identifier itself, and has no further entity in its name. Its verb, then its
// rank, decide.
func (p *planner) giver(steps []step, i int, entity []string) string {
	st := &steps[i]
	if st.chosen == nil || slices.ContainsFunc(steps, func(s step) bool {
		return s.tool.ID != st.tool.ID && s.tool.Server == st.tool.Server && s.purpose.GivesEntity(entity)
	}) {
		return ""
	}
	id, best := "", 0
	for n := range p.ranking.Candidates[:min(considered, len(p.ranking.Candidates))] {
		t, ok := p.index.Tool(p.ranking.Candidates[n].ID)
		if !ok || t.Server != st.tool.Server || t.ID == st.tool.ID {
			continue
		}
		purpose := toolsearch.PurposeOf(&t)
		other := func(w string) bool { return !slices.Contains(entity, w) && !slices.Contains(st.purpose.Entity, w) }
		if !purpose.Reads() || !purpose.GivesEntity(entity) || slices.ContainsFunc(purpose.Entity, other) || slices.ContainsFunc(t.Takes, func(x catalog.Parameter) bool {
			return needed(&x) && slices.Equal(toolsearch.EntityOf(&x, purpose), entity)
		}) {
			continue
		}
		if preference := purpose.Preference(); id == "" || preference < best {
			id, best = t.ID, preference
		}
	}
	return id
}

// plainName reports whether a name has common words only, or is a word of freeText. An
// output with such a name does not make a tool a prerequisite.
func plainName(name string) bool {
	w := toolsearch.Words(name)
	return !slices.ContainsFunc(w, func(w string) bool { return !slices.Contains(common, w) }) || len(w) == 1 && slices.Contains(freeText, w[0])
}
