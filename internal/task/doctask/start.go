package doctask

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/task"
)

// StartTaskRequest holds the arguments of start_task.
type StartTaskRequest struct {
	Document string `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Task     string `json:"task"`
	Limit
}

// StartTaskAnswer is the answer of start_task.
type StartTaskAnswer struct {
	Document string     `json:"document"`
	Task     TaskToWork `json:"task"`
	// Warnings lists dependencies that are not completed and workflows that cannot be
	// used.
	Warnings []string `json:"warnings,omitempty"`
}

// TaskToWork is a task with its workflows and the texts to which it refers.
type TaskToWork struct {
	Slug                string            `json:"slug"`
	Title               string            `json:"title"`
	Content             string            `json:"content"`
	Rest                string            `json:"content_rest,omitempty"` // argument of read_doc
	Status              string            `json:"status"`
	FullPath            string            `json:"full_path"`
	Workflow            *Workflow         `json:"workflow,omitempty"`
	MainWorkflow        *Workflow         `json:"main_workflow,omitempty"`
	ReferencedDocuments []*LoadedDocument `json:"referenced_documents,omitempty"`
	ReferencesTruncated bool              `json:"references_truncated,omitempty"`

	place place // of Content
}

// StartTask implements start_task: it returns the task, its workflow, the main workflow of
// the document and the text of all references. It does not change the status.
func (d *Docs) StartTask(ctx context.Context, r StartTaskRequest) (*StartTaskAnswer, error) {
	doc, all, budget, err := d.viewTasks(r.Document, r.Limit)
	if err != nil {
		return nil, err
	}
	t, err := doc.pick(all, r.Task)
	if err != nil {
		return nil, err
	}
	a := &StartTaskAnswer{Document: doc.address()}
	a.Task, a.Warnings = d.toWork(ctx, doc, t)
	if name := mainWorkflow(all); name != "" {
		w, err := d.workflow(name)
		if err != nil {
			a.Warnings = append(a.Warnings, err.Error())
		}
		a.Task.MainWorkflow = w
	}
	if waiting := doc.board().Unfinished(doc.board().ByID[t.slug].DependsOn); len(waiting) > 0 {
		a.Warnings = append(a.Warnings, task.BlockedMessage(t.slug, waiting))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a, shorten(budget, a, a.Task.parts())
}

// toWork returns a task with its own workflow and its references.
func (d *Docs) toWork(ctx context.Context, doc *document, t docTask) (TaskToWork, []string) {
	content := doc.content(t)
	w := TaskToWork{place: doc.at(t.start), Slug: t.slug, Title: t.title, Content: content, Status: t.status, FullPath: fullPath(doc, t)}
	var warnings []string
	if name := t.field("Workflow"); name != "" {
		var err error
		if w.Workflow, err = d.workflow(name); err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	f := &follower{nodes: d.maxNodes}
	w.ReferencedDocuments = d.follow(ctx, doc, []byte(content), f)
	w.ReferencesTruncated = f.truncated
	return w, warnings
}

// CompleteTaskRequest holds the arguments of complete_task. Note has at most 1,000
// characters.
type CompleteTaskRequest struct {
	Document string `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Task     string `json:"task"`
	Note     string `json:"note,omitempty" schema:"max=1000"`
	Precondition
	Limit
}

// CompleteTaskAnswer is the answer of complete_task.
type CompleteTaskAnswer struct {
	CompletedTask CompletedTask `json:"completed_task"`
	// NextTask is the next task of the document that can start or is in progress, if any.
	NextTask     *TaskToWork  `json:"next_task,omitempty"`
	DocumentInfo DocumentInfo `json:"document_info"`
	Timestamp    string       `json:"timestamp"` // RFC 3339
	Warnings     []string     `json:"warnings,omitempty"`
}

// CompletedTask is the task as written.
type CompletedTask struct {
	Slug          string `json:"slug"`
	Title         string `json:"title"`
	Note          string `json:"note"`
	CompletedDate string `json:"completed_date"` // YYYY-MM-DD
}

// DocumentInfo names a document.
type DocumentInfo struct {
	Slug      string `json:"slug"` // file name without .md
	Title     string `json:"title"`
	Namespace string `json:"namespace"` // its folder
}

const (
	maxNote = 1000 // characters
	done    = "completed"
)

// CompleteTask implements complete_task. It sets the status to completed in the format that
// the document uses and appends a Completed line, and a Note line if there is a note, to the
// task's own text. It does not change a completed task.
func (d *Docs) CompleteTask(ctx context.Context, r CompleteTaskRequest) (*CompleteTaskAnswer, error) {
	note, err := checkNote(r.Note)
	if err != nil {
		return nil, err
	}
	budget, err := d.budget(r.Limit)
	if err != nil {
		return nil, err
	}
	now := d.o.Now().UTC()
	date := now.Format(time.DateOnly)
	var slug string
	after, err := d.edit(ctx, r.Document, r.Precondition, func(doc *document) ([]byte, error) {
		t, err := doc.openTask(r.Task)
		if err != nil {
			return nil, err
		}
		slug = t.slug
		return doc.complete(t, date, note)
	})
	if err != nil {
		return nil, err
	}
	all, err := after.openTasks()
	if err != nil {
		return nil, err
	}
	t, err := after.pick(all, slug)
	if err != nil {
		return nil, err
	}
	if !hasField(t.lines, "Note", note) {
		note = t.field("Note")
	}
	a := &CompleteTaskAnswer{
		CompletedTask: CompletedTask{t.slug, t.title, note, t.field("Completed")},
		DocumentInfo:  info(after), Timestamp: now.Format(time.RFC3339),
	}
	open := slices.DeleteFunc(listed(all), func(t docTask) bool { return after.board().ByID[t.slug].Over() })
	if next, ok := after.nextTask(open, t.start); ok {
		work, warnings := d.toWork(ctx, after, next)
		a.NextTask, a.Warnings = &work, warnings
		if err := shorten(budget, a, work.parts()); err != nil { // the task is completed nevertheless
			a.NextTask, a.Warnings = nil, []string{"the next task, " + next.slug + ", does not fit into max_tokens"}
		}
	} else if len(open) > 0 {
		a.Warnings = []string{"no later task can start; the document has open tasks: " + strings.Join(slugs(open, maxNamed), ", ")}
	}
	return a, nil
}

func checkNote(note string) (string, error) {
	if n := utf8.RuneCountInString(note); n > maxNote || !utf8.ValidString(note) {
		return "", refuse(task.InvalidParameter, evidence{"parameter": "note", "length": n, "max": maxNote}, "Parameter note has %d characters, want at most %d", n, maxNote)
	}
	// On one line, a note cannot create headings or fields.
	return strings.Join(strings.FieldsFunc(note, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "), nil
}

func info(doc *document) DocumentInfo {
	return DocumentInfo{strings.TrimSuffix(path.Base(doc.path), ".md"), doc.md().Title, namespace(doc.address())}
}

// nextTask returns the first task that begins after an offset, is pending or in progress, and
// does not wait for dependencies.
func (d *document) nextTask(all []docTask, after int) (docTask, bool) {
	for _, t := range all {
		s := t.model()
		if t.start > after && (s == task.Pending || s == task.Waiting || s == task.InProgress) && len(d.board().Unfinished(d.board().ByID[t.slug].DependsOn)) == 0 {
			return t, true
		}
	}
	return docTask{}, false
}

// complete returns the source of the document with a task completed: it sets the status in
// place and adds lines below the task's own text.
func (d *document) complete(t docTask, date, note string) ([]byte, error) {
	_, dated := fieldOf(t.lines, "Completed")
	if t.model() == task.Completed && dated {
		return d.src, nil
	}
	var lines []string
	if !dated {
		lines = append(lines, "- Completed: "+date)
	}
	if note != "" && !hasField(t.lines, "Note", note) {
		lines = append(lines, "- Note: "+note)
	}
	out := d.src
	if added := strings.Join(lines, d.eol()); added != "" && t.box != nil {
		out = splice(out, t.box.textEnd, t.box.textEnd, d.eol()+d.inBox(t.box, added))
	} else if added != "" {
		out = d.appendOwn(t.section, added)
	}
	// The following edits precede the appended text, so the offsets are still valid.
	f, ok := fieldOf(t.lines, "Status")
	if !ok {
		f, ok = emptyField(t.lines, "Status")
	}
	switch {
	case ok && f.value == "":
		out = splice(out, f.start, f.end, " "+done)
	case ok && t.model() != task.Completed:
		out = splice(out, f.start, f.end, done)
	}
	if t.box != nil {
		if t.box.status != done {
			out = splice(out, t.box.mark, t.box.mark+1, "x")
		}
		return out, nil
	}
	if ok {
		return out, nil
	}
	eol, at := d.eol(), d.bodyStart(t.section)
	line := "**Status:** " + done + eol
	if at > 0 && out[at-1] != '\n' && out[at-1] != '\r' {
		line = eol + line
	}
	if rest := out[at:]; len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r' {
		line += eol // a paragraph of its own
	}
	return splice(out, at, at, line), nil
}
