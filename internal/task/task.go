// Package task is the common model of tasks in cards, documents and the graph tools: a Board
// of Tasks, the Errors of their tools and the Problems that doctor reports.
//
// Subpackages read and write them: cards (a file each), doctask (tasks within documents),
// taskgraph (the dependencies of both, which internal/base/taskdag computes), scene (the
// documents of the current work as one text) and files (locks and atomic writes).
//
// The room imports graphrank, text and base, and of the stores only the types. Start with
// Task and Board.
package task

import (
	"fmt"
	"strings"
	"time"

	"cairn/internal/base/taskdag"
)

// Status is the progress of a task. The zero Status is Pending.
type Status uint8

// The statuses. A Waiting task waits for an external answer.
const (
	Pending Status = iota
	Waiting
	InProgress
	Blocked // declared by a person, not derived from dependencies
	Completed
	Failed
	Cancelled
	Archived
)

var statusNames = [...]string{"pending", "waiting", "in_progress", "blocked", "completed", "failed", "cancelled", "archived"}

// String returns the name of the status in this model.
func (s Status) String() string { return statusNames[s] }

// Task is one task of any source.
type Task struct {
	// ID is the ID of a card or the slug of a task in a document. It is unique in its
	// source.
	ID    string
	Title string
	// Status is the declared status. Dependencies do not change it.
	Status Status
	// ArchivedFrom is the previous status of an archived task, Archived if unknown.
	ArchivedFrom Status
	Assignee     string // empty for none
	// DependsOn lists the IDs of the tasks to complete first, as written. They may contain
	// duplicates, be unknown or close a cycle.
	DependsOn []string
	// Estimate is the expected work in hours, 0 if unknown.
	Estimate float64
	// Created is the zero time if unknown.
	Created time.Time
}

// Done reports whether the task satisfies its dependents: it is completed, or
// archived and not known to have been unfinished.
func (t Task) Done() bool {
	return t.Status == Completed || t.Status == Archived && (t.ArchivedFrom == Completed || t.ArchivedFrom == Archived)
}

// BlockedMessage returns the message that a task waits for others.
func BlockedMessage(id string, waiting []string) string {
	return fmt.Sprintf("Task %s blocked by incomplete dependencies: %s", id, strings.Join(waiting, ", "))
}

// Over reports whether the task needs no more work: it is done or cancelled.
func (t Task) Over() bool { return t.Done() || t.Node().State == taskdag.Cancelled }

// states maps statuses to the states of taskdag. The default is taskdag.Pending.
var states = map[Status]taskdag.State{InProgress: taskdag.InProgress, Blocked: taskdag.Blocked, Completed: taskdag.Completed,
	Failed: taskdag.Failed, Cancelled: taskdag.Cancelled, Archived: taskdag.Cancelled}

// Node converts the task for taskdag. An archived task counts as completed if it was
// completed or its previous status is unknown, because most archived work is finished.
// Otherwise it counts as cancelled.
func (t Task) Node() taskdag.Task {
	n := taskdag.Task{ID: t.ID, DependsOn: t.DependsOn, Estimate: t.Estimate, State: states[t.Status]}
	if t.Done() {
		n.State = taskdag.Completed
	}
	return n
}

// Problem describes a problem of a task and its fix. If Error is true, the task may be
// missing from answers or can never start. Otherwise the problem is a warning.
type Problem struct {
	Path    string `json:"path"`           // of the workspace
	Line    int    `json:"line,omitempty"` // from 1; 0 if unknown
	ID      string `json:"id"`             // of a card
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	Error   bool   `json:"error"`
}

// The kinds of problems.
const (
	BadYAML       = "bad-yaml"
	NoFrontMatter = "no-front-matter"
	Unreadable    = "unreadable"
	OddName       = "name"
	Large         = "large"
	OtherID       = "other-id"
	DuplicateID   = "duplicate-id"
	NoTitle       = "no-title"
	OddStatus     = "status"
	OddPriority   = "priority"
	OddDate       = "date"
	OddEstimate   = "estimate"
	MissingTask   = "missing-dependency"
	CycleOfTasks  = "cycle"
	Orphan        = "active-without-assignee"
	Stale         = "stale"
	SingleTag     = "single-tag"
)
