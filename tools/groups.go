package tools

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/base/owner"
	"cairn/internal/folder/workspace"
)

// Group is the name of tools that are offered together, or of one tool.
type Group string

// The groups.
const (
	// Core contains the tools that index, search and read, and the main tools on cards.
	Core Group = "core"
	// Tasks contains the tools on task cards and on tasks in documents. It needs
	// Options.Tasks.
	Tasks Group = "tasks"
	// DAG contains the tools on the dependencies of tasks. It needs Options.Tasks.
	DAG Group = "dag"
	// Docs contains the tools that browse, search and edit documents by section. It needs
	// Options.Tasks, except for search and reading.
	Docs Group = "docs"
	// Catalog contains the tools that find tools, plan with them and record their use. It
	// needs Options.Toolbox.
	Catalog Group = "catalog"
	// Stages contains the tools on question tasks. It needs Options.Stages.
	Stages Group = "stages"
	// All contains every tool.
	All Group = "all"
)

var groups = []Group{Core, Tasks, DAG, Docs, Catalog, Stages, All}

// allTools returns the tools that o can serve, in the order of all lists.
func allTools(folder *owner.Folder, o *Options) []tool {
	list := folderTools{folder, o}.list()
	if t := o.Tasks; t != nil {
		list = slices.Concat(list, cardTools(folder, o), documentTaskTools(folder, o), dagTools(t), documentTools(o))
	}
	if box := o.Toolbox; box != nil {
		list = append(list, (&catalogTools{box: box, o: o}).list()...)
	}
	if o.Proxy != nil {
		list = append(list, o.Proxy.tools()...)
	}
	if st := o.Stages; st != nil {
		list = append(list, stageTools{st}.tools()...)
	}
	return list
}

// offeredBy reports whether the tool is in a chosen group or chosen by its name.
func (t *tool) offeredBy(chosen []Group) bool {
	return slices.Contains(chosen, All) || slices.Contains(chosen, Group(t.name)) ||
		slices.ContainsFunc(t.groups, func(g Group) bool { return slices.Contains(chosen, g) })
}

// ParseGroups parses a list of groups and names of tools, separated by commas. "tools" is
// an alias of Catalog.
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

// Offers reports whether the chosen groups include a tool of group g.
func Offers(chosen []Group, g Group) bool {
	return slices.ContainsFunc(everyTool(), func(t tool) bool { return slices.Contains(t.groups, g) && t.offeredBy(chosen) })
}

// everyTool returns the definitions of all tools. The tools cannot be called.
func everyTool() []tool {
	return allTools(nil, &Options{Toolbox: &owner.Folder{}, Proxy: &Proxy{}, Tasks: &workspace.Tasks{}, Stages: &workspace.Stages{}})
}
