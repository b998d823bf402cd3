package benchmarks

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// planBudget counts the plans of a set by what is wrong with them.
type planBudget struct {
	plans, right int
	refusal      int // no tool fits, but the plan has one
	refused      int // a tool fits, but the plan has none
	extra        int // has all tools and others
	added        int // of these, the others are all prerequisites
	parts        int // lacks tools: the intent has fewer parts than tools
	dropped      int // lacks tools: the intent has as many parts
	wrong        int // has as many other tools as it lacks
	near         int // of these, the missing tools are alternatives
	both         int // another number of tools, and wrong ones
}

// TestPlanBudget reports why plans are not right: of the development intents, and the sets of
// CAIRN_TOOLSETS.
func TestPlanBudget(t *testing.T) {
	dir := toolSets(t)
	model, cache := toolModel(t)
	budgets := map[string]*planBudget{}
	p := &planRun{t: t, options: &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}, sums: map[string]*planSums{}, refused: map[string]int{}}
	p.each = func(name string, task *toolTask, x *toolsearch.Index, plan *suggest.Suggestion) {
		if budgets[name] == nil {
			budgets[name] = &planBudget{}
		}
		parts, _, err := x.Parts(t.Context(), task.intent)
		if err != nil {
			t.Fatal(err)
		}
		budgets[name].add(task, plan, len(parts))
	}
	for _, c := range everydayCatalogues(t, "everyday-dev.json") {
		b := p.open(serverTools(t, filepath.Dir(dir), c.Servers))
		for i := range c.Intents {
			p.plan("everyday-dev", c.Intents[i].task(), b.index)
		}
		b.close()
	}
	p.extras()
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		t.Logf("%-16s %+v", name, *budgets[name])
	}
}

func (b *planBudget) add(task *toolTask, plan *suggest.Suggestion, parts int) {
	accept := task.accepted(plan)
	name := func(id string) string {
		if call, ok := task.stands[id]; ok {
			return call
		}
		return id
	}
	var got, added []string
	for _, s := range plan.Tasks {
		if id := accept(s.Tool); s.Prerequisite {
			added = append(added, id)
		}
		if !s.Prerequisite || !task.unlinked {
			got = append(got, accept(s.Tool))
		}
	}
	got = toolsearch.Distinct(got)
	want := toolsearch.Distinct(task.required(got))
	lacks := func(have, tools []string) (list []string) {
		return slices.DeleteFunc(slices.Clone(tools), func(id string) bool { return slices.Contains(have, id) })
	}
	missing, extra := lacks(got, want), lacks(want, got)
	var near []string
	for _, s := range plan.Tasks {
		for _, o := range s.Alternatives {
			near = append(near, name(o.Tool))
		}
	}
	b.plans++
	exact := len(missing)+len(extra) == 0
	switch {
	case exact:
		b.right++
	case len(want) == 0:
		b.refusal++
	case len(got) == 0:
		b.refused++
	case len(missing) == 0:
		b.extra++
		if len(lacks(added, extra)) == 0 {
			b.added++
		}
	case len(extra) == 0 && parts < len(lacks(added, want)):
		b.parts++
	case len(extra) == 0:
		b.dropped++
	case len(extra) == len(missing):
		b.wrong++
		if len(lacks(near, missing)) == 0 {
			b.near++
		}
	default:
		b.both++
	}
}
