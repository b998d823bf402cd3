package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/catalog"
)

// Binding says that an output of one tool is to serve as an input of another.
type Binding struct {
	From, To      int // positions in the list of tools
	Output, Input catalog.Parameter
	Grade         float64
	// Ambiguous is set when several tools could supply the input equally well;
	// then all of them are bound, the conservative reading.
	Ambiguous bool
}

// DataPath is the binding in words, "output.content → input.jsonString".
func (b Binding) DataPath() string {
	return fmt.Sprintf("output.%s → input.%s", b.Output.Path, b.Input.Path)
}

// near is how close two grades are to count as equally good.
const near = 0.05

// detect finds which tools feed which. supplied says that a tool's input needs
// nobody: an argument was found in the intent; nil means none is supplied.
//
// For every input the tools with the best grade of Partial or more are bound.
// An input for which there is none is bound by type alone, TypeOnly, if it is
// required, not supplied and not settled by its schema, and the producer has
// exactly one output of a compatible type. An optional input needs a grade of
// Alias. A tool never feeds itself; a tool without outputs feeds nobody.
//
// Two tools that would feed each other by type alone are not bound: the types
// do not tell which comes first. The order is by consumer, input, producer.
func detect(tools []catalog.Tool, supplied func(tool int, input string) bool) []Binding {
	var found []Binding
	for to, consumer := range tools {
		for _, in := range consumer.Takes {
			if in.Settled && !in.Required || supplied != nil && supplied(to, in.Path) {
				continue
			}
			found = append(found, producers(tools, to, in)...)
		}
	}
	found = dropMutual(found)
	slices.SortStableFunc(found, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Input.Path, b.Input.Path), cmp.Compare(a.From, b.From))
	})
	return found
}

// producers are the best tools to supply one input.
func producers(tools []catalog.Tool, to int, in catalog.Parameter) []Binding {
	least := Alias
	if in.Required {
		least = Partial
	}
	var named, typed []Binding
	for from, producer := range tools {
		if from == to {
			continue
		}
		best, fits := Binding{From: from, To: to, Input: in}, 0
		var only catalog.Parameter
		for _, out := range producer.Gives {
			if g := Grade(out, in); g > best.Grade {
				best.Grade, best.Output = g, out
			}
			// A value inside another is not a second output of the producer's.
			if !strings.Contains(out.Path, ".") && len(out.Types) > 0 && len(in.Types) > 0 && compatible(out.Types, in.Types) {
				fits++
				only = out
			}
		}
		switch {
		case best.Grade >= least:
			named = append(named, best)
		case fits == 1 && in.Required && !in.Settled && !strings.Contains(in.Path, "."):
			typed = append(typed, Binding{From: from, To: to, Output: only, Input: in, Grade: TypeOnly})
		}
	}
	if len(named) == 0 {
		return ambiguous(typed)
	}
	top := slices.MaxFunc(named, func(a, b Binding) int { return cmp.Compare(a.Grade, b.Grade) }).Grade
	return ambiguous(slices.DeleteFunc(named, func(b Binding) bool { return b.Grade < top-near }))
}

func ambiguous(b []Binding) []Binding {
	for i := range b {
		b[i].Ambiguous = len(b) > 1
	}
	return b
}

// dropMutual removes type-only bindings between tools that have nothing but
// type-only bindings, in both directions.
func dropMutual(all []Binding) []Binding {
	strongest := make(map[[2]int]float64)
	for _, b := range all {
		pair := [2]int{b.From, b.To}
		strongest[pair] = max(strongest[pair], b.Grade)
	}
	return slices.DeleteFunc(all, func(b Binding) bool {
		return b.Grade == TypeOnly && strongest[[2]int{b.From, b.To}] == TypeOnly && strongest[[2]int{b.To, b.From}] > 0
	})
}
