package tools

import (
	"context"
	"errors"

	"cairn/internal/task/doctask"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const startTaskDescription = `Return one task of a document with all that is needed to work on it: its workflow, the document's main workflow, the text of what it refers to. The status stays as it is.
Use it once, when beginning or resuming. Not for looking around: use view_task.`

const startTaskInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "task":{"type":"string"}},
"required":["document","task"],
"additionalProperties":false}`

const startTaskOutput = `{
"type":"object",
"properties":{
 "document":{"type":"string"},"task":{"type":"object"},"warnings":{"type":"array","items":{"type":"string"}},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["document","task"]},{"required":["success","error","code"]}]}`

// startTask is the tool start_task.
func startTask(t *workspace.Tasks) tool {
	return tool{
		name: "start_task", title: "Start a task of a document", description: startTaskDescription,
		input: startTaskInput, output: startTaskOutput,
		readOnly: true,
		call: document(func(ctx context.Context, r doctask.StartTaskRequest) (*doctask.StartTaskAnswer, error) {
			a, err := t.Documents.StartTask(ctx, r)
			if err != nil || !t.Enforce {
				return a, err
			}
			// Nothing is set here that could be refused, so it is only said.
			if blocked, ok := errors.AsType[*taskgraph.BlockedError](t.Graph.CheckStart(ctx, a.Document, a.Task.Slug)); ok {
				a.Warnings = append(a.Warnings, blocked.Error())
			}
			return a, nil
		}),
	}
}
