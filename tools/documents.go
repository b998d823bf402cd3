package tools

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/workspace"
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
		checkReceipts(t), remember(o),
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
