package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagGroupsDescription = `Group the unfinished tasks into waves: those of one wave can be done at the same time once the waves before are done.
Use it to share work out. Not for one worker: use dag_get_execution_order.`

const dagGroupsInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "details":{"type":"boolean","description":"Add title, status, blockers, slack, what it unblocks","default":false}},
"additionalProperties":false}`

const dagGroupsOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"parallelGroups":{"type":"array","items":{"type":"array","items":{"type":"string"}}},"groupCount":{"type":"integer"},"totalTasks":{"type":"integer"},"details":{"type":"array","items":{"type":"object"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagGroups is the tool dag_get_parallel_groups.
func dagGroups(t *workspace.Tasks) tool {
	return tool{
		name: "dag_get_parallel_groups", title: "Waves of work", description: dagGroupsDescription,
		input: dagGroupsInput, output: dagGroupsOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Groups, func(a *taskgraph.GroupsAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
