package tools

import "cairn/internal/workspace"

// documentTaskTools work on the tasks that documents list below a heading Tasks.
func documentTaskTools(t *workspace.Tasks) []tool {
	return []tool{
		{
			name: "view_task", title: "View tasks of a document", groups: []Group{Tasks}, readOnly: true,
			description: `Show up to ten tasks of a document: text, status, workflow names, references. Changes and loads nothing.
Use it to look before working. Not to start: start_task adds the workflow and the referenced text.`,
			handler: documentHandler(t.Documents.ViewTask),
		},
		{
			name: "start_task", title: "Start a task of a document", groups: []Group{Tasks}, readOnly: true,
			description: `Return one task of a document with everything needed to work on it: its workflow, the document's main workflow, the text of what it refers to. The status stays as it is.
Use it once, when starting or resuming. Not for looking around: use view_task.`,
			handler: documentHandler(t.Documents.StartTask),
		},
		{
			name: "complete_task", title: "Complete a task of a document", groups: []Group{Tasks}, additive: true,
			description: `Set a task of a document completed, with the date and a note, and return the next one to work on.
Use it when the work is done. Not for cards: use update_task with status done.`,
			handler: documentHandler(t.Documents.CompleteTask),
		},
		{
			name: "task", title: "Tasks of a document", groups: []Group{Tasks}, notIdempotent: true,
			description: `List the tasks of a document, create one, or edit one's text.
Use it for tasks written below a heading Tasks. Not for cards: use list_tasks, create_task, update_task.`,
			handler: documentHandler(t.Documents.Task),
		},
	}
}
