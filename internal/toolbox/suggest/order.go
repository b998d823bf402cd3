package suggest

import (
	"fmt"
	"math"
	"slices"

	"cairn/internal/toolbox/toolsearch"
)

// Weights of the evidence that one tool comes before another. That of similar intents, and of
// the order in which the intent mentions the tools, is 1.
const (
	// weakOrder is the weight of the order in all observed intents, of an input that the
	// first tool supplies, and of a prerequisite.
	weakOrder     = 0.3
	statedOrder   = 60  // the intent states that the second runs after the first
	declaredOrder = 100 // the catalogue declares that the second needs the first
	// partSharpness is the temperature of the softmax in place.
	partSharpness = 0.05
)

// order arranges the steps in the order with the most evidence and adds the declared,
// stated, learnt and inferred links.
func (p *planner) order(steps []step) {
	ids := make([]string, len(steps))
	var places []float64
	for i := range steps {
		ids[i] = steps[i].tool.ID
		at := 0.0
		if steps[i].chosen != nil {
			at = place(steps[i].chosen.PartScores())
		} else if n := steps[i].needs; n >= 0 {
			at = places[n] // right before the step that needs it
		}
		places = append(places, at)
	}
	e := learntOrder(ids, places, p.ranking, p.index.Usage())
	for _, b := range detect(toolsIn(steps), func(i int, input string) bool { return steps[i].args[input] != nil }) {
		if b.Grade > TypeOnly {
			e.pair[b.From][b.To] += weakOrder * b.Grade
		}
	}
	declared := map[[2]int]bool{}
	for i := range steps {
		for _, n := range p.index.DirectNeeds(ids[i]) {
			if j := slices.Index(ids, n); j >= 0 {
				declared[[2]int{j, i}] = true
				e.pair[j][i] += declaredOrder
			}
		}
	}
	for i := range steps {
		if n := steps[i].needs; n >= 0 {
			e.pair[i][n] += weakOrder
			if after := steps[i].after; after >= 0 {
				e.pair[after][i] += weakOrder
			}
		}
	}
	stated := p.stated(steps)
	for pair, k := range stated {
		if !k.refers || !e.chain { // a chain shows the order better than a word such as "it"
			e.pair[pair[0]][pair[1]] += statedOrder
		}
	}
	order := e.arrange()
	p.chain = e.chain
	place := make([]int, len(order))
	lastPicked := -1
	for at, i := range order {
		place[i] = at
		p.steps = append(p.steps, steps[i])
		if steps[i].chosen == nil {
			continue
		}
		if lastPicked >= 0 && (e.chain || e.links[lastPicked][i] || e.links[i][lastPicked]) {
			p.links.add(place[lastPicked], at, link{kind: LearntEdge, grade: max(TypeOnly, e.trust), reason: "similar past intents ran them one after the other"})
		}
		lastPicked = i
	}
	for i := range steps {
		if n := steps[i].needs; n >= 0 && place[i] < place[n] {
			k := link{kind: InferredEdge, grade: InferredData, reason: steps[i].why}
			if after := steps[i].after; after >= 0 {
				k.kind = LearntEdge
				p.links.add(place[after], place[i], k)
			}
			p.links.add(place[i], place[n], k)
		}
	}
	for _, pair := range stated.pairs() {
		if from, to := place[pair[0]], place[pair[1]]; from < to && !Reaches(p.links.pairs(), from, to) {
			p.links.add(from, to, stated[pair])
		}
	}
	for pair := range declared {
		from, to := place[pair[0]], place[pair[1]]
		if from < to {
			p.links.add(from, to, declaredLink)
		} else if !declared[[2]int{pair[1], pair[0]}] || from > to && pair[0] < pair[1] {
			p.warn("%s is declared to need %s and the reverse, directly or through others; it runs first", ids[pair[1]], ids[pair[0]])
		}
	}
	slices.Sort(p.out.Warnings)
}

// stated returns the links between steps that the intent states by a word such as "then",
// or by a reference to an earlier result.
func (p *planner) stated(steps []step) links {
	found := links{}
	for i := range steps {
		if steps[i].part < 0 {
			continue
		}
		part := &p.ranking.Parts[steps[i].part]
		for _, earlier := range part.After {
			for j := range steps {
				if steps[j].part == earlier {
					found.add(j, i, link{kind: StatedEdge, grade: StatedOrder, reason: fmt.Sprintf("the intent says %q", part.Says)})
				}
			}
		}
		if part.Refers == "" || len(part.After) > 0 {
			continue
		}
		last := -1
		for j := range steps {
			if steps[j].part >= 0 && steps[j].part < steps[i].part &&
				!slices.Contains(p.ranking.Parts[steps[j].part].After, steps[i].part) && (last < 0 || steps[j].part >= steps[last].part) {
				last = j
			}
		}
		if last >= 0 {
			found.add(last, i, link{kind: StatedEdge, grade: StatedOrder, refers: true, reason: fmt.Sprintf("%q refers to an earlier result", part.Refers)})
		}
	}
	return found
}

// evidence is the evidence for the order of every two chosen tools.
type evidence struct {
	pair  [][]float64 // [i][j]: i before j
	links [][]bool    // j waited for i in a past intent
	chain bool        // whether plans of similar intents ran one tool after the other
	trust float64     // trust in those plans, in [0, 1]
}

// place estimates from the scores of a tool for the parts where the intent mentions it: 0
// is the beginning, 1 the end.
func place(scores []float64) float64 {
	if len(scores) < 2 {
		return 0
	}
	top := slices.Max(scores)
	var at, total float64
	for i, s := range scores {
		w := math.Exp((s - top) / partSharpness)
		at += w * float64(i)
		total += w
	}
	return at / total / float64(len(scores)-1)
}

// learntOrder returns the evidence of past use and of the intent's text.
func learntOrder(ids []string, places []float64, r *toolsearch.Ranking, u *toolsearch.Usage) *evidence {
	n := len(ids)
	e := &evidence{pair: make([][]float64, n), links: make([][]bool, n)}
	local := map[[2]string]float64{}
	var chains float64
	for _, nb := range r.Neighbours {
		for _, edge := range nb.Trace.Edges {
			local[[2]string{nb.Trace.Tools[edge[0]], nb.Trace.Tools[edge[1]]}] += nb.Weight
		}
		if k := len(nb.Trace.Tools); k > 1 && len(nb.Trace.Edges) >= k-1 {
			chains += nb.Weight
		}
	}
	e.trust = min(1, chains*r.Trust)
	e.chain = e.trust > 0.5
	for i, a := range ids {
		e.pair[i], e.links[i] = make([]float64, n), make([]bool, n)
		for j, b := range ids {
			if i == j {
				continue
			}
			e.pair[i][j] = local[[2]string{a, b}] - local[[2]string{b, a}] + places[j] - places[i]
			if u != nil {
				e.pair[i][j] += weakOrder * u.Order(a, b)
				e.links[i][j] = u.Linked(a, b) > 0
			}
		}
	}
	return e
}

// arrange returns the order with the most evidence. It moves one tool at a time while that
// increases the evidence. Ties keep the given order.
func (e *evidence) arrange() []int {
	order := make([]int, len(e.pair))
	for i := range order {
		order[i] = i
	}
	value := e.value(order)
	for improved := true; improved; {
		improved = false
		for from := range order {
			for to := range order {
				next := slices.Clone(order)
				tool := next[from]
				next = slices.Insert(slices.Delete(next, from, from+1), to, tool)
				if v := e.value(next); v > value+1e-12 {
					order, value, improved = next, v, true
				}
			}
		}
	}
	return order
}

// value returns the evidence for an order.
func (e *evidence) value(order []int) float64 {
	var sum float64
	for a, i := range order {
		for _, j := range order[a+1:] {
			sum += e.pair[i][j]
		}
	}
	return sum
}
