package tools

import (
	"cairn/internal/workspace"
)

const documentTaskDescription = `List the tasks of a document, create one, or edit one's text.
Use it for tasks written below a heading Tasks. Not for cards: use list_tasks, create_task, update_task.`

const documentTaskInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "operation":{"type":"string","enum":["list","create","edit"],"default":"list"},
 "task":{"type":"string","description":"The one to edit, or to create behind"},
 "title":{"type":"string","description":"Of a new one","maxLength":200},
 "content":{"type":"string"},
 "status":{"type":"string","description":"List only these"},
 "if_hash":{"type":"string","description":"Refuse when the file has another SHA-256"},
 "if_mtime":{"type":"string","description":"Refuse when the file has another time"}},
"required":["document"],
"additionalProperties":false}`

const documentTaskOutput = `{
"type":"object",
"properties":{
 "operation":{"type":"string"},"document":{"type":"string"},"tasks":{"type":"array","items":{"type":"object"}},"next_task":{"type":"object"},"task_created":{"type":"object"},"task_edited":{"type":"object"},"hash":{"type":"string"},"timestamp":{"type":"string"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["operation","document","hash"]},{"required":["success","error","code"]}]}`

// documentTask is the tool task.
func documentTask(t *workspace.Tasks) tool {
	return tool{
		name: "task", title: "Tasks of a document", description: documentTaskDescription,
		input: documentTaskInput, output: documentTaskOutput,
		counts: true,
		call:   document(t.Documents.Task),
	}
}
