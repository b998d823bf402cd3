package tools

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/workspace"
)

// Group names tools that are offered together, or one tool by its own name. An
// agent chooses well among a dozen tools and badly among thirty, so a server
// offers what its folder needs.
type Group string

// The groups.
const (
	// Core is the main job: search, read, keep the tasks.
	Core Group = "core"
	// Tasks are the task cards and the tasks in documents; it needs Options.Tasks.
	Tasks Group = "tasks"
	// DAG answers what follows from the dependencies of tasks; it needs Options.Tasks.
	DAG Group = "dag"
	// Docs browses, searches and edits documents section by section; what
	// is more than reading needs Options.Tasks.
	Docs Group = "docs"
	// Catalog finds tools, plans with them and records how they are used; it needs Options.Toolbox.
	Catalog Group = "catalog"
	// Stages run long questions in stages; it needs Options.Stages.
	Stages Group = "stages"
	// All is every tool.
	All Group = "all"
)

var groups = []Group{Core, Tasks, DAG, Docs, Catalog, Stages, All}

// offer is a tool with the groups it belongs to, beside All.
type offer struct {
	tool tool
	in   []Group
}

// offers are all tools that o has the means for. The order is that of every list.
func offers(e Engine, o *Options) []offer {
	list := []offer{
		{index(e), []Group{Core}},
		{readContext(e, o.DefaultMode), []Group{Core, Docs}},
		{readDoc(e), []Group{Core, Docs}},
		{status(e), []Group{Core}},
	}
	if t := o.Tasks; t != nil {
		list = append(list,
			offer{listTasks(t), []Group{Core, Tasks}},
			offer{createTask(t), []Group{Core, Tasks}},
			offer{updateTask(t), []Group{Core, Tasks}},
			offer{getTaskDependencies(t), []Group{Tasks}},
			offer{validateTaskGraph(t), []Group{Tasks}},
			offer{queryGraph(t), []Group{Tasks}},
			offer{viewTask(t), []Group{Tasks}},
			offer{startTask(t), []Group{Tasks}},
			offer{completeTask(t), []Group{Tasks}},
			offer{documentTask(t), []Group{Tasks}},
			offer{dagReady(t), []Group{DAG}},
			offer{dagValidate(t), []Group{DAG}},
			offer{dagOrder(t), []Group{DAG}},
			offer{dagBlocking(t), []Group{DAG}},
			offer{dagGroups(t), []Group{DAG}},
			offer{dagCriticalPath(t), []Group{DAG}},
			offer{dagStats(t), []Group{DAG}},
			offer{viewSection(t), []Group{Docs}},
			offer{editSection(t), []Group{Docs}},
			offer{browseDocuments(t), []Group{Docs}},
			offer{searchDocuments(t), []Group{Docs}},
		)
	}
	if box := o.Toolbox; box != nil {
		list = append(list,
			offer{searchTools(box), []Group{Catalog}},
			offer{suggestDAG(box), []Group{Catalog}},
			offer{getTool(box), []Group{Catalog}},
			offer{relatedTools(box), []Group{Catalog}},
			offer{recordUsage(box), []Group{Catalog}},
		)
	}
	if st := o.Stages; st != nil {
		list = append(list,
			offer{stageCreate(st), []Group{Stages}},
			offer{stageGet(st), []Group{Stages}},
			offer{stageAdvance(st), []Group{Stages}},
			offer{stageAbort(st), []Group{Stages}},
			offer{stageList(st), []Group{Stages}},
		)
	}
	return list
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
		if !slices.Contains(groups, g) && !slices.Contains(toolNames(), string(g)) {
			return nil, fmt.Errorf("unknown group of tools %q, want {core,tasks,dag,docs,tools,stages,all} or names of tools", name)
		}
		chosen = append(chosen, g)
	}
	return chosen, nil
}

// Offers reports whether some tool of group g is among the chosen groups.
func Offers(chosen []Group, g Group) bool {
	if slices.Contains(chosen, All) || slices.Contains(chosen, g) {
		return true
	}
	return slices.ContainsFunc(everything(), func(c offer) bool {
		return slices.Contains(c.in, g) && slices.Contains(chosen, Group(c.tool.name))
	})
}

// offered are the tools of the chosen groups, in an order that does not depend
// on how the groups were named.
func offered(e Engine, o *Options) []tool {
	chosen := o.Groups
	if chosen == nil {
		chosen = []Group{Core}
	}
	var list []tool
	for _, c := range offers(e, o) {
		in := func(g Group) bool { return slices.Contains(chosen, g) }
		if in(All) || in(Group(c.tool.name)) || slices.ContainsFunc(c.in, in) {
			list = append(list, c.tool)
		}
	}
	return list
}

// toolNames are the names of all tools there are.
func toolNames() []string {
	var names []string
	for _, c := range everything() {
		names = append(names, c.tool.name)
	}
	return names
}

// everything is every tool there is. Nothing is called, so nothing has to be open.
func everything() []offer {
	return offers(nil, &Options{Toolbox: &workspace.Toolbox{}, Tasks: &workspace.Tasks{}, Stages: &workspace.Stages{}})
}
