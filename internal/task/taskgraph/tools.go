package taskgraph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"cairn/internal/task"
	"cairn/internal/taskdag"
)

// ReadyRequest is what dag_get_ready_tasks takes.
type ReadyRequest struct {
	ChannelID string   `json:"channelId,omitempty"`
	Limit     *float64 `json:"limit,omitempty"` // a whole number from 1 to 100; default 10, as for 0
	Details   bool     `json:"details,omitempty"`
}

// ReadyAnswer is what dag_get_ready_tasks returns.
type ReadyAnswer struct {
	Success    bool     `json:"success"`
	ReadyTasks []string `json:"readyTasks"`
	Count      int      `json:"count"`
	Details    []Detail `json:"details,omitempty"`
	Message    string   `json:"message"`
	Error      string   `json:"error,omitempty"`
	ErrorCode  string   `json:"errorCode,omitempty"`
}

// Ready answers dag_get_ready_tasks: what can start now, in the order of creation.
func (t *Tools) Ready(ctx context.Context, r ReadyRequest) *ReadyAnswer {
	a := &ReadyAnswer{ReadyTasks: []string{}}
	b, fail := t.open(ctx, r.ChannelID)
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		if !t.o.Enabled {
			a.Message += ". Enable with TASK_DAG_ENABLED=true"
		}
		return a
	}
	limit := t.o.DefaultReady
	if r.Limit != nil && *r.Limit != 0 {
		if *r.Limit != math.Trunc(*r.Limit) || *r.Limit < 1 || *r.Limit > float64(t.o.MaxReady) {
			a.Message = fmt.Sprintf("limit must be a whole number from 1 to %d", t.o.MaxReady)
			return a
		}
		limit = int(*r.Limit)
	}
	a.Success, a.ReadyTasks = true, orEmpty(b.graph.Ready(limit))
	a.Count = len(a.ReadyTasks)
	a.Message = fmt.Sprintf("Found %d tasks ready to execute", a.Count)
	if a.Count == 0 {
		a.Message = "No tasks are currently ready"
	}
	if r.Details {
		a.Details = b.details(a.ReadyTasks)
	}
	return a
}

// ValidateRequest is what dag_validate_dependency takes.
type ValidateRequest struct {
	ChannelID        string `json:"channelId,omitempty"`
	DependentTaskID  string `json:"dependentTaskId"`
	DependencyTaskID string `json:"dependencyTaskId"`
}

// ValidateAnswer is what dag_validate_dependency returns.
type ValidateAnswer struct {
	Success   bool     `json:"success"`
	IsValid   bool     `json:"isValid"`
	Message   string   `json:"message"`
	CyclePath []string `json:"cyclePath,omitempty"`
	Error     string   `json:"error,omitempty"`
	ErrorCode string   `json:"errorCode,omitempty"`
}

// Validate answers dag_validate_dependency. It changes nothing.
func (t *Tools) Validate(ctx context.Context, r ValidateRequest) *ValidateAnswer {
	a := &ValidateAnswer{}
	b, fail := t.open(ctx, r.ChannelID)
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		a.IsValid = !t.o.Enabled // what is not looked at is not forbidden
		return a
	}
	dependent, dependency := taskID(r.DependentTaskID), taskID(r.DependencyTaskID)
	for _, id := range []struct{ name, value string }{{"dependentTaskId", dependent}, {"dependencyTaskId", dependency}} {
		if id.value == "" {
			a.Message = id.name + " must be a non-empty string"
			return a
		}
	}
	a.Success = true
	if bad := b.graph.Validate(dependent, dependency); bad != nil {
		a.Message, a.ErrorCode, a.CyclePath = bad.Message, string(bad.Code), bad.Path
		return a
	}
	a.IsValid, a.Message = true, "Dependency is valid and does not create a cycle"
	return a
}

// taskID is an id as people give it; a slug may have its "#".
func taskID(id string) string { return strings.TrimPrefix(strings.TrimSpace(id), "#") }

// OrderRequest is what dag_get_execution_order takes.
type OrderRequest struct {
	ChannelID        string `json:"channelId,omitempty"`
	IncludeCompleted bool   `json:"includeCompleted,omitempty"`
	IncludeBlocked   *bool  `json:"includeBlocked,omitempty"` // default true; false leaves what is ready
	Details          bool   `json:"details,omitempty"`
}

// OrderAnswer is what dag_get_execution_order returns.
type OrderAnswer struct {
	Success        bool     `json:"success"`
	ExecutionOrder []string `json:"executionOrder"`
	Count          int      `json:"count"`
	Details        []Detail `json:"details,omitempty"`
	Message        string   `json:"message"`
	Error          string   `json:"error,omitempty"`
	ErrorCode      string   `json:"errorCode,omitempty"`
}

// Order answers dag_get_execution_order.
func (t *Tools) Order(ctx context.Context, r OrderRequest) *OrderAnswer {
	a := &OrderAnswer{ExecutionOrder: []string{}}
	b, fail := t.open(ctx, r.ChannelID)
	var all []string
	if fail == nil {
		var err error
		if all, err = b.graph.Order(taskdag.OrderOptions{IncludeCompleted: true}); err != nil {
			fail = cycleFailure(err)
		}
	}
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		return a
	}
	ready := map[string]bool{}
	for _, id := range b.graph.Ready(0) {
		ready[id] = true
	}
	blocked := r.IncludeBlocked == nil || *r.IncludeBlocked
	for _, id := range all {
		if keep := blocked || ready[id]; b.byID[id].Done() && r.IncludeCompleted || !b.byID[id].Done() && keep {
			a.ExecutionOrder = append(a.ExecutionOrder, id)
		}
	}
	a.Success, a.Count = true, len(a.ExecutionOrder)
	a.Message = fmt.Sprintf("Execution order contains %d tasks", a.Count)
	if r.Details {
		a.Details = b.details(a.ExecutionOrder)
	}
	return a
}

// BlockingRequest is what dag_get_blocking_tasks takes.
type BlockingRequest struct {
	ChannelID string `json:"channelId,omitempty"`
	TaskID    string `json:"taskId"`
	Details   bool   `json:"details,omitempty"`
}

// BlockingAnswer is what dag_get_blocking_tasks returns.
type BlockingAnswer struct {
	Success       bool     `json:"success"`
	TaskID        string   `json:"taskId"`
	BlockingTasks []string `json:"blockingTasks"`
	IsReady       bool     `json:"isReady"`
	Details       []Detail `json:"details,omitempty"`
	Message       string   `json:"message"`
	Error         string   `json:"error,omitempty"`
	ErrorCode     string   `json:"errorCode,omitempty"`
}

// Blocking answers dag_get_blocking_tasks: the direct dependencies that are not
// completed, missing ones included. isReady is whether there is none.
func (t *Tools) Blocking(ctx context.Context, r BlockingRequest) *BlockingAnswer {
	id := taskID(r.TaskID)
	a := &BlockingAnswer{TaskID: id, BlockingTasks: []string{}}
	b, fail := t.open(ctx, r.ChannelID)
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		return a
	}
	if id == "" {
		a.Message = "taskId must be a non-empty string"
		return a
	}
	blockers, ok := b.graph.Blockers(id)
	if !ok {
		a.Message, a.ErrorCode = "Task not found: "+id, CodeMissing
		return a
	}
	a.Success, a.IsReady = true, len(blockers) == 0
	a.Message = "Task has no blockers and is ready to execute"
	if !a.IsReady {
		a.Message = fmt.Sprintf("Task is blocked by %d incomplete dependencies", len(blockers))
	}
	var stuck []string
	for _, bl := range blockers {
		a.BlockingTasks = append(a.BlockingTasks, bl.ID)
		if bl.Reason != taskdag.NotCompleted {
			stuck = append(stuck, fmt.Sprintf("%s is %s", bl.ID, bl.Reason))
		}
	}
	if len(stuck) > 0 { // waiting does not help against these
		a.Message += " (" + strings.Join(stuck[:min(len(stuck), 5)], ", ") + more(len(stuck)-5) + ")"
	}
	if r.Details {
		for _, bl := range blockers {
			d := Detail{ID: bl.ID, Title: "(missing)", Status: "missing", Reason: CodeMissing}
			if bl.Reason != taskdag.IsMissing {
				d = b.detail(bl.ID, len(blockers) <= maxUnblocks)
			}
			a.Details = append(a.Details, d)
		}
	}
	return a
}

// GroupsRequest is what dag_get_parallel_groups takes.
type GroupsRequest struct {
	ChannelID string `json:"channelId,omitempty"`
	Details   bool   `json:"details,omitempty"`
}

// GroupsAnswer is what dag_get_parallel_groups returns.
type GroupsAnswer struct {
	Success        bool       `json:"success"`
	ParallelGroups [][]string `json:"parallelGroups"`
	GroupCount     int        `json:"groupCount"`
	TotalTasks     int        `json:"totalTasks"`
	Details        []Detail   `json:"details,omitempty"`
	Message        string     `json:"message"`
	Error          string     `json:"error,omitempty"`
	ErrorCode      string     `json:"errorCode,omitempty"`
}

// Groups answers dag_get_parallel_groups: waves of the tasks that are not
// completed, as few as possible.
func (t *Tools) Groups(ctx context.Context, r GroupsRequest) *GroupsAnswer {
	a := &GroupsAnswer{ParallelGroups: [][]string{}}
	b, fail := t.open(ctx, r.ChannelID)
	var groups [][]string
	if fail == nil {
		var err error
		if groups, err = b.graph.Groups(); err != nil {
			fail = cycleFailure(err)
		}
	}
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		return a
	}
	a.Success, a.GroupCount = true, len(groups)
	for _, g := range groups {
		a.ParallelGroups = append(a.ParallelGroups, g)
		a.TotalTasks += len(g)
	}
	a.Message = fmt.Sprintf("Found %d parallel execution levels", a.GroupCount)
	if r.Details {
		a.Details = b.details(slices.Concat(groups...))
	}
	return a
}

// CriticalPathRequest is what dag_get_critical_path takes.
type CriticalPathRequest struct {
	ChannelID        string `json:"channelId,omitempty"`
	IncludeCompleted *bool  `json:"includeCompleted,omitempty"` // default true
	Details          bool   `json:"details,omitempty"`
}

// CriticalPathAnswer is what dag_get_critical_path returns.
type CriticalPathAnswer struct {
	Success      bool     `json:"success"`
	CriticalPath []string `json:"criticalPath"`
	PathLength   int      `json:"pathLength"`
	Details      []Detail `json:"details,omitempty"`
	// TotalHours is how long the remaining work takes with enough hands, by
	// the estimates; given with details.
	TotalHours *float64 `json:"totalHours,omitempty"`
	Message    string   `json:"message"`
	Error      string   `json:"error,omitempty"`
	ErrorCode  string   `json:"errorCode,omitempty"`
}

// CriticalPath answers dag_get_critical_path: the longest chain of tasks.
func (t *Tools) CriticalPath(ctx context.Context, r CriticalPathRequest) *CriticalPathAnswer {
	a := &CriticalPathAnswer{CriticalPath: []string{}}
	b, fail := t.open(ctx, r.ChannelID)
	var path []string
	if fail == nil {
		g, err := b.graph, error(nil)
		if r.IncludeCompleted != nil && !*r.IncludeCompleted {
			g, err = b.remaining()
		}
		if err == nil {
			path, err = g.CriticalPath()
		}
		if err != nil {
			fail = cycleFailure(err)
		}
	}
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		return a
	}
	a.Success, a.CriticalPath, a.PathLength = true, orEmpty(path), len(path)
	a.Message = fmt.Sprintf("Critical path has %d tasks", a.PathLength)
	if a.PathLength == 0 {
		a.Message = "No tasks in DAG or all tasks are isolated"
	}
	if r.Details {
		total := b.schedule().total
		a.Details, a.TotalHours = b.details(a.CriticalPath), &total
	}
	return a
}

// remaining is the graph without the completed tasks.
func (b *board) remaining() (*taskdag.Graph, error) {
	left := slices.DeleteFunc(slices.Clone(b.tasks), task.Task.Done)
	return taskdag.New(task.Nodes(left))
}

// StatsRequest is what dag_get_stats takes.
type StatsRequest struct {
	ChannelID string `json:"channelId,omitempty"`
	Details   bool   `json:"details,omitempty"` // with warnings
}

// StatsAnswer is what dag_get_stats returns. Stats is null when there are no
// tasks; Summary is zero then.
type StatsAnswer struct {
	Success   bool      `json:"success"`
	Stats     *Stats    `json:"stats"`
	Summary   Summary   `json:"summary"`
	Warnings  []Warning `json:"warnings,omitempty"`
	Message   string    `json:"message"`
	Error     string    `json:"error,omitempty"`
	ErrorCode string    `json:"errorCode,omitempty"`
}

// Stats counts a graph. Ready, blocked and completed add up to the nodes: what is
// neither ready nor completed counts as blocked, work in progress included.
type Stats struct {
	NodeCount           int     `json:"nodeCount"`
	EdgeCount           int     `json:"edgeCount"`
	RootCount           int     `json:"rootCount"`
	LeafCount           int     `json:"leafCount"`
	MaxDepth            int     `json:"maxDepth"` // tasks on the critical path; 0 with a cycle
	AverageInDegree     float64 `json:"averageInDegree"`
	AverageOutDegree    float64 `json:"averageOutDegree"`
	ReadyTaskCount      int     `json:"readyTaskCount"`
	BlockedTaskCount    int     `json:"blockedTaskCount"`
	CompletedTaskCount  int     `json:"completedTaskCount"`
	InProgressTaskCount int     `json:"inProgressTaskCount"` // of the blocked
}

// Summary is Stats in short.
type Summary struct {
	Nodes     int `json:"nodes"`
	Edges     int `json:"edges"`
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Completed int `json:"completed"`
	Depth     int `json:"depth"`
}

// Warning is something unusual about a graph.
type Warning struct {
	Code    string   `json:"code"` // HIGH_IN_DEGREE, HIGH_OUT_DEGREE, LONG_CHAIN, ORPHANED_NODE, CYCLE_DETECTED or MISSING_NODE
	Tasks   []string `json:"tasks"`
	Message string   `json:"message"`
}

// Stats answers dag_get_stats.
func (t *Tools) Stats(ctx context.Context, r StatsRequest) *StatsAnswer {
	a := &StatsAnswer{}
	b, fail := t.open(ctx, r.ChannelID)
	if fail != nil {
		a.Message, a.Error, a.ErrorCode = fail.message, fail.detail, fail.code
		return a
	}
	a.Success = true
	if len(b.tasks) == 0 {
		a.Message = noDAG
		return a
	}
	s, err := b.graph.Stats()
	a.Stats = &Stats{s.Nodes, s.Edges, s.Roots, s.Leaves, s.Depth, s.InDegree, s.OutDeg, s.Ready, s.Blocked, s.Completed, s.InProgress}
	a.Summary = Summary{s.Nodes, s.Edges, s.Ready, s.Blocked, s.Completed, s.Depth}
	a.Message = fmt.Sprintf("DAG has %d tasks with %d dependencies", s.Nodes, s.Edges)
	if r.Details || err != nil {
		a.Warnings = t.warnings(b, s, err)
	}
	return a
}

// warnings in a fixed order. A cycle is warned about in any case.
func (t *Tools) warnings(b *board, s taskdag.Stats, cycle error) []Warning {
	var in, out, orphans, missing []string
	for _, task := range b.tasks {
		deps, dependents := len(b.graph.Dependencies(task.ID)), len(b.graph.Dependents(task.ID))
		gone := len(b.graph.Missing(task.ID))
		if deps > t.o.MaxInDegree {
			in = append(in, task.ID)
		}
		if dependents > t.o.MaxOutDegree {
			out = append(out, task.ID)
		}
		if deps+dependents+gone == 0 && s.Edges > 0 {
			orphans = append(orphans, task.ID)
		}
		if gone > 0 {
			missing = append(missing, task.ID)
		}
	}
	var all []Warning
	add := func(code string, tasks []string, format string, args ...any) {
		if len(tasks) > 0 {
			all = append(all, Warning{code, tasks, fmt.Sprintf(format, args...)})
		}
	}
	if c, ok := errors.AsType[*taskdag.CycleError](cycle); ok {
		add(CodeCycle, c.Path, "%s", c)
	}
	add(CodeMissing, missing, "%d tasks depend on tasks that do not exist", len(missing))
	add("HIGH_IN_DEGREE", in, "%d tasks have more than %d dependencies", len(in), t.o.MaxInDegree)
	add("HIGH_OUT_DEGREE", out, "%d tasks have more than %d dependents", len(out), t.o.MaxOutDegree)
	if s.Depth > t.o.MaxChain {
		path, _ := b.graph.CriticalPath()
		add("LONG_CHAIN", path, "the longest chain has %d tasks, more than %d", s.Depth, t.o.MaxChain)
	}
	add("ORPHANED_NODE", orphans, "%d tasks have neither dependencies nor dependents", len(orphans))
	return all
}
