package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagStatsDescription = `Count the tasks, dependencies, ready, blocked and completed tasks, and the depth of the graph.
Use it for the state of a plan at a glance. Not for the tasks themselves: use list_tasks.`

const dagStatsInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"additionalProperties":false}`

const dagStatsOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"stats":{"type":["object","null"]},"summary":{"type":"object"},"warnings":{"type":"array","items":{"type":"object"}},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagStats is the tool dag_get_stats.
func dagStats(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_stats", title: "Figures of the task graph", description: dagStatsDescription,
		input: dagStatsInput, output: dagStatsOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Stats, func(a *taskgraph.StatsAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
