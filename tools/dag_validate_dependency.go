package tools

import (
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

const dagValidateDescription = `Tell whether one task may depend on another without closing a cycle. Changes nothing, and says the same each time.
Use it before adding a dependency. Not for the whole graph: use validate_task_graph.`

const dagValidateInput = `{
"type":"object",
"properties":{
 "channelId":{"type":"string","description":"'cards' (default), or a document such as '/plans/a.md'"},
 "dependentTaskId":{"type":"string","description":"Will wait"},
 "dependencyTaskId":{"type":"string","description":"Has to be done first"}},
"required":["dependentTaskId","dependencyTaskId"],
"additionalProperties":false}`

const dagValidateOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"isValid":{"type":"boolean"},"cyclePath":{"type":"array","items":{"type":"string"}},"message":{"type":"string"},"error":{"type":"string"},"errorCode":{"type":"string"}
},
"required":["success","message"]}`

// dagValidate is the tool dag_validate_dependency.
func dagValidate(t *workspace.Tasks) tool {
	return tool{
		name: "dag_validate_dependency", title: "Check a new dependency", description: dagValidateDescription,
		input: dagValidateInput, output: dagValidateOutput,
		readOnly: true,
		call:     graphCall(t.Graph.Validate, func(a *taskgraph.ValidateAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error }),
	}
}
