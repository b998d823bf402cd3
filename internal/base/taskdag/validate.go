package taskdag

import "fmt"

// Code names the reason why a dependency cannot be added.
type Code string

// The codes.
const (
	CycleDetected  Code = "CYCLE_DETECTED"
	MissingNode    Code = "MISSING_NODE"
	DuplicateEdge  Code = "DUPLICATE_EDGE"
	SelfDependency Code = "SELF_DEPENDENCY"
)

// DependencyError describes a dependency that cannot be added. For a cycle or a
// self-dependency, Path is the closed path [dependent, …, dependency, dependent] that the
// dependency would create.
type DependencyError struct {
	Code    Code
	Message string
	Path    []string
}

func (e *DependencyError) Error() string { return e.Message }

// Validate returns nil if dependent may depend on dependency. Otherwise it returns the
// reason, with the shortest path for a cycle.
func (g *Graph) Validate(dependent, dependency string) *DependencyError {
	from, ok := g.index[dependent]
	if !ok {
		return &DependencyError{Code: MissingNode, Message: fmt.Sprintf("Dependent task not found: %s", dependent)}
	}
	to, ok := g.index[dependency]
	if !ok {
		return &DependencyError{Code: MissingNode, Message: fmt.Sprintf("Dependency task not found: %s", dependency)}
	}
	if from == to {
		return &DependencyError{Code: SelfDependency, Message: "Task cannot depend on itself", Path: []string{dependent, dependent}}
	}
	for _, d := range g.deps[from] {
		if d == to {
			return &DependencyError{Code: DuplicateEdge, Message: "Dependency already exists"}
		}
	}
	if path := newSearch(g, g.dependents).shortest(from, to, 0); path != nil {
		cycle := &CycleError{Path: append(path, dependent)}
		return &DependencyError{Code: CycleDetected, Message: cycle.Error(), Path: cycle.Path}
	}
	return nil
}
