package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagOrderDescription = `List the tasks in an order in which each comes after all it depends on.
Use it to plan for one worker. Not for several: use dag_get_parallel_groups.`

const dagOrderInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "includeCompleted":{"type":"boolean","default":false},
 "includeBlocked":{"type":"boolean","default":true},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"additionalProperties":false}`

const dagOrderOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"executionOrder":{"type":"array","items":{"type":"string"}},"count":{"type":"integer"},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagOrder is the tool dag_get_execution_order.
func dagOrder(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_execution_order", title: "Order of work", description: dagOrderDescription,
		input: dagOrderInput, output: dagOrderOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Order, func(a *taskgraph.OrderAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
