// Package task is the one model of a task behind cards, documents and the graph
// tools. It reads no files and computes on no graph: its subpackages do the
// former, package taskdag the latter.
package task

import (
	"fmt"
	"strings"
	"time"

	"cairn/internal/taskdag"
)

// Status is the progress of a task. The zero Status is Pending.
type Status uint8

// The statuses. A Waiting task waits for an answer from outside.
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

// String returns the status in the model's own words.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// Task is one task of any source.
type Task struct {
	// ID is a card's id, or the slug of a task in a document: unique in its source.
	ID    string
	Title string
	// Status is the declared status. Dependencies do not change it.
	Status Status
	// ArchivedFrom is the status an archived task had before; Archived when unknown.
	ArchivedFrom Status
	Assignee     string // empty for none
	// DependsOn lists the IDs of the tasks to complete first, as written: they may
	// repeat, be unknown or close a cycle.
	DependsOn []string
	// Estimate is the expected work in hours, 0 when unknown.
	Estimate float64
	// Created is the zero time when unknown.
	Created time.Time
}

// Done reports whether the task satisfies its dependents: it is completed, or
// archived and not known to have been unfinished.
func (t Task) Done() bool {
	return t.Status == Completed || t.Status == Archived && (t.ArchivedFrom == Completed || t.ArchivedFrom == Archived)
}

// Unfinished returns the dependencies that are unknown to of or not done.
func Unfinished(dependsOn []string, of func(id string) (Task, bool)) []string {
	var ids []string
	for _, id := range dependsOn {
		if t, ok := of(id); !ok || !t.Done() {
			ids = append(ids, id)
		}
	}
	return ids
}

// BlockedMessage says that a task waits for others.
func BlockedMessage(id string, waiting []string) string {
	return fmt.Sprintf("Task %s blocked by incomplete dependencies: %s", id, strings.Join(waiting, ", "))
}

// Over reports whether no work is left: the task is done or cancelled.
func (t Task) Over() bool { return t.Done() || t.Node().State == taskdag.Cancelled }

// Node converts the task for taskdag. An archived task counts as completed if it
// was completed or its earlier status is unknown, since people mostly archive
// finished work; otherwise it counts as cancelled.
func (t Task) Node() taskdag.Task {
	n := taskdag.Task{ID: t.ID, DependsOn: t.DependsOn, Estimate: t.Estimate}
	switch t.Status {
	case InProgress:
		n.State = taskdag.InProgress
	case Blocked:
		n.State = taskdag.Blocked
	case Completed:
		n.State = taskdag.Completed
	case Failed:
		n.State = taskdag.Failed
	case Cancelled:
		n.State = taskdag.Cancelled
	case Archived:
		n.State = taskdag.Cancelled
		if t.Done() {
			n.State = taskdag.Completed
		}
	}
	return n
}

// Board returns the tasks that are not archived and the archived tasks that they
// depend on directly, in the same order. Archived tasks keep only dependencies
// that are on the board.
func Board(all []Task) []Task {
	wanted := map[string]bool{}
	archived := false
	for _, t := range all {
		if t.Status == Archived {
			archived = true
			continue
		}
		wanted[t.ID] = true
	}
	if !archived {
		return all
	}
	live := wanted
	wanted = make(map[string]bool, len(live))
	for _, t := range all {
		if !live[t.ID] {
			continue
		}
		wanted[t.ID] = true
		for _, d := range t.DependsOn {
			wanted[d] = true
		}
	}
	var board []Task
	for _, t := range all {
		if !wanted[t.ID] {
			continue
		}
		if t.Status == Archived {
			var deps []string
			for _, d := range t.DependsOn {
				if wanted[d] {
					deps = append(deps, d)
				}
			}
			t.DependsOn = deps
		}
		board = append(board, t)
	}
	return board
}

// Nodes converts tasks for taskdag, in the same order.
func Nodes(tasks []Task) []taskdag.Task {
	nodes := make([]taskdag.Task, len(tasks))
	for i, t := range tasks {
		nodes[i] = t.Node()
	}
	return nodes
}
