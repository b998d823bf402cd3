package doctask

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/task"
)

// docTask is a task of a document: a heading or a check box.
type docTask struct {
	section int       // its heading, or the section that contains its check box
	box     *checkBox // nil for a heading
	start   int       // offset of its first line
	slug    string
	title   string
	depth   int    // heading level; a check box is one level below its parent
	parent  string // slug of the enclosing task
	lines   []line // its own text, without nested tasks
	status  string // as written, "pending" if there is none
	written bool   // a status is written
	// step marks the check boxes of a heading that has a status or dependencies. They are
	// steps of the task and not listed.
	step bool
}

// tasksSection returns the first heading whose slug or text is "tasks".
func (d *document) tasksSection() (int, bool) {
	for i, s := range d.md().Sections {
		if s.Level > 0 && (s.Anchor == "tasks" || strings.EqualFold(strings.TrimSpace(s.Heading), "tasks")) {
			return i, true
		}
	}
	return 0, false
}

const defaultStatus = "pending"

// tasks returns the headings at any depth below the tasks section and the check
// boxes in it, in document order. ok is false if there is no tasks section.
func (d *document) tasks() (list []docTask, top int, ok bool) {
	top, ok = d.tasksSection()
	if !ok {
		return nil, 0, false
	}
	taken := make(map[string]bool, len(d.md().Sections))
	for _, s := range d.md().Sections {
		taken[s.Anchor] = true
	}
	for i := top; i < len(d.md().Sections) && d.md().Sections[i].Start < d.md().Sections[top].End; i++ {
		s := d.md().Sections[i]
		inside, outside := boxes(d.ownLines(i))
		t := docTask{section: i, start: s.Start, depth: s.Level, lines: outside, status: defaultStatus}
		if i > top {
			t.slug, t.title = s.Anchor, s.Heading
			if s.Parent > top {
				t.parent = d.md().Sections[s.Parent].Anchor
			}
			if f, ok := fieldOf(t.lines, "Status"); ok {
				t.status, t.written = f.value, true
			} else if len(inside) > 0 && !slices.ContainsFunc(inside, func(b checkBox) bool { return b.status != done && b.status != marks['-'] }) {
				t.status = done
			}
			list = append(list, t)
		}
		list = append(list, boxTasks(inside, t, t.written || len(dependencyValues(t.lines)) > 0, taken)...)
	}
	return list, top, true
}

// boxTasks returns the check boxes in the text of a heading as tasks, or as steps of the
// heading.
func boxTasks(all []checkBox, heading docTask, steps bool, taken map[string]bool) []docTask {
	list := make([]docTask, 0, len(all))
	made := make([]docTask, len(all))
	for i := range all {
		b := &all[i]
		t := docTask{section: heading.section, box: b, start: b.start, slug: boxSlug(b.title, taken), title: b.title, depth: heading.depth + 1,
			parent: heading.slug, lines: b.lines, status: cmp.Or(b.status, defaultStatus), written: true, step: steps}
		if b.parent >= 0 {
			t.parent, t.depth = made[b.parent].slug, made[b.parent].depth+1
		}
		if f, ok := fieldOf(t.lines, "Status"); ok {
			t.status = f.value
		}
		made[i] = t
		if t.slug != "" {
			list = append(list, t)
		}
	}
	return list
}

// content returns the source of a task with its nested tasks.
func (d *document) content(t docTask) string {
	if t.box != nil {
		return string(d.src[t.box.start:t.box.end])
	}
	return d.text(d.md().Sections[t.section])
}

func (t docTask) field(name string) string {
	f, _ := fieldOf(t.lines, name)
	return f.value
}

// model returns the status as a task.Status.
func (t docTask) model() task.Status {
	s, _ := task.Parse(t.status)
	return s
}

// task returns t as a task.Task.
func (t docTask) task(dependsOn []string) task.Task {
	estimate, _ := task.ParseEstimate(cmp.Or(t.field("Estimate"), t.field("Estimated Time")))
	return task.Task{ID: t.slug, Title: t.title, Status: t.model(), ArchivedFrom: task.Archived, Assignee: t.field("Assignee"), DependsOn: dependsOn, Estimate: estimate}
}

// listed returns the tasks to list: those directly below the tasks section and the nested
// ones with a status.
func listed(all []docTask) []docTask { return slices.DeleteFunc(slices.Clone(all), docTask.part) }

// part reports whether t is only a part of the enclosing task: a step, or a nested heading
// without a status.
func (t docTask) part() bool { return t.step || t.parent != "" && !t.written }

// mainWorkflow returns the main workflow of the first task, which applies to all tasks.
func mainWorkflow(all []docTask) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].field("Main-Workflow")
}

func slugs(all []docTask, n int) []string {
	out := []string{}
	for _, t := range all[:min(len(all), n)] {
		out = append(out, t.slug)
	}
	return out
}

// openTasks returns a document's tasks, or an error if it has no tasks section.
func (d *document) openTasks() ([]docTask, error) {
	all, _, ok := d.tasks()
	if !ok {
		return nil, refuse(task.NoTasksSection, evidence{"document": d.address(), "available_sections": d.anchors(maxNamed)},
			"No tasks section found in document: %s", d.address())
	}
	return all, nil
}

// openTask returns the task that a request names.
func (d *document) openTask(text string) (docTask, error) {
	all, err := d.openTasks()
	if err != nil {
		return docTask{}, err
	}
	return d.pick(all, text)
}

// pick returns the task of all that a request names.
func (d *document) pick(all []docTask, text string) (docTask, error) {
	slug, err := d.parseSlug(text, task.EmptyTaskSlug)
	if err != nil {
		return docTask{}, err
	}
	if t, ok := d.named(all, slug); ok {
		return t, nil
	}
	if _, ok := d.find(slug); ok {
		top, _ := d.tasksSection()
		return docTask{}, refuse(task.NotATask, evidence{"taskSlug": slug, "tasksSection": d.md().Sections[top].Anchor, "document": d.address()},
			"Section %s is not a task (not under tasks section)", slug)
	}
	names := slugs(all, maxNamed)
	return docTask{}, refuse(task.TaskNotFound, evidence{"taskSlug": slug, "document": d.address(), "availableTasks": names, "available_tasks": names},
		"Task not found: %s. Available tasks: %s", slug, strings.Join(names, ", "))
}

// named returns the task with a slug or title: the heading that find returns, else a check
// box, also by the start of its title.
func (d *document) named(all []docTask, slug string) (docTask, bool) {
	if i, ok := d.find(slug); ok {
		for _, t := range all {
			if t.section == i && t.box == nil {
				return t, true
			}
		}
		return docTask{}, false
	}
	if i, ok := d.names(all).find(slug[strings.LastIndexByte(slug, '/')+1:]); ok && all[i].box != nil {
		return all[i], true
	}
	return docTask{}, false
}

// Board returns the tasks of a document, with their slugs as IDs. It is nil if the document
// does not exist or has no tasks section.
func (d *Docs) Board(address string) (*task.Board, error) {
	doc, err := d.open(address)
	if e, is := err.(*task.Error); is && (e.Code == task.DocumentNotFound || e.Code == task.InvalidAddress) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.board(), nil
}

// newBoard includes a part of a task only if the part has dependencies or dependents.
func (d *document) newBoard() *task.Board {
	all, _, ok := d.tasks()
	if !ok {
		return nil
	}
	needed, names := map[string]bool{}, d.names(all)
	depends := make([][]string, len(all))
	for i, t := range all {
		for _, dep := range names.dependencies(t) {
			depends[i] = append(depends[i], dep.id)
			needed[dep.id] = true
		}
	}
	var tasks []task.Task
	for i, t := range all {
		if t.part() && len(depends[i]) == 0 && !needed[t.slug] {
			continue
		}
		tasks = append(tasks, t.task(depends[i]))
	}
	return task.NewBoard(tasks)
}

var tasksHeading = regexp.MustCompile(`(?i)^#+[ \t]+tasks[ \t\r\n#]*$`)

// hasTasksHeading reports whether a line looks like the heading of a tasks section. It is a
// quick test before parsing.
func hasTasksHeading(src []byte) bool {
	for line := range bytes.Lines(src) {
		if line[0] == '#' && tasksHeading.Match(line) {
			return true
		}
	}
	return false
}

// WithTasks returns the addresses of the documents with a tasks section, by path.
func (d *Docs) WithTasks(ctx context.Context) ([]string, error) {
	all, err := d.list(ctx, "")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := d.peek(path)
		if err != nil || !hasTasksHeading(doc.src) {
			continue
		}
		if _, ok := doc.tasksSection(); ok { // the heading may be in a code block
			found = append(found, doc.address())
		}
	}
	return found, nil
}
