package taskdag

import "fmt"

// Code names why a dependency cannot be added.
type Code string

// The codes.
const (
	CycleDetected  Code = "CYCLE_DETECTED"
	MissingNode    Code = "MISSING_NODE"
	DuplicateEdge  Code = "DUPLICATE_EDGE"
	SelfDependency Code = "SELF_DEPENDENCY"
)

// DependencyError is a dependency that cannot be added. Path is the closed walk
// [dependent, …, dependency, dependent] it would make, for a cycle or a
// self-dependency.
type DependencyError struct {
	Code    Code
	Message string
	Path    []string
}

func (e *DependencyError) Error() string { return e.Message }

// Validate reports whether dependent may come to depend on dependency; nil
// means it may. It changes nothing. The path of a cycle is the shortest.
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
	if way := newSearch(g, g.dependents).shortest(from, to, 0); way != nil {
		cycle := &CycleError{Path: append(way, dependent)}
		return &DependencyError{Code: CycleDetected, Message: cycle.Error(), Path: cycle.Path}
	}
	return nil
}
