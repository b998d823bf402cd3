// Package suggest plans a graph of tool calls for an intent. It matches the outputs of
// tools with the inputs of others. It does not run tools.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/toolbox/catalog"
)

// CycleError reports tools that depend on each other by evidence stronger than types. Path
// holds tool IDs; the first and the last are the same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	return "circular dependency between tools: " + strings.Join(e.Path, " → ")
}

// plan is an acyclic graph of tasks.
type plan struct {
	// Tasks are in an order in which they can run. Their IDs are "task_0", "task_1", … in the
	// order of the given tools. Only ID, Tool, DependsOn and Layer are set.
	Tasks    []Task
	Bindings []Binding
	Layers   [][]string // IDs of tasks
	// Dropped holds the bindings by type alone that would have closed a cycle.
	Dropped []Binding
}

// build arranges the tools by their bindings (From and To are positions in tools) and by
// after, pairs of positions of which the second runs after the first. It drops bindings by
// type alone that would close a cycle, and fails with a *CycleError for a cycle by better
// evidence. It is deterministic: ties keep the order of tools.
func build(tools []catalog.Tool, bindings []Binding, after [][2]int) (*plan, error) {
	p := &plan{Bindings: slices.Clone(bindings)}
	for {
		g, err := graph(len(tools), p.Bindings, after)
		if err != nil {
			return nil, err
		}
		cycle := g.Cycle()
		if cycle == nil {
			return p, p.arrange(tools, g)
		}
		if !p.dropWeakest(cycle.Path, after) {
			e := &CycleError{}
			for _, step := range slices.Backward(cycle.Path) { // from producer to consumer
				e.Path = append(e.Path, tools[position(step)].ID)
			}
			return nil, e
		}
	}
}

func stepID(i int) string { return fmt.Sprintf("task_%d", i) }

func position(step string) int {
	var i int
	fmt.Sscanf(step, "task_%d", &i)
	return i
}

func graph(n int, bindings []Binding, after [][2]int) (*taskdag.Graph, error) {
	tasks := make([]taskdag.Task, n)
	for i := range tasks {
		tasks[i].ID = stepID(i)
	}
	for _, b := range bindings {
		tasks[b.To].DependsOn = append(tasks[b.To].DependsOn, stepID(b.From))
	}
	for _, a := range after {
		tasks[a[1]].DependsOn = append(tasks[a[1]].DependsOn, stepID(a[0]))
	}
	return taskdag.New(tasks)
}

// dropWeakest drops the bindings of the first edge in the cycle that has only bindings by
// type. It reports whether there is such an edge.
func (p *plan) dropWeakest(cycle []string, after [][2]int) bool {
	for k := 1; k < len(cycle); k++ {
		to, from := position(cycle[k-1]), position(cycle[k]) // the path follows dependencies
		if slices.Contains(after, [2]int{from, to}) {
			continue
		}
		weak := func(b Binding) bool { return b.From == from && b.To == to }
		if slices.ContainsFunc(p.Bindings, func(b Binding) bool { return weak(b) && b.Grade > TypeOnly }) {
			continue
		}
		strong := func(b Binding) bool { return !weak(b) }
		p.Dropped = append(p.Dropped, slices.DeleteFunc(slices.Clone(p.Bindings), strong)...)
		p.Bindings = slices.DeleteFunc(p.Bindings, weak)
		return true
	}
	return false
}

func (p *plan) arrange(tools []catalog.Tool, g *taskdag.Graph) error {
	layers, err := g.Groups()
	if err != nil {
		return err // unreachable: build has removed every cycle
	}
	p.Layers = layers
	for k, layer := range layers {
		for _, id := range layer {
			deps := g.Dependencies(id)
			slices.SortFunc(deps, func(a, b string) int { return position(a) - position(b) })
			p.Tasks = append(p.Tasks, Task{ID: id, Tool: tools[position(id)].ID, DependsOn: deps, Layer: k})
		}
	}
	return nil
}
