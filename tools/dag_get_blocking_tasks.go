package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagBlockingDescription = `List the unfinished dependencies of one task, those that do not exist included.
Use it when a task cannot start. Not for its finished ones: use get_task_dependencies.`

const dagBlockingInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "taskId":{"type":"string"},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"required":["taskId"],
"additionalProperties":false}`

const dagBlockingOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"taskId":{"type":"string"},"blockingTasks":{"type":"array","items":{"type":"string"}},"isReady":{"type":"boolean"},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagBlocking is the tool dag_get_blocking_tasks.
func dagBlocking(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_blocking_tasks", title: "What blocks a task", description: dagBlockingDescription,
		input: dagBlockingInput, output: dagBlockingOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Blocking, func(a *taskgraph.BlockingAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
