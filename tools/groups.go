package tools

import (
	"fmt"
	"slices"
	"strings"
)

// Group names tools that are offered together. An agent chooses well among a
// dozen tools and badly among thirty, so a server offers what its folder needs.
type Group string

// The groups, in the order in which their tools are listed.
const (
	// Core searches, reads and indexes documents.
	Core Group = "core"
	// Catalog looks tools up and records how they are used; it needs Options.Toolbox.
	Catalog Group = "catalog"
)

var groups = []Group{Core, Catalog}

// ParseGroups reads names of groups separated by commas; "all" is every one.
func ParseGroups(list string) ([]Group, error) {
	if list == "all" {
		return groups, nil
	}
	var chosen []Group
	for name := range strings.SplitSeq(list, ",") {
		g := Group(strings.TrimSpace(name))
		if !slices.Contains(groups, g) {
			return nil, fmt.Errorf("unknown group of tools %q, want {core,catalog,all}", name)
		}
		chosen = append(chosen, g)
	}
	return chosen, nil
}

// offered are the tools of the chosen groups. The order is the order of the
// list and does not depend on how the groups were named.
func offered(e Engine, o *Options) []tool {
	chosen := o.Groups
	if chosen == nil {
		chosen = []Group{Core}
	}
	var list []tool
	for _, g := range groups {
		switch {
		case !slices.Contains(chosen, g):
		case g == Core:
			list = append(list, index(e), readContext(e, o.DefaultMode), readDoc(e), status(e))
		case g == Catalog && o.Toolbox != nil:
			list = append(list, getTool(o.Toolbox), relatedTools(o.Toolbox), recordUsage(o.Toolbox))
		}
	}
	return list
}
