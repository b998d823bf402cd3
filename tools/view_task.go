package tools

import (
	"cairn/internal/workspace"
)

const viewTaskDescription = `Show up to ten tasks of a document: text, status, workflow names, references. Changes and loads nothing.
Use it to look before work. Not to begin: start_task adds the workflow and the referenced text.`

const viewTaskInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "task":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10}],"description":"Slugs below the heading Tasks, such as '#setup'"}},
"required":["document","task"],
"additionalProperties":false}`

const viewTaskOutput = `{
"type":"object",
"properties":{
 "document":{"type":"string"},"tasks":{"type":"array","items":{"type":"object"}},"summary":{"type":"object"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["document","tasks","summary"]},{"required":["success","error","code"]}]}`

// viewTask is the tool view_task.
func viewTask(t *workspace.Tasks) tool {
	return tool{
		name: "view_task", title: "View tasks of a document", description: viewTaskDescription,
		input: viewTaskInput, output: viewTaskOutput,
		readOnly: true,
		call:     document(t.Documents.ViewTask),
	}
}
