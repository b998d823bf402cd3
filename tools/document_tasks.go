package tools

import "cairn/internal/folder/workspace"

// documentTaskTools are the tools on the tasks below a heading Tasks in a document.
func documentTaskTools(t *workspace.Tasks) []tool {
	return []tool{
		{
			name: "view_task", title: "View tasks of a document", groups: []Group{Tasks}, readOnly: true,
			description: `Show up to ten tasks of a document: text, status, and the names of workflows and references.
Use it to inspect tasks. Not to start one: start_task adds the text of its workflow and references.`,
			handler: documentHandler(t.Documents.ViewTask),
		},
		{
			name: "start_task", title: "Start a task of a document", groups: []Group{Tasks}, readOnly: true,
			description: `Return one task of a document with everything needed to work on it: its workflow, the document's main workflow and the text of its references. Does not change its status.
Use it once when you start or resume a task. Not for inspecting tasks: use view_task.`,
			handler: documentHandler(t.Documents.StartTask),
		},
		{
			name: "complete_task", title: "Complete a task of a document", groups: []Group{Tasks}, additive: true,
			description: `Mark a task of a document as completed, with the date and a note, and return the next task.
Use it when the work is done. Not for cards: use update_task with status done.`,
			handler: documentHandler(t.Documents.CompleteTask),
		},
		{
			name: "task", title: "Tasks of a document", groups: []Group{Tasks}, notIdempotent: true,
			description: `List the tasks of a document, create one, or edit the text of one.
Use it for tasks below a heading Tasks. Not for cards: use list_tasks, create_task, update_task.`,
			handler: documentHandler(t.Documents.Task),
		},
	}
}
