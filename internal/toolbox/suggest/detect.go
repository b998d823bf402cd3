package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
)

// Binding passes an output of one tool to an input of another.
type Binding struct {
	From, To      int // positions in the list of tools
	Output, Input catalog.Parameter
	Grade         float64
	// Ambiguous reports that several tools match the input equally well. Each has a
	// binding.
	Ambiguous bool
}

// DataPath formats the binding as "output.content → input.jsonString".
func (b Binding) DataPath() string {
	return fmt.Sprintf("output.%s → input.%s", b.Output.Path, b.Input.Path)
}

// reason explains the grade.
func (b Binding) reason() string {
	switch {
	case b.Grade >= Exact:
		return "the output has the name of the input"
	case b.Grade >= Alias:
		return "the names of output and input mean the same"
	case b.Grade >= Partial:
		return "the names of output and input share a word"
	}
	return "only the types of output and input agree"
}

// detect returns the bindings between tools, sorted by consumer, input and producer.
// supplied reports whether the intent has an argument for an input, which then has no
// binding; nil means never.
//
// detect binds every required input to the tools with the best grade of at least Partial,
// and every optional input to those of at least Alias. If no tool has such a grade and the
// schema of a required input has no value, it binds the input by type alone, with the grade
// TypeOnly, to producers with exactly one output of a compatible type. It does not bind a
// tool to itself.
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

// producers returns the bindings of one input.
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
			// A nested value is not a second output of the producer.
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
	return ambiguous(slices.DeleteFunc(named, func(b Binding) bool { return b.Grade < top }))
}

func ambiguous(b []Binding) []Binding {
	for i := range b {
		b[i].Ambiguous = len(b) > 1
	}
	return b
}

// dropMutual removes the bindings from one tool to another if they are all by type alone
// and there is a binding in the reverse direction.
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
