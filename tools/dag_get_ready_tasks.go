package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagReadyDescription = `List the tasks whose dependencies are all done and that nobody has begun, the oldest first.
Use it to choose what to do next. Not for why a task cannot start: use dag_get_blocking_tasks.`

const dagReadyInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "limit":{"type":"number","minimum":1,"maximum":100,"default":10},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"additionalProperties":false}`

const dagReadyOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"readyTasks":{"type":"array","items":{"type":"string"}},"count":{"type":"integer"},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagReady is the tool dag_get_ready_tasks.
func dagReady(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_ready_tasks", title: "Tasks that can start", description: dagReadyDescription,
		input: dagReadyInput, output: dagReadyOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Ready, func(a *taskgraph.ReadyAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
