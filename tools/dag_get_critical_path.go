package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagCriticalPathDescription = `Return the longest chain of tasks that depend on each other: no plan is shorter than that.
Use it to find what delays the end. Not for what can start now: use dag_get_ready_tasks.`

const dagCriticalPathInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "includeCompleted":{"type":"boolean","default":true},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"additionalProperties":false}`

const dagCriticalPathOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"criticalPath":{"type":"array","items":{"type":"string"}},"pathLength":{"type":"integer"},"totalHours":{"type":"number"},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagCriticalPath is the tool dag_get_critical_path.
func dagCriticalPath(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_critical_path", title: "Longest chain of tasks", description: dagCriticalPathDescription,
		input: dagCriticalPathInput, output: dagCriticalPathOutput,
		readOnly: true,
		call:     graphCall(t.Graph.CriticalPath, func(a *taskgraph.CriticalPathAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
