package tools

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/toolbox"
	"cairn/internal/workspace"
)

// Group names tools that are offered together, or one tool by its name. Auto chooses
// by the contents of the folder.
type Group string

// The groups.
const (
	// Core is the main job: search, read, keep the tasks.
	Core Group = "core"
	// Tasks are the task cards and the tasks in documents; it needs Options.Tasks.
	Tasks Group = "tasks"
	// DAG answers what follows from the dependencies of tasks; it needs Options.Tasks.
	DAG Group = "dag"
	// Docs browses, searches and edits documents section by section; all but
	// reading needs Options.Tasks.
	Docs Group = "docs"
	// Catalog finds tools, plans with them and records how they are used; it needs Options.Toolbox.
	Catalog Group = "catalog"
	// Stages run long questions in stages; it needs Options.Stages.
	Stages Group = "stages"
	// All is every tool.
	All Group = "all"
)

var groups = []Group{Core, Tasks, DAG, Docs, Catalog, Stages, All}

// allTools are the tools that o has the means for, in the order of every list.
// This is the table to which a new tool is added.
func allTools(e Engine, o *Options) []tool {
	list := []tool{indexTool(e), readContext(e, o), readDoc(e), status(e)}
	if t := o.Tasks; t != nil {
		list = slices.Concat(list, cardTools(t), documentTaskTools(t), dagTools(t), documentTools(t))
	}
	if box := o.Toolbox; box != nil {
		list = append(list, searchTools(box), suggestDAG(box), getTool(box, o), relatedTools(box), recordUsage(box))
	}
	if st := o.Stages; st != nil {
		list = append(list, stageCreate(st), stageGet(st), stageAdvance(st), stageAbort(st), stageList(st))
	}
	return list
}

// callable reports whether clients may call the tool: with Auto every tool, listed or
// not, and else those that were chosen.
func (t *tool) callable(chosen []Group) bool {
	return slices.Contains(chosen, Auto) || t.offeredBy(chosen)
}

// offeredBy reports whether the tool belongs to one of the chosen groups, or is chosen by name.
func (t *tool) offeredBy(chosen []Group) bool {
	return slices.Contains(chosen, All) || slices.Contains(chosen, Group(t.name)) ||
		slices.ContainsFunc(t.groups, func(g Group) bool { return slices.Contains(chosen, g) })
}

// ParseGroups reads names of groups and of tools, separated by commas. "tools"
// is another name of Catalog.
func ParseGroups(list string) ([]Group, error) {
	var chosen []Group
	for name := range strings.SplitSeq(list, ",") {
		g := Group(strings.TrimSpace(name))
		if g == "tools" {
			g = Catalog
		}
		known := g == Auto || slices.Contains(groups, g) || slices.ContainsFunc(everyTool(), func(t tool) bool { return t.name == string(g) })
		if !known {
			return nil, fmt.Errorf("unknown group of tools %q, want {auto,core,tasks,dag,docs,tools,stages,all} or names of tools", name)
		}
		chosen = append(chosen, g)
	}
	return chosen, nil
}

// Offers reports whether some tool of group g is among the chosen groups.
func Offers(chosen []Group, g Group) bool {
	return slices.ContainsFunc(everyTool(), func(t tool) bool { return slices.Contains(t.groups, g) && t.offeredBy(chosen) })
}

// everyTool is every tool there is, to look at and not to call: nothing is open.
func everyTool() []tool {
	return allTools(nil, &Options{Toolbox: &toolbox.Toolbox{}, Tasks: &workspace.Tasks{}, Stages: &workspace.Stages{}})
}
