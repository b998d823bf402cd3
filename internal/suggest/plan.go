// Package suggest plans which tools to use for an intent: it matches what tools
// give with what others take, builds the graph of tasks, and says how far it is
// to be trusted. It runs no tool.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/taskdag"
)

// CycleError is a set of tools that wait for each other on evidence too good to
// drop. Path holds tool ids and is closed: its first and last are the same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	return "circular dependency between tools: " + strings.Join(e.Path, " → ")
}

// Step is one use of a tool in a plan.
type Step struct {
	ID        string   // "task_0", "task_1", … in the order the tools were given
	Tool      string   // the tool's id
	DependsOn []string // ids of steps, in their order
	Layer     int      // steps of a layer can run at the same time; layers run in order, from 0
}

// Plan is an acyclic graph of steps.
type Plan struct {
	Steps    []Step // in an order in which they can run
	Bindings []Binding
	Layers   [][]string // step ids
	// Dropped are bindings by type alone that would have closed a cycle.
	Dropped []Binding
}

// build arranges the tools by their bindings (From and To are positions in
// tools), and by pairs of positions, the second of which waits for the first
// whatever flows between them. Bindings by type alone give way where they would
// close a cycle; a cycle on better evidence is a *CycleError. The same input gives
// the same plan: ties keep the order of tools.
func build(tools []catalog.Tool, bindings []Binding, after [][2]int) (*Plan, error) {
	p := &Plan{Bindings: slices.Clone(bindings)}
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
		if id := stepID(a[0]); !slices.Contains(tasks[a[1]].DependsOn, id) {
			tasks[a[1]].DependsOn = append(tasks[a[1]].DependsOn, id)
		}
	}
	return taskdag.New(tasks)
}

// dropWeakest takes the type-only bindings of one edge of the cycle away, the
// first edge that has no better ones; false when every edge has.
func (p *Plan) dropWeakest(cycle []string, after [][2]int) bool {
	for k := 1; k < len(cycle); k++ {
		to, from := position(cycle[k-1]), position(cycle[k]) // the path follows dependencies
		if slices.Contains(after, [2]int{from, to}) {
			continue
		}
		weak := func(b Binding) bool { return b.From == from && b.To == to }
		if slices.ContainsFunc(p.Bindings, func(b Binding) bool { return weak(b) && b.Grade > TypeOnly }) {
			continue
		}
		for _, b := range p.Bindings {
			if weak(b) {
				p.Dropped = append(p.Dropped, b)
			}
		}
		p.Bindings = slices.DeleteFunc(p.Bindings, weak)
		return true
	}
	return false
}

func (p *Plan) arrange(tools []catalog.Tool, g *taskdag.Graph) error {
	layers, err := g.Groups()
	if err != nil {
		return err // unreachable: Build has broken every cycle
	}
	p.Layers = layers
	for k, layer := range layers {
		for _, id := range layer {
			deps := g.Dependencies(id)
			slices.SortFunc(deps, func(a, b string) int { return position(a) - position(b) })
			p.Steps = append(p.Steps, Step{ID: id, Tool: tools[position(id)].ID, DependsOn: deps, Layer: k})
		}
	}
	return nil
}
