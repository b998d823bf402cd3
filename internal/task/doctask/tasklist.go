package doctask

import (
	"context"
	"slices"
	"strings"
	"time"

	"cairn/internal/task"
)

// TaskRequest holds the arguments of task. Operation is list (the default), create or edit.
type TaskRequest struct {
	Document  string `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Operation string `json:"operation,omitempty" schema:"enum=list|create|edit,default=list"`
	// Task is the task to edit, or the task after which to create the new one.
	Task    string `json:"task,omitempty" jsonschema:"The task to edit, or to insert after"`
	Title   string `json:"title,omitempty" schema:"max=200" jsonschema:"Title of a new task"` // create
	Content string `json:"content,omitempty"`                                                 // create and edit
	Status  string `json:"status,omitempty" jsonschema:"List only tasks with this status"`    // list: only these, exactly as written
	Precondition
}

// TaskAnswer is the answer of task: Tasks and NextTask for list, Created for create,
// Edited for edit.
type TaskAnswer struct {
	Operation string      `json:"operation"`
	Document  string      `json:"document"`
	Tasks     *[]TaskLine `json:"tasks,omitempty"`
	NextTask  *TaskLine   `json:"next_task,omitempty"`
	Created   *TaskLine   `json:"task_created,omitempty"`
	Edited    *TaskLine   `json:"task_edited,omitempty"`
	Hash      string      `json:"hash"`
	Timestamp string      `json:"timestamp,omitempty"` // RFC 3339, of a write
}

// TaskLine is one task of a list.
type TaskLine struct {
	Slug   string `json:"slug"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Link   string `json:"link,omitempty"`
	Parent string `json:"parent,omitempty"`
}

// Task implements task.
func (d *Docs) Task(ctx context.Context, r TaskRequest) (*TaskAnswer, error) {
	switch r.Operation {
	case "", "list":
		return d.listTasks(r)
	case "create":
		return d.createTask(ctx, r)
	case "edit":
		return d.editTask(ctx, r)
	}
	return nil, refuse(task.InvalidOperation, evidence{"operation": clip(r.Operation)}, "Unknown operation %q, want {list,create,edit}", clip(r.Operation))
}

func taskLine(t docTask) TaskLine {
	l := TaskLine{Slug: t.slug, Title: t.title, Status: t.status, Parent: t.parent}
	l.Link, _ = link(t.lines)
	return l
}

func (d *Docs) listTasks(r TaskRequest) (*TaskAnswer, error) {
	doc, err := d.open(r.Document)
	if err != nil {
		return nil, err
	}
	all, _, _ := doc.tasks() // no tasks section is an empty list
	all = listed(all)
	if r.Status != "" {
		all = slices.DeleteFunc(all, func(t docTask) bool { return t.status != r.Status })
	}
	lines := []TaskLine{}
	for _, t := range all {
		lines = append(lines, taskLine(t))
	}
	a := &TaskAnswer{Operation: "list", Document: doc.address(), Tasks: &lines, Hash: doc.hash()}
	if next, ok := doc.nextTask(all, -1); ok {
		a.NextTask = new(taskLine(next))
	}
	return a, nil
}

// required returns an error if one of the parameters of an operation is blank. pairs holds
// names and values.
func required(operation string, pairs ...string) error {
	for p := range slices.Chunk(pairs, 2) {
		if strings.TrimSpace(p[1]) == "" {
			return refuse(task.MissingParameter, evidence{"parameter": p[0]}, "Parameter %s is required for %s", p[0], operation)
		}
	}
	return nil
}

// createTask adds a task at the end of the tasks section, or after another task at the same
// depth. It adds a tasks section if there is none.
func (d *Docs) createTask(ctx context.Context, r TaskRequest) (*TaskAnswer, error) {
	if err := required("create", "title", r.Title, "content", r.Content); err != nil {
		return nil, err
	}
	return d.editTasks(ctx, r, func(doc *document) (*document, string, error) {
		if _, ok := doc.tasksSection(); !ok { // add one at the end
			end := len(doc.md().Sections)
			var err error
			if doc, err = doc.checkShape(doc.insert(len(doc.src), doc.heading(2, "Tasks", "")), end, end, 1); err != nil {
				return nil, "", err
			}
		}
		return doc.addTask(r.Task, r.Title, r.Content)
	})
}

// addTask adds a task after another one, or at the end if after is "", and returns its slug.
// The task is a check box if the other one is, or if all tasks are.
func (d *document) addTask(after, title, content string) (*document, string, error) {
	all, top, _ := d.tasks()
	op := Operation{Section: d.md().Sections[top].Anchor, Operation: AppendChild, Title: title, Content: content}
	at := -1
	if after != "" {
		t, err := d.pick(all, after)
		if err != nil {
			return nil, "", err
		}
		op.Section, op.Operation = t.slug, InsertAfter
		at = slices.IndexFunc(all, func(o docTask) bool { return o.start == t.start })
	} else if !slices.ContainsFunc(all, func(t docTask) bool { return t.box == nil }) {
		for i, t := range all {
			if t.box.parent < 0 {
				at = i // the last one that is not nested
			}
		}
	}
	if at >= 0 && all[at].box != nil {
		return d.insertBox(all, at, title, content)
	}
	made, result, err := d.apply(op)
	return made, result.NewSection, err
}

// editTask replaces a task's own text. It keeps nested tasks.
func (d *Docs) editTask(ctx context.Context, r TaskRequest) (*TaskAnswer, error) {
	if err := required("edit", "task", r.Task, "content", r.Content); err != nil {
		return nil, err
	}
	return d.editTasks(ctx, r, func(doc *document) (*document, string, error) {
		t, err := doc.openTask(r.Task)
		if err != nil {
			return nil, "", err
		}
		made, err := doc.rewrite(t, r.Content)
		return made, t.slug, err
	})
}

// rewrite replaces a task's own text.
func (d *document) rewrite(t docTask, content string) (*document, error) {
	if t.box != nil {
		return d.editBox(t, content)
	}
	made, _, err := d.apply(Operation{Section: t.slug, Operation: Replace, Content: content})
	return made, err
}

// editTasks writes the document that change returns, with the slug of the task that the
// answer describes.
func (d *Docs) editTasks(ctx context.Context, r TaskRequest, change func(*document) (*document, string, error)) (*TaskAnswer, error) {
	slug := ""
	after, err := d.edit(ctx, r.Document, r.Precondition, func(doc *document) ([]byte, error) {
		made, changed, err := change(doc)
		if err != nil {
			return nil, err
		}
		slug = changed
		return made.src, nil
	})
	if err != nil {
		return nil, err
	}
	a := &TaskAnswer{Operation: r.Operation, Document: after.address(), Hash: after.hash(), Timestamp: d.o.Now().UTC().Format(time.RFC3339)}
	all, _, _ := after.tasks()
	for _, t := range all {
		if t.slug != slug {
			continue
		}
		line := taskLine(t)
		if r.Operation == "create" {
			a.Created = &line
		} else {
			a.Edited = &line
		}
	}
	return a, nil
}
