package doctask

import (
	"context"
	"fmt"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// Check returns the problems of the tasks in all documents for `cairn doctor`.
func (d *Docs) Check(ctx context.Context) ([]task.Problem, error) {
	addresses, err := d.WithTasks(ctx)
	if err != nil {
		return nil, err
	}
	var problems []task.Problem
	for _, address := range addresses {
		doc, err := d.open(address)
		if err != nil {
			continue // removed meanwhile
		}
		problems = append(problems, doc.check()...)
		board := doc.board()
		if board == nil {
			continue // edited meanwhile
		}
		if cycle := board.Graph.Cycle(); cycle != nil {
			all, _, _ := doc.tasks()
			first, _ := doc.named(all, cycle.Path[0])
			problems = append(problems, task.Problem{Path: doc.path, Line: doc.at(first.start).line, Kind: task.CycleOfTasks, Message: cycle.Error(), Fix: "remove one of these dependencies", Error: true})
		}
	}
	return problems, nil
}

// check returns the unknown statuses and missing dependencies of the document.
func (d *document) check() []task.Problem {
	all, _, _ := d.tasks()
	slugs, names := slugs(all, len(all)), d.names(all)
	var problems []task.Problem
	for _, t := range all {
		if f, ok := fieldOf(t.lines, "Status"); ok {
			if _, known := task.Parse(f.value); !known {
				problems = append(problems, task.Problem{Path: d.path, Line: d.at(f.start).line, Kind: task.OddStatus, Message: fmt.Sprintf("task %s: unknown status %q counts as pending", t.slug, clip(f.value)),
					Fix: "set the status to pending, in_progress, completed or blocked"})
			}
		}
		for _, dep := range names.dependencies(t) {
			if dep.found {
				continue
			}
			fix := "name a task of this document by its heading, slug or a link, or write none"
			if len(problems) < maxNamed { // Nearest reads all slugs
				if near := markdown.Nearest(slugs, markdown.Slug(dep.id), 1); len(near) > 0 {
					fix = "did you mean #" + near[0] + "?"
				}
			}
			problems = append(problems, task.Problem{Path: d.path, Line: d.at(dep.offset).line, Kind: task.MissingTask, Message: fmt.Sprintf("task %s depends on %q, which is no task of this document", t.slug, clip(dep.id)), Fix: fix, Error: true})
		}
	}
	return problems
}
