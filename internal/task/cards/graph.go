package cards

import (
	"cmp"
	"slices"
	"strings"

	"cairn/internal/task"
)

// DependenciesRequest holds the arguments of get_task_dependencies.
type DependenciesRequest struct {
	ID      string `json:"id" schema:"pattern=^[a-z0-9]{6}$"`
	Reverse bool   `json:"reverse,omitempty" schema:"default=false"` // the tasks that depend on it
}

// DependenciesAnswer is the answer of get_task_dependencies: the direct neighbours.
type DependenciesAnswer struct {
	TaskID string    `json:"task_id"`
	Type   string    `json:"type"` // dependencies or dependents
	Count  int       `json:"count"`
	Tasks  []TaskRef `json:"tasks"`
	// Missing lists dependencies without a card; Count does not include them.
	Missing []string `json:"missing,omitempty"`
}

// TaskRef names a card.
type TaskRef struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// Dependencies implements get_task_dependencies.
func (s *Store) Dependencies(r DependenciesRequest) (*DependenciesAnswer, error) {
	if err := checkID("id", r.ID); err != nil {
		return nil, err
	}
	b, own, err := s.named(r.ID)
	if err != nil {
		return nil, err
	}
	r.ID = own.ID
	g := b.All().Graph
	a := &DependenciesAnswer{TaskID: r.ID, Type: "dependencies", Tasks: []TaskRef{}}
	ids := g.Dependencies(r.ID)
	if r.Reverse {
		a.Type, ids = "dependents", g.Dependents(r.ID)
	} else {
		a.Missing = g.Missing(r.ID)
	}
	for _, id := range ids {
		c := b.byID[id]
		a.Tasks = append(a.Tasks, TaskRef{id, c.Title, c.Status.CardWord()})
	}
	a.Count = len(a.Tasks)
	return a, nil
}

// ValidateRequest holds the arguments of validate_task_graph. An empty ID selects the whole
// graph.
type ValidateRequest struct {
	ID string `json:"id,omitempty" schema:"pattern=^[a-z0-9]{6}$"`
}

// ValidateAnswer is the answer of validate_task_graph.
type ValidateAnswer struct {
	Valid   bool   `json:"valid"`
	TaskID  string `json:"task_id,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
	// CyclePath is the cycle behind Error, closed.
	CyclePath []string `json:"cycle_path,omitempty"`
	// Missing lists dependencies without a card, such as "xyz789 → abc123".
	Missing []string `json:"missing,omitempty"`
}

// Validate implements validate_task_graph. For a task it checks all direct and indirect
// dependencies. It reports the shortest cycle, beginning with its smallest ID.
func (s *Store) Validate(r ValidateRequest) (*ValidateAnswer, error) {
	b, err := s.Board()
	if err != nil {
		return nil, err
	}
	all := b.All()
	a := &ValidateAnswer{Valid: true, TaskID: r.ID, Message: "All task dependencies are valid (no circular dependencies)"}
	if r.ID != "" {
		if err := checkID("id", r.ID); err != nil {
			return nil, err
		}
		_, c, err := s.named(r.ID)
		if err != nil {
			return nil, err
		}
		r.ID, a.TaskID = c.ID, c.ID
		a.Message = "Task dependencies are valid"
		upstream := map[string]bool{}
		for _, id := range all.Graph.Upstream(r.ID) {
			upstream[id] = true
		}
		all = task.NewBoard(slices.DeleteFunc(slices.Clone(all.Tasks), func(t task.Task) bool { return !upstream[t.ID] }))
	}
	for _, t := range all.Tasks {
		for _, m := range all.Graph.Missing(t.ID) {
			a.Missing = append(a.Missing, t.ID+" → "+m)
		}
	}
	slices.Sort(a.Missing)
	if cycle := all.Graph.Cycle(); cycle != nil {
		a.Valid, a.Message, a.CyclePath = false, "", cycle.Path
		a.Error = "Circular dependency detected: " + strings.Join(cycle.Path, " → ")
	}
	return a, nil
}

// GraphRequest holds the arguments of query_graph.
type GraphRequest struct {
	Format string `json:"format,omitempty" schema:"enum=json|mermaid|dot,default=json"` // json (default), mermaid or dot
}

// GraphAnswer is the answer of query_graph.
type GraphAnswer struct {
	Format string `json:"format"`
	Graph  string `json:"graph"`
}

// QueryGraph implements query_graph: it draws all cards and their dependencies.
func (s *Store) QueryGraph(r GraphRequest) (*GraphAnswer, error) {
	r.Format = cmp.Or(r.Format, task.FormatJSON)
	if !slices.Contains(task.Formats(), r.Format) {
		return nil, task.Invalid("format %.50q, want {%s}", r.Format, strings.Join(task.Formats()[:3], ","))
	}
	b, err := s.Board()
	if err != nil {
		return nil, err
	}
	text, err := task.Draw(b.All().Tasks, r.Format, func(t task.Task) string { return t.Status.CardWord() })
	return &GraphAnswer{r.Format, text}, err
}
