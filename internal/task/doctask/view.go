package doctask

import (
	"cmp"
	"context"
	"strings"

	"cairn/internal/task"
	"cairn/internal/text/fit"
)

// maxSlugs is the maximum number of tasks or sections in a call.
const maxSlugs = 10

// checkSlugs returns an error if there are no slugs or too many. what is "task" or "section".
func checkSlugs(s task.Slugs, what, tooMany string) error {
	switch {
	case s == nil:
		return refuse(task.MissingParameter, evidence{"parameter": what}, "Parameter %s is required", what)
	case len(s) == 0:
		return refuse(task.InvalidParameter, evidence{"parameter": what}, "Parameter %s is empty, want 1 to %d", what, maxSlugs)
	case len(s) > maxSlugs:
		return refuse(tooMany, evidence{"count": len(s), "max": maxSlugs}, "Too many %ss. Maximum %d %ss allowed, got %d", what, maxSlugs, what, len(s))
	}
	return nil
}

// ViewTaskRequest holds the arguments of view_task.
type ViewTaskRequest struct {
	Document string     `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Task     task.Slugs `json:"task" jsonschema:"Slugs below the heading Tasks, such as '#setup'"`
	Limit
}

// ViewTaskAnswer is the answer of view_task.
type ViewTaskAnswer struct {
	Document string      `json:"document"`
	Tasks    []TaskData  `json:"tasks"`
	Failed   []Failed    `json:"failed,omitempty"` // tasks that cannot be shown
	Summary  TaskSummary `json:"summary"`
}

// Failed is a part of a request that failed, while others succeeded.
type Failed struct {
	Name   string `json:"name"` // as in the request, or the path of a document
	Reason string `json:"reason"`
}

// TaskData is one task in full.
type TaskData struct {
	Slug                string               `json:"slug"`
	Title               string               `json:"title"`
	Content             string               `json:"content"`                // as written, with subtasks
	Rest                string               `json:"content_rest,omitempty"` // argument of read_doc
	Depth               int                  `json:"depth"`
	FullPath            string               `json:"full_path"`
	Status              string               `json:"status"` // as written; "pending" if there is none
	WordCount           int                  `json:"word_count"`
	HasWorkflow         bool                 `json:"has_workflow"`
	Parent              string               `json:"parent,omitempty"`
	LinkedDocument      string               `json:"linked_document,omitempty"`
	ReferencedDocuments []ReferencedDocument `json:"referenced_documents,omitempty"`
	WorkflowName        string               `json:"workflow_name,omitempty"`
	MainWorkflowName    string               `json:"main_workflow_name,omitempty"`
	// ReferencesTruncated reports that not all references are listed.
	ReferencesTruncated bool `json:"references_truncated,omitempty"`

	place place // of Content
}

// TaskSummary holds counts of the tasks viewed.
type TaskSummary struct {
	TotalTasks            int            `json:"total_tasks"`
	ByStatus              map[string]int `json:"by_status"`
	WithLinks             int            `json:"with_links"`
	WithReferences        int            `json:"with_references"`
	TasksWithWorkflows    int            `json:"tasks_with_workflows"`
	TasksWithMainWorkflow int            `json:"tasks_with_main_workflow"`
}

// ViewTask implements view_task: it returns the requested tasks in the given order, each
// once. If all fail, the error is that of the first.
func (d *Docs) ViewTask(ctx context.Context, r ViewTaskRequest) (*ViewTaskAnswer, error) {
	if err := checkSlugs(r.Task, "task", task.TooManyTasks); err != nil {
		return nil, err
	}
	doc, all, budget, err := d.viewTasks(r.Document, r.Limit)
	if err != nil {
		return nil, err
	}
	a := &ViewTaskAnswer{Document: doc.address(), Tasks: []TaskData{}, Summary: TaskSummary{ByStatus: map[string]int{}}}
	main, f := mainWorkflow(all), &follower{nodes: d.maxNodes}
	seen := map[string]bool{}
	var first error
	for _, text := range r.Task {
		t, err := doc.pick(all, text)
		if err != nil {
			first, a.Failed = cmp.Or(first, err), append(a.Failed, Failed{clip(text), err.Error()})
			continue
		}
		if seen[t.slug] {
			continue
		}
		seen[t.slug] = true
		content := doc.content(t)
		linked, document := link(t.lines)
		v := TaskData{place: doc.at(t.start), Slug: t.slug, Title: t.title, Content: content, Depth: t.depth, FullPath: fullPath(doc, t), Status: t.status,
			WordCount: len(strings.Fields(content)), Parent: t.parent, LinkedDocument: document, WorkflowName: t.field("Workflow"), MainWorkflowName: main}
		v.HasWorkflow = v.WorkflowName != ""
		v.ReferencedDocuments = flat(d.follow(ctx, doc, []byte(content), f))
		v.ReferencesTruncated = f.truncated
		a.Tasks = append(a.Tasks, v)
		s := &a.Summary
		s.TotalTasks++
		s.ByStatus[v.Status]++
		s.WithLinks += count(linked != "")
		s.WithReferences += count(len(v.ReferencedDocuments) > 0)
		s.TasksWithWorkflows += count(v.HasWorkflow)
		s.TasksWithMainWorkflow += count(main != "")
	}
	if len(a.Tasks) == 0 {
		return nil, first
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a, shorten(budget, a, a.parts())
}

// parts returns the tasks' lists of references and their texts.
func (a *ViewTaskAnswer) parts() []fit.Part {
	var lists, texts []fit.Part
	for i := range a.Tasks {
		t := &a.Tasks[i]
		refs, truncated := t.ReferencedDocuments, t.ReferencesTruncated
		lists = append(lists, fit.Part{
			Half:  true,
			Units: len(refs),
			Unit:  func(i int) any { return refs[i] },
			Keep:  func(n int) { t.ReferencedDocuments, t.ReferencesTruncated = refs[:n:n], truncated || n < len(refs) },
		})
		texts = append(texts, t.place.text(&t.Content, &t.Rest))
	}
	return append(lists, texts...)
}

func fullPath(doc *document, t docTask) string { return doc.address() + "#" + t.slug + " (task)" }

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
