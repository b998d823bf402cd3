package suggest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// The kinds of edges.
const (
	DataEdge     = "data"     // an output matches an input, by their schemas
	DeclaredEdge = "declared" // the catalogue declares that one tool needs the other
	LearntEdge   = "sequence" // learnt from use
	StatedEdge   = "stated"   // stated in the intent
	InferredEdge = "inferred" // the name of a tool indicates that it returns an input
	TextEdge     = "text"     // the order in the text alone
)

// Grades of edges without schemas. They are less than Alias.
const (
	StatedOrder  = 0.80
	InferredData = 0.55
	TextOrder    = 0.25
)

// link is the evidence, other than a Binding, that one step runs after another.
type link struct {
	kind   string
	grade  float64
	reason string
	input  string // path of the input that an inferred link supplies
	output string // the entity that it supplies
	refers bool   // whether the intent only refers to an earlier result
}

var declaredLink = link{kind: DeclaredEdge, grade: Exact, reason: "the catalogue declares the need"}

// links holds the links of a plan by their two steps. The second step waits for the first.
type links map[[2]int]link

// add adds a link, or keeps an existing one with a better grade. If the grades are equal, a
// link with an input replaces one without.
func (l links) add(from, to int, k link) {
	old, ok := l[[2]int{from, to}]
	if from != to && (!ok || old.grade < k.grade || old.grade == k.grade && old.input == "") {
		l[[2]int{from, to}] = k
	}
}

// pairs returns the steps of all links in order.
func (l links) pairs() [][2]int {
	return slices.SortedFunc(maps.Keys(l), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
}

// feeds reports whether an inferred link supplies an input of a step.
func (l links) feeds(step int, input string) bool {
	for pair, k := range l {
		if pair[1] == step && k.input == input {
			return true
		}
	}
	return false
}

// Reaches reports whether step to waits for step from, directly or through others.
func Reaches(pairs [][2]int, from, to int) bool {
	seen := map[int]bool{from: true}
	for stack := []int{from}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at == to {
			return true
		}
		for _, p := range pairs {
			if p[0] == at && !seen[p[1]] {
				seen[p[1]] = true
				stack = append(stack, p[1])
			}
		}
	}
	return false
}

// learntLinks adds the learnt dependencies between given tools, the strongest first, unless
// they contradict better evidence.
func (p *planner) learntLinks() {
	u := p.index.Usage()
	if u == nil {
		return
	}
	type learnt struct {
		from, to int
		edge     graphrank.Edge
	}
	var found []learnt
	u.Graph(func(g *graphrank.Graph) {
		for i := range p.steps {
			for j := range p.steps {
				a, b := p.steps[i].tool.ID, p.steps[j].tool.ID
				if e, ok := g.Edge(a, b); ok && a != b && e.Type != graphrank.Contains {
					found = append(found, learnt{i, j, e})
				}
			}
		}
	})
	slices.SortStableFunc(found, func(a, b learnt) int {
		return cmp.Or(cmp.Compare(b.edge.Weight(), a.edge.Weight()), cmp.Compare(b.edge.Count, a.edge.Count))
	})
	taken := p.links.pairs()
	for _, b := range detect(toolsIn(p.steps), p.supplied) {
		if b.Grade > TypeOnly {
			taken = append(taken, [2]int{b.From, b.To})
		}
	}
	for _, f := range found {
		if Reaches(taken, f.to, f.from) {
			continue
		}
		taken = append(taken, [2]int{f.from, f.to})
		p.links.add(f.from, f.to, link{kind: LearntEdge, grade: max(TypeOnly, f.edge.Weight()),
			reason: fmt.Sprintf("past use ran them in this order, %.0f×", max(1, f.edge.Count))})
	}
}

// toolsIn returns the tools of steps.
func toolsIn(steps []step) []catalog.Tool {
	tools := make([]catalog.Tool, len(steps))
	for i := range steps {
		tools[i] = steps[i].tool
	}
	return tools
}

func (p *planner) supplied(i int, input string) bool { return p.steps[i].args[input] != nil }

// forward drops the bindings against the order of the steps, with a warning, and those that
// are unlikely because similar plans were chains.
func (p *planner) forward(bindings []Binding) []Binding {
	return slices.DeleteFunc(bindings, func(b Binding) bool {
		if b.From < b.To {
			// If similar plans were chains, the name of an optional input is too little
			// evidence to connect steps that are not adjacent.
			_, linked := p.links[[2]int{b.From, b.To}]
			return p.chain && !b.Input.Required && p.steps[b.From].chosen != nil && p.steps[b.To].chosen != nil && !linked
		}
		how := ""
		if b.Grade == TypeOnly {
			how = " by its type alone"
		}
		p.warn("%s of %s could also come from %s%s, which runs later", b.Input.Path, p.steps[b.To].tool.ID, p.steps[b.From].tool.ID, how)
		return true
	})
}

// inferLinks links each tool that takes the identifier of an entity to the nearest earlier
// tool whose name indicates that it returns the entity, unless a schema has better evidence.
func (p *planner) inferLinks(bindings []Binding) {
	for i := range p.steps {
		st := &p.steps[i]
		for n := range st.tool.Takes {
			in := &st.tool.Takes[n]
			entity := toolsearch.EntityOf(in, st.purpose)
			if entity == nil || strings.Contains(in.Path, ".") || in.Settled || st.args[in.Path] != nil ||
				slices.ContainsFunc(bindings, func(b Binding) bool { return b.To == i && b.Input.Path == in.Path && b.Grade > InferredData }) {
				continue
			}
			for j := i - 1; j >= 0; j-- {
				if p.steps[j].purpose.GivesEntity(entity) && p.steps[j].tool.Server == st.tool.Server && p.steps[j].tool.ID != st.tool.ID {
					if p.chain && !in.Required && Reaches(p.links.pairs(), j, i) {
						break // the chain learnt from past use connects them
					}
					name := strings.Join(entity, " ")
					p.links.add(j, i, link{kind: InferredEdge, grade: InferredData, input: in.Path, output: name,
						reason: fmt.Sprintf("by its name, %s gives a %s, which %s takes", p.steps[j].tool.ID, name, in.Path)})
					break
				}
			}
		}
	}
}

// textLinks links each chosen tool to the chosen tool before it, unless it already waits
// for that tool.
func (p *planner) textLinks(bindings []Binding) {
	pairs := p.links.pairs()
	for _, b := range bindings {
		pairs = append(pairs, [2]int{b.From, b.To})
	}
	last := -1
	for i := range p.steps {
		if p.steps[i].chosen == nil {
			continue
		}
		if last >= 0 && !Reaches(pairs, last, i) {
			p.links.add(last, i, link{kind: TextEdge, grade: TextOrder, reason: "only the order of the text"})
		}
		last = i
	}
}

// edges adds the edges of the bindings and links to the answer. at holds the place of each
// step in the plan.
func (p *planner) edges(plan *plan, tools []catalog.Tool, at []int) {
	withData := map[[2]int]bool{}
	for _, b := range plan.Bindings {
		pair := [2]int{b.From, b.To}
		withData[pair] = true
		p.out.DAG.Edges = append(p.out.DAG.Edges, Edge{From: tools[b.From].ID, To: tools[b.To].ID, DataPath: b.DataPath(), Kind: DataEdge,
			Grade: b.Grade, Ambiguous: b.Ambiguous, Reason: b.reason(), FromTask: stepID(b.From), ToTask: stepID(b.To)})
	}
	for _, pair := range p.links.pairs() {
		k := p.links[pair]
		if withData[pair] && k.kind != StatedEdge {
			continue
		}
		e := Edge{From: tools[pair[0]].ID, To: tools[pair[1]].ID, Kind: k.kind, Grade: k.grade, Reason: k.reason,
			FromTask: stepID(pair[0]), ToTask: stepID(pair[1])}
		if k.input != "" {
			e.DataPath = k.output + " → input." + k.input
		}
		p.out.DAG.Edges = append(p.out.DAG.Edges, e)
	}
	slices.SortStableFunc(p.out.DAG.Edges, func(a, b Edge) int {
		place := func(task string) int { return at[position(task)] }
		return cmp.Or(place(a.FromTask)-place(b.FromTask), place(a.ToTask)-place(b.ToTask), cmp.Compare(a.DataPath, b.DataPath))
	})
}
