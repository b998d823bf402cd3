package tools

import (
	"context"
	"errors"

	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/notes"
)

// documentTools browse, search and edit documents by section.
func documentTools(o *Options) []tool {
	t := o.Tasks
	return []tool{
		{name: "view_section", title: "View sections of a document", groups: []Group{Docs}, readOnly: true, handler: documentHandler(t.Documents.ViewSection),
			description: `Show up to ten sections of a document in full, with the hash and modification time of the file for if_hash and if_mtime.
Use it before you edit them with section. Not for search: use read_context.`},
		{name: "section", title: "Edit sections of a document", groups: []Group{Docs}, notIdempotent: true, handler: documentHandler(t.Documents.Section),
			description: `Edit sections of a document by anchor: replace, append, prepend, insert_before, insert_after, append_child, remove. Each operation succeeds or fails independently; the file is written once.
Use it for edits below one heading. Not for new files. With if_hash from view_section, it refuses to overwrite changes of other writers.`},
		{name: "browse_documents", title: "Browse documents", groups: []Group{Docs}, readOnly: true, handler: documentHandler(t.Documents.Browse),
			description: `List the folders and documents at a path, or the outline of one document; with query, the matching documents below the path.
Use it to learn how a workspace is organized. Not for questions: use read_context, which ranks by meaning.`},
		{name: "search_documents", title: "Search lines of documents", groups: []Group{Docs}, readOnly: true, handler: documentHandler(t.Documents.SearchDocuments),
			description: `Find the lines of documents that contain a text or match a regular expression (RE2).
Use it to find every occurrence of exact text. Not for questions: use read_context, which ranks by meaning.`},
		{name: "check_receipts", title: "Check what cited lines say now", groups: []Group{Docs}, readOnly: true, noSchema: true, handler: codeHandler(o.checkReceipts),
			description: `Tell whether cited lines are the same, moved (with the new place), changed (with the new lines) or removed.
Use it before you rely on lines that a note cites. A receipt is a place with the mark of read_doc: path:from-to #anchor @mark. Not for reading: use read_doc.`},
		{name: "remember", title: "Write, confirm or drop a note", groups: []Group{Docs}, notIdempotent: true, handler: codeHandler(o.remember),
			description: `Note down what you found out, with the lines that show it. Searches find notes, and warn when these lines change.
Use it for what took work to find and is not written in one place. With id, a text corrects the note and no text confirms it. Not for work to do: use create_task.`},
	}
}

// documentTaskTools are the tools on the tasks below a heading Tasks in a document.
func documentTaskTools(folder *owner.Folder, o *Options) []tool {
	t := o.Tasks
	return []tool{
		{name: "view_task", title: "View tasks of a document", groups: []Group{Tasks}, readOnly: true, handler: documentHandler(t.Documents.ViewTask),
			description: `Show up to ten tasks of a document: text, status, and the names of workflows and references.
Use it to inspect tasks. Not to start one: start_task adds the text of its workflow and references.`},
		{name: "start_task", title: "Start a task of a document", groups: []Group{Tasks}, readOnly: true, handler: documentHandler(func(ctx context.Context, r startTaskArgs) (*startTaskAnswer, error) {
			a, err := t.Documents.StartTask(ctx, r.StartTaskRequest)
			if err != nil {
				return nil, err
			}
			text, err := r.of(ctx, folder, o, bundle.Request{Query: a.Task.Content})
			return &startTaskAnswer{a, text}, err
		}),
			description: `Return one task of a document with everything needed to work on it: its workflow, the document's main workflow and the text of its references. Does not change its status.
Use it once when you start or resume a task. Not for inspecting tasks: use view_task.`},
		{name: "complete_task", title: "Complete a task of a document", groups: []Group{Tasks}, additive: true, handler: documentHandler(t.Documents.CompleteTask),
			description: `Mark a task of a document as completed, with the date and a note, and return the next task.
Use it when the work is done. Not for cards: use update_task with status done.`},
		{name: "task", title: "Tasks of a document", groups: []Group{Tasks}, notIdempotent: true, handler: documentHandler(t.Documents.Task),
			description: `List the tasks of a document, create one, or edit the text of one.
Use it for tasks below a heading Tasks. Not for cards: use list_tasks, create_task, update_task.`},
	}
}

type startTaskArgs struct {
	workspace.StartTaskRequest
	ContextSize
}

type startTaskAnswer struct {
	*workspace.StartTaskAnswer
	Context string `json:"task_context,omitempty"`
}

type checkReceiptsArgs struct {
	Receipts []string `json:"receipts,omitempty" schema:"min=1,max=1000" jsonschema:"Such as docs/a.md:3-9#setup@s5mXq0aFjT2kz1Bc"`
	Path     string   `json:"path,omitempty" jsonschema:"Document with receipts, instead of receipts"`
	Format   choice   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
}

func (o *Options) checkReceipts(ctx context.Context, a checkReceiptsArgs) (any, error) {
	if (a.Path == "") == (len(a.Receipts) == 0) {
		return nil, invalid("give either receipts or path")
	}
	var report *workspace.ReceiptReport
	var err error
	name := "receipts"
	if a.Path != "" {
		name = "path"
		report, err = o.Tasks.CheckReceipts(ctx, []string{a.Path}, false)
	} else {
		report, err = o.Tasks.CheckReceiptList(ctx, a.Receipts)
	}
	if bad, ok := errors.AsType[*workspace.InvalidReceiptError](err); ok {
		return nil, invalid("%s: %s", name, bad)
	}
	return answerAs(report, err, originOf(ctx).wantsText(a.Format))
}

func (o *Options) remember(ctx context.Context, r notes.Request) (*notes.Answer, error) {
	if r.By == "" {
		r.By = "agent"
	}
	return o.Tasks.Remember(ctx, o.Stages, originOf(ctx).peer.Name, r)
}
