package suggest

import (
	"math"
	"slices"

	"cairn/internal/toolsearch"
)

// Weights of the evidence that one tool comes before another.
const (
	localOrder    = 0.8  // net weight of similar intents with this order
	localLink     = 0.5  // in similar intents the second waited for the first
	observedOrder = 0.35 // the order in all observed intents
	textOrder     = 1.3  // the intent mentions the first earlier
	dataOrder     = 0.3  // the first has an output that the second requires
	optionalOrder = 0.2  // the first has an output that the second accepts
	declaredOrder = 100  // the second is declared to need the first
	// farPair is the weight of a pair that is not adjacent.
	farPair = 0.7
	// partSharpness is the temperature of the softmax in place.
	partSharpness = 0.05
)

// evidence is the evidence for the order of every two chosen tools.
type evidence struct {
	pair  [][]float64 // [i][j]: i before j
	links [][]bool    // j waited for i in a past intent
	chain bool        // plans of similar intents ran one tool after the other
	trust float64     // in those plans, in [0, 1]
}

// place estimates where an intent mentions a tool, from its scores for the parts: 0
// is the beginning and 1 the end.
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
	if r != nil {
		for _, nb := range r.Neighbours {
			if nb.Trace == nil {
				continue
			}
			for _, edge := range nb.Trace.Edges {
				local[[2]string{nb.Trace.Tools[edge[0]], nb.Trace.Tools[edge[1]]}] += nb.Weight
			}
			if k := len(nb.Trace.Tools); k > 1 && len(nb.Trace.Edges) >= k-1 {
				chains += nb.Weight
			}
		}
		e.trust = min(1, chains*r.Trust)
		e.chain = e.trust > 0.5
	}
	for i, a := range ids {
		e.pair[i], e.links[i] = make([]float64, n), make([]bool, n)
		for j, b := range ids {
			if i == j {
				continue
			}
			forth, back := local[[2]string{a, b}], local[[2]string{b, a}]
			v := localOrder*(forth-back) + localLink*forth
			if places != nil {
				v += textOrder * (places[j] - places[i])
			}
			if u != nil {
				v += observedOrder * u.Order(a, b)
				e.links[i][j] = u.Linked(a, b) > 0
			}
			e.pair[i][j] = v
		}
	}
	return e
}

// maxExact is the most tools for which arrange tries all orders.
const maxExact = 6

// arrange returns the order with the most evidence, in which adjacent pairs count in
// full. Up to maxExact tools it is the best of all orders. For more, arrange moves
// one tool at a time while that helps. Ties keep the given order.
func (e *evidence) arrange() []int {
	order := make([]int, len(e.pair))
	for i := range order {
		order[i] = i
	}
	if len(order) <= maxExact {
		best, bestValue := slices.Clone(order), e.value(order)
		e.permute(order, 0, &best, &bestValue)
		return best
	}
	value := e.value(order)
	for range 4 * len(order) {
		improved := false
		for from := range order {
			for to := range order {
				if from == to {
					continue
				}
				next := slices.Clone(order)
				tool := next[from]
				next = slices.Insert(slices.Delete(next, from, from+1), to, tool)
				if v := e.value(next); v > value+1e-12 {
					order, value, improved = next, v, true
				}
			}
		}
		if !improved {
			break
		}
	}
	return order
}

func (e *evidence) value(order []int) float64 {
	var sum float64
	for a, i := range order {
		for b := a + 1; b < len(order); b++ {
			w := farPair
			if b == a+1 || e.pair[i][order[b]] >= declaredOrder/2 || e.pair[order[b]][i] >= declaredOrder/2 {
				w = 1
			}
			sum += w * e.pair[i][order[b]]
		}
	}
	return sum
}

// permute tries all orders of order[k:].
func (e *evidence) permute(order []int, k int, best *[]int, bestValue *float64) {
	if k == len(order) {
		if v := e.value(order); v > *bestValue+1e-12 {
			*best, *bestValue = slices.Clone(order), v
		}
		return
	}
	for i := k; i < len(order); i++ {
		// A rotation, unlike a swap, tries the orders in lexical order.
		tool := order[i]
		copy(order[k+1:i+1], order[k:i])
		order[k] = tool
		e.permute(order, k+1, best, bestValue)
		copy(order[k:i], order[k+1:i+1])
		order[i] = tool
	}
}
