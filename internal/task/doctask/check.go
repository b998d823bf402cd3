package doctask

import (
	"bytes"
	"context"
	"fmt"

	"cairn/internal/base/taskdag"
	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// Problem describes a problem of a task in a document and its fix.
type Problem struct {
	Path    string // of the workspace
	Line    int    // from 1
	Kind    string
	Message string
	Fix     string
	Error   bool // the task can never start
}

// The kinds of problems.
const (
	MissingTask  = "missing-dependency"
	CycleOfTasks = "cycle"
	OddStatus    = "status"
)

// Check returns the problems of the tasks in all documents for `cairn doctor`.
func (d *Docs) Check(ctx context.Context) ([]Problem, error) {
	addresses, err := d.WithTasks(ctx)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, address := range addresses {
		doc, err := d.open(address)
		if err != nil {
			continue // removed meanwhile
		}
		problems = append(problems, doc.check()...)
		tasks, _, ok, err := d.Tasks(address)
		if err != nil || !ok {
			continue
		}
		g, err := taskdag.New(task.Nodes(tasks))
		if err != nil {
			return nil, err // unreachable: slugs are distinct
		}
		if cycle := g.Cycle(); cycle != nil {
			all, _, _ := doc.tasks()
			first, _ := doc.named(all, cycle.Path[0])
			problems = append(problems, Problem{doc.path, doc.line(first.start), CycleOfTasks, cycle.Error(), "remove one of these dependencies", true})
		}
	}
	return problems, nil
}

// check returns the unknown statuses and missing dependencies of the document.
func (d *document) check() []Problem {
	all, _, _ := d.tasks()
	slugs, names := slugs(all, len(all)), d.names(all)
	var problems []Problem
	for _, t := range all {
		if f, ok := fieldOf(t.lines, "Status"); ok {
			if _, known := task.Parse(f.value); !known {
				problems = append(problems, Problem{d.path, d.line(f.start), OddStatus, fmt.Sprintf("task %s: unknown status %q counts as pending", t.slug, clip(f.value)),
					"set the status to pending, in_progress, completed or blocked", false})
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
			problems = append(problems, Problem{d.path, d.line(dep.offset), MissingTask, fmt.Sprintf("task %s depends on %q, which is no task of this document", t.slug, clip(dep.id)), fix, true})
		}
	}
	return problems
}

// line returns the line, from 1, of the byte at offset.
func (d *document) line(offset int) int {
	head := d.src[:offset]
	return 1 + bytes.Count(head, []byte("\n")) + bytes.Count(head, []byte("\r")) - bytes.Count(head, []byte("\r\n"))
}
