package tools

import (
	"cairn/internal/workspace"
)

const completeTaskDescription = `Set a task of a document completed, with the date and a note, and return the next one to work on.
Use it when the work is done. Not for cards: use update_task with status done.`

const completeTaskInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "task":{"type":"string"},
 "note":{"type":"string","maxLength":1000},
 "if_hash":{"type":"string","description":"Refuse when the file has another SHA-256"},
 "if_mtime":{"type":"string","description":"Refuse when the file has another time"}},
"required":["document","task"],
"additionalProperties":false}`

const completeTaskOutput = `{
"type":"object",
"properties":{
 "completed_task":{"type":"object"},"next_task":{"type":"object"},"document_info":{"type":"object"},"timestamp":{"type":"string"},"warnings":{"type":"array","items":{"type":"string"}},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["completed_task","document_info","timestamp"]},{"required":["success","error","code"]}]}`

// completeTask is the tool complete_task.
func completeTask(t *workspace.Tasks) tool {
	return tool{
		name: "complete_task", title: "Complete a task of a document", description: completeTaskDescription,
		input: completeTaskInput, output: completeTaskOutput,
		adds: true,
		call: document(t.Documents.CompleteTask),
	}
}
