package taskgraph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/task"
)

// Outcome is the part of every answer that describes success or failure.
type Outcome struct {
	Message   string   `json:"message"`
	CyclePath []string `json:"cyclePath,omitempty"` // of dag_validate_dependency
	Error     string   `json:"error,omitempty"`
	ErrorCode string   `json:"errorCode,omitempty"`
}

// Ending returns the Outcome of an answer, which every answer embeds.
func (o *Outcome) Ending() *Outcome { return o }

// answer calls f with the tasks of a channel. It reports whether that succeeded, and
// describes a failure in o.
func (t *Tools) answer(ctx context.Context, channel string, o *Outcome, f func(board) error) bool {
	var err error = &task.Error{Message: disabledMessage}
	if t.o.Enabled {
		var b board
		if b, err = t.load(ctx, channel); err == nil {
			if err = f(b); err == nil && len(b.Tasks) == 0 {
				*o = Outcome{Message: noDAG}
			}
		}
	}
	switch e := err.(type) {
	case nil:
		return true
	case *task.Error:
		*o = Outcome{Message: e.Message, ErrorCode: e.Code}
	case *taskdag.CycleError:
		*o = Outcome{Message: e.Error(), Error: "the tasks as stored depend on each other in a circle", ErrorCode: CodeCycle}
	default:
		*o = Outcome{Message: unreadable, Error: errors.Unwrap(err).Error(), ErrorCode: CodeInternal}
	}
	return false
}

// ReadyRequest holds the arguments of dag_get_ready_tasks.
type ReadyRequest struct {
	ChannelID string   `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	Limit     *float64 `json:"limit,omitempty" schema:"default=10,min=1,max=100"` // a whole number from 1 to 100; default 10, as for 0
	Details   bool     `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"`
}

// ReadyAnswer is the answer of dag_get_ready_tasks.
type ReadyAnswer struct {
	Success    bool     `json:"success"`
	ReadyTasks []string `json:"readyTasks"`
	Count      int      `json:"count"`
	Details    []Detail `json:"details,omitempty"`
	Outcome
}

// Ready implements dag_get_ready_tasks: the tasks that can start now, in the order of
// creation.
func (t *Tools) Ready(ctx context.Context, r ReadyRequest) *ReadyAnswer {
	a := &ReadyAnswer{ReadyTasks: []string{}}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		limit := t.o.DefaultReady
		if r.Limit != nil && *r.Limit != 0 {
			if *r.Limit != math.Trunc(*r.Limit) || *r.Limit < 1 || *r.Limit > float64(t.o.MaxReady) {
				return &task.Error{Message: fmt.Sprintf("limit must be a whole number from 1 to %d", t.o.MaxReady)}
			}
			limit = int(*r.Limit)
		}
		a.ReadyTasks = append(a.ReadyTasks, b.Graph.Ready(limit)...)
		a.Count = len(a.ReadyTasks)
		a.Message = fmt.Sprintf("Found %d tasks ready to execute", a.Count)
		if a.Count == 0 {
			a.Message = "No tasks are currently ready"
		}
		if r.Details {
			a.Details = b.details(a.ReadyTasks)
		}
		return nil
	})
	if !t.o.Enabled {
		a.Message += ". Enable with TASK_DAG_ENABLED=true"
	}
	return a
}

// ValidateRequest holds the arguments of dag_validate_dependency.
type ValidateRequest struct {
	ChannelID        string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	DependentTaskID  string `json:"dependentTaskId" jsonschema:"Task that will wait"`
	DependencyTaskID string `json:"dependencyTaskId" jsonschema:"Task to be done first"`
}

// ValidateAnswer is the answer of dag_validate_dependency.
type ValidateAnswer struct {
	Success bool `json:"success"`
	IsValid bool `json:"isValid"`
	Outcome
}

// Validate implements dag_validate_dependency. It does not add the dependency.
func (t *Tools) Validate(ctx context.Context, r ValidateRequest) *ValidateAnswer {
	a := &ValidateAnswer{}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		all := b.all()
		dependent, dependency := all.Named(r.DependentTaskID), all.Named(r.DependencyTaskID)
		for _, id := range []struct{ name, value string }{{"dependentTaskId", dependent}, {"dependencyTaskId", dependency}} {
			if id.value == "" {
				return &task.Error{Message: id.name + " must be a non-empty string"}
			}
		}
		if bad := all.Graph.Validate(dependent, dependency); bad != nil {
			a.Message, a.ErrorCode, a.CyclePath = bad.Message, string(bad.Code), bad.Path
			return nil
		}
		a.IsValid, a.Message = true, "Dependency is valid and does not create a cycle"
		return nil
	})
	return a
}

// OrderRequest holds the arguments of dag_get_execution_order.
type OrderRequest struct {
	ChannelID        string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	IncludeCompleted bool   `json:"includeCompleted,omitempty" schema:"default=false"`
	IncludeBlocked   *bool  `json:"includeBlocked,omitempty" schema:"default=true"` // default true; false selects only ready tasks
	Details          bool   `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"`
}

// OrderAnswer is the answer of dag_get_execution_order.
type OrderAnswer struct {
	Success        bool     `json:"success"`
	ExecutionOrder []string `json:"executionOrder"`
	Count          int      `json:"count"`
	Details        []Detail `json:"details,omitempty"`
	Outcome
}

// Order implements dag_get_execution_order.
func (t *Tools) Order(ctx context.Context, r OrderRequest) *OrderAnswer {
	a := &OrderAnswer{ExecutionOrder: []string{}}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		order, err := b.Graph.Order(taskdag.OrderOptions{IncludeCompleted: r.IncludeCompleted, ReadyOnly: r.IncludeBlocked != nil && !*r.IncludeBlocked})
		if err != nil {
			return err
		}
		a.ExecutionOrder = append(a.ExecutionOrder, order...)
		a.Count = len(a.ExecutionOrder)
		a.Message = fmt.Sprintf("Execution order contains %d tasks", a.Count)
		if r.Details {
			a.Details = b.details(a.ExecutionOrder)
		}
		return nil
	})
	return a
}

// BlockingRequest holds the arguments of dag_get_blocking_tasks.
type BlockingRequest struct {
	ChannelID string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	TaskID    string `json:"taskId"`
	Details   bool   `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"`
}

// BlockingAnswer is the answer of dag_get_blocking_tasks.
type BlockingAnswer struct {
	Success       bool     `json:"success"`
	TaskID        string   `json:"taskId"`
	BlockingTasks []string `json:"blockingTasks"`
	IsReady       bool     `json:"isReady"`
	Details       []Detail `json:"details,omitempty"`
	Outcome
}

// Blocking implements dag_get_blocking_tasks: the direct dependencies that are not completed,
// including missing ones. IsReady reports whether the task can start.
func (t *Tools) Blocking(ctx context.Context, r BlockingRequest) *BlockingAnswer {
	a := &BlockingAnswer{TaskID: strings.TrimPrefix(strings.TrimSpace(r.TaskID), "#"), BlockingTasks: []string{}}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		a.TaskID = b.Named(r.TaskID)
		id := a.TaskID
		if id == "" {
			return &task.Error{Message: "taskId must be a non-empty string"}
		}
		blockers, ok := b.Graph.Blockers(id)
		if !ok {
			return &task.Error{Message: "Task not found: " + id, Code: CodeMissing}
		}
		a.IsReady, a.Message = b.Graph.IsReady(id), "Task has no blockers and is ready to execute"
		status := strings.ReplaceAll(b.ByID[id].GraphWord(), "_", " ")
		switch {
		case b.ByID[id].Over():
			a.Message = "Task is " + status
		case len(blockers) > 0:
			a.Message = fmt.Sprintf("Task is blocked by %d incomplete dependencies", len(blockers))
			if status != "pending" && status != "assigned" && status != "blocked" {
				a.Message = fmt.Sprintf("Task is %s and has %d incomplete dependencies", status, len(blockers))
			}
		case !a.IsReady:
			a.Message = "Task has no blockers and is " + status
		}
		var stuck []string // blockers that will not complete by themselves
		for _, bl := range blockers {
			a.BlockingTasks = append(a.BlockingTasks, bl.ID)
			if bl.Reason != taskdag.NotCompleted {
				stuck = append(stuck, fmt.Sprintf("%s is %s", bl.ID, bl.Reason))
			}
		}
		if r.Details {
			a.Details = b.details(a.BlockingTasks)
		}
		if len(stuck) > 0 {
			a.Message += " (" + list(stuck) + ")"
		}
		return nil
	})
	return a
}

// GroupsRequest holds the arguments of dag_get_parallel_groups.
type GroupsRequest struct {
	ChannelID string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	Details   bool   `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"`
}

// GroupsAnswer is the answer of dag_get_parallel_groups.
type GroupsAnswer struct {
	Success        bool       `json:"success"`
	ParallelGroups [][]string `json:"parallelGroups"`
	GroupCount     int        `json:"groupCount"`
	TotalTasks     int        `json:"totalTasks"`
	Excluded       []Excluded `json:"excluded,omitempty"` // the unfinished tasks that cannot run
	Details        []Detail   `json:"details,omitempty"`
	Outcome
}

// Excluded is an unfinished task that is in no group.
type Excluded struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Groups implements dag_get_parallel_groups: the tasks that can run, in the smallest number
// of groups that can run in parallel. A task cannot run if it is in progress, blocked or
// failed, or depends on a task that is missing, cancelled or excluded.
func (t *Tools) Groups(ctx context.Context, r GroupsRequest) *GroupsAnswer {
	a := &GroupsAnswer{ParallelGroups: [][]string{}}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		groups, err := b.Graph.Groups()
		if err != nil {
			return err
		}
		planned := map[string]bool{}
		for _, group := range groups {
			var run []string
			for _, id := range group {
				blockers, _ := b.Graph.Blockers(id)
				stuck := slices.ContainsFunc(blockers, func(bl taskdag.Blocker) bool { return !planned[bl.ID] })
				if t := b.ByID[id]; stuck || t.Node().State != taskdag.Pending {
					a.Excluded = append(a.Excluded, Excluded{id, b.reason(t, blockers)})
					continue
				}
				planned[id] = true
				run = append(run, id)
			}
			if len(run) > 0 {
				a.ParallelGroups = append(a.ParallelGroups, run)
			}
		}
		all := slices.Concat(a.ParallelGroups...)
		a.GroupCount, a.TotalTasks = len(a.ParallelGroups), len(all)
		a.Message = fmt.Sprintf("Found %d parallel execution levels", a.GroupCount)
		if r.Details {
			a.Details = b.details(all)
		}
		return nil
	})
	return a
}

// CriticalPathRequest holds the arguments of dag_get_critical_path.
type CriticalPathRequest struct {
	ChannelID        string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	IncludeCompleted *bool  `json:"includeCompleted,omitempty" schema:"default=true"` // default true
	Details          bool   `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"`
}

// CriticalPathAnswer is the answer of dag_get_critical_path.
type CriticalPathAnswer struct {
	Success      bool     `json:"success"`
	CriticalPath []string `json:"criticalPath"`
	PathLength   int      `json:"pathLength"`
	Details      []Detail `json:"details,omitempty"`
	// TotalHours is the estimated duration of the remaining work in hours if tasks run in
	// parallel. It is set if details were requested.
	TotalHours *float64 `json:"totalHours,omitempty"`
	Outcome
}

// CriticalPath implements dag_get_critical_path: the longest chain of tasks.
func (t *Tools) CriticalPath(ctx context.Context, r CriticalPathRequest) *CriticalPathAnswer {
	a := &CriticalPathAnswer{CriticalPath: []string{}}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		of := b.Board
		if r.IncludeCompleted != nil && !*r.IncludeCompleted {
			of = task.NewBoard(slices.DeleteFunc(slices.Clone(b.Tasks), task.Task.Done))
		}
		path, err := of.Graph.CriticalPath()
		if err != nil {
			return err
		}
		a.CriticalPath, a.PathLength = append(a.CriticalPath, path...), len(path)
		a.Message = fmt.Sprintf("Critical path has %d tasks", a.PathLength)
		if r.Details {
			a.Details, a.TotalHours = b.details(a.CriticalPath), new(b.Schedule().Total)
		}
		return nil
	})
	return a
}
