package doctask

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/task"
)

// found is one task of a document.
type found struct {
	section int
	slug    string
	title   string
	depth   int    // heading level
	parent  string // slug of the task it is nested in
	lines   []line
	status  string // as written; "pending" when there is none
	written bool   // whether a status is written
}

// tasksSection returns the first heading whose slug or text is "tasks".
func (d *document) tasksSection() (int, bool) {
	for i, s := range d.md.Sections {
		if s.Level > 0 && (s.Anchor == "tasks" || strings.EqualFold(strings.TrimSpace(s.Heading), "tasks")) {
			return i, true
		}
	}
	return 0, false
}

const defaultStatus = "pending"

// tasks returns the headings at any depth below the tasks section, in document
// order. ok is false if there is no tasks section.
func (d *document) tasks() (list []found, top int, ok bool) {
	top, ok = d.tasksSection()
	if !ok {
		return nil, 0, false
	}
	for i := top + 1; i < len(d.md.Sections) && d.md.Sections[i].Start < d.md.Sections[top].End; i++ {
		s := d.md.Sections[i]
		t := found{section: i, slug: s.Anchor, title: s.Heading, depth: s.Level, lines: d.ownLines(i), status: defaultStatus}
		if s.Parent > top {
			t.parent = d.md.Sections[s.Parent].Anchor
		}
		if f, ok := fieldOf(t.lines, "Status"); ok {
			t.status, t.written = f.value, true
		}
		list = append(list, t)
	}
	return list, top, true
}

func (t found) field(name string) string {
	f, _ := fieldOf(t.lines, name)
	return f.value
}

// model returns the status in the common model.
func (t found) model() task.Status {
	s, _ := task.Parse(t.status)
	return s
}

// listed returns the tasks to list: those directly below the tasks section and the
// nested ones with a status. A nested heading without a status is part of its task.
func listed(all []found) []found {
	return slices.DeleteFunc(slices.Clone(all), func(t found) bool { return t.parent != "" && !t.written })
}

// mainWorkflow returns the main workflow of the first task, which applies to all.
func mainWorkflow(all []found) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].field("Main-Workflow")
}

func slugs(all []found, n int) []string {
	out := []string{}
	for _, t := range all[:min(len(all), n)] {
		out = append(out, t.slug)
	}
	return out
}

// openTasks returns a document's tasks, or an error if it has no tasks section.
func (d *document) openTasks() ([]found, error) {
	all, _, ok := d.tasks()
	if !ok {
		return nil, refuse(NoTasksSection, evidence{"document": d.address(), "available_sections": d.anchors(maxNamed)},
			"No tasks section found in document: %s", d.address())
	}
	return all, nil
}

// openTask returns the task that a request names.
func (d *document) openTask(text string) (found, error) {
	all, err := d.openTasks()
	if err != nil {
		return found{}, err
	}
	return d.pick(all, text)
}

// pick returns the task of all that a request names.
func (d *document) pick(all []found, text string) (found, error) {
	slug, err := d.parseSlug(text, EmptyTaskSlug)
	if err != nil {
		return found{}, err
	}
	i, ok := d.find(slug)
	if ok {
		for _, t := range all {
			if t.section == i {
				return t, nil
			}
		}
		top, _ := d.tasksSection()
		return found{}, refuse(NotATask, evidence{"taskSlug": slug, "tasksSection": d.md.Sections[top].Anchor, "document": d.address()},
			"Section %s is not a task (not under tasks section)", slug)
	}
	names := slugs(all, maxNamed)
	return found{}, refuse(TaskNotFound, evidence{"taskSlug": slug, "document": d.address(), "availableTasks": names, "available_tasks": names},
		"Task not found: %s. Available tasks: %s", slug, strings.Join(names, ", "))
}

// Tasks returns a document's tasks with their slugs as IDs, and the document's
// hash. A nested task without a status counts only if it has dependencies. ok is
// false if the document does not exist or has no tasks section.
func (d *Docs) Tasks(address string) (tasks []task.Task, hash string, ok bool, err error) {
	doc, err := d.open(address)
	if e, is := err.(*Error); is && (e.Code == DocumentNotFound || e.Code == InvalidAddress) {
		return nil, "", false, nil
	}
	if err != nil {
		return nil, "", false, err
	}
	all, _, ok := doc.tasks()
	if !ok {
		return nil, "", false, nil
	}
	for _, t := range all {
		depends := doc.dependencies(t)
		if t.parent != "" && !t.written && len(depends) == 0 {
			continue
		}
		estimate, _ := task.ParseEstimate(t.field("Estimate"))
		tasks = append(tasks, task.Task{ID: t.slug, Title: t.title, Status: t.model(), ArchivedFrom: task.Archived, Assignee: t.field("Assignee"), DependsOn: depends, Estimate: estimate})
	}
	return tasks, doc.hash(), true, nil
}

// dependencies reads the field Dependencies: slugs with or without "#", separated
// by commas, semicolons or blanks; "none" and "-" mean no dependencies.
func (d *document) dependencies(t found) []string {
	var out []string
	for _, word := range strings.FieldsFunc(t.field("Dependencies"), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == ';' }) {
		word = strings.Trim(word, "`[]()")
		if word == "" || word == "-" || strings.EqualFold(word, "none") {
			continue
		}
		slug, err := d.parseSlug(strings.TrimPrefix(word, "@"), EmptyTaskSlug)
		if err != nil {
			slug = word // of another document: not a task of this one
		} else if i, ok := d.find(slug); ok {
			slug = d.md.Sections[i].Anchor
		}
		if !slices.Contains(out, slug) {
			out = append(out, slug)
		}
	}
	return out
}

// tasksHeading matches the heading of the tasks section in most documents.
var tasksHeading = regexp.MustCompile(`(?mi)^#{1,6}[ \t]+tasks[ \t#]*\r?$`)

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
		src, _, err := d.files.Read(path)
		if err != nil || !tasksHeading.Match(src) {
			continue
		}
		if doc, err := d.load(path); err == nil { // the heading may be in a code block
			if _, ok := doc.tasksSection(); ok {
				found = append(found, doc.address())
			}
		}
	}
	return found, nil
}
