// Package task is the one model behind task cards, the tasks in documents and
// the graph tools: a status, dependencies, and the words each of these families
// uses for them on the wire.
//
// It reads no files and computes on no graph: cards, mdtask and dagtools below
// it do the former, taskdag the latter.
package task

import (
	"time"

	"cairn/internal/taskdag"
)

// Status is what is known of a task's progress. The zero Status is Pending.
type Status uint8

// The statuses. Waiting is a machine's: it waits for an answer from outside.
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

// Task is one task, wherever it is written down.
type Task struct {
	// ID is a card's id, or the slug of a task in a document: unique in its source.
	ID    string
	Title string
	// Status is the declared one. Dependencies do not change it.
	Status Status
	// ArchivedFrom is the status an archived task had before; Archived when nobody knows.
	ArchivedFrom Status
	Assignee     string // empty when nobody is
	// DependsOn are the ids of the tasks that have to be completed first, as
	// written: they may repeat, be unknown, or close a cycle.
	DependsOn []string
	// Estimate is the expected work in hours, 0 when unknown.
	Estimate float64
	// Created is the zero time when unknown.
	Created time.Time
}

// Done reports whether the task satisfies those that depend on it: it is
// completed, or archived and not known to have been given up.
func (t Task) Done() bool {
	return t.Status == Completed || t.Status == Archived && (t.ArchivedFrom == Completed || t.ArchivedFrom == Archived)
}

// Node is the task as the graph takes it. An archived task counts as completed
// when it was, or when nothing is known of it, since archiving finished
// work is the common case; otherwise as cancelled, which never satisfies
// anybody.
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

// Board is the tasks that count on a board: all that are not archived, and the
// archived ones that one of these depends on. Dependencies of an archived task
// that is left out with it are forgotten. The order is kept.
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

// Nodes are the tasks as the graph takes them, in the same order.
func Nodes(tasks []Task) []taskdag.Task {
	nodes := make([]taskdag.Task, len(tasks))
	for i, t := range tasks {
		nodes[i] = t.Node()
	}
	return nodes
}
