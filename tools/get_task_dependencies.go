package tools

import (
	"context"

	"cairn/internal/task/cards"
	"cairn/internal/workspace"
)

const getTaskDependenciesDescription = `List the cards a task depends on directly, or with reverse=true those that depend on it.
Use it before changing or finishing one task. Not for what can start now: use dag_get_ready_tasks.`

const getTaskDependenciesInput = `{
"type":"object",
"properties":{
 "id":{"type":"string","pattern":"^[a-z0-9]{6}$"},
 "reverse":{"type":"boolean","default":false}},
"required":["id"],
"additionalProperties":false}`

const getTaskDependenciesOutput = `{
"type":"object",
"properties":{
 "task_id":{"type":"string"},"type":{"type":"string","enum":["dependencies","dependents"]},"count":{"type":"integer"},"tasks":{"type":"array","items":{"type":"object"}},"missing":{"type":"array","items":{"type":"string"}},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["task_id","type","count","tasks"]},{"required":["code","message"]}]}`

// getTaskDependencies is the tool get_task_dependencies.
func getTaskDependencies(t *workspace.Tasks) tool {
	return tool{
		name: "get_task_dependencies", title: "Dependencies of a task", description: getTaskDependenciesDescription,
		input: getTaskDependenciesInput, output: getTaskDependenciesOutput,
		readOnly: true,
		call:     typed(func(_ context.Context, r cards.DependenciesRequest) (any, error) { return t.Cards.Dependencies(r) }),
	}
}
