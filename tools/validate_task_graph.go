package tools

import (
	"context"

	"cairn/internal/task/cards"
	"cairn/internal/workspace"
)

const validateTaskGraphDescription = `Check the dependencies of all cards, or of everything one card depends on, for cycles.
Use it after editing cards by hand. Not before update_task: that refuses cycles itself.`

const validateTaskGraphInput = `{
"type":"object",
"properties":{
 "id":{"type":"string","pattern":"^[a-z0-9]{6}$"}},
"additionalProperties":false}`

const validateTaskGraphOutput = `{
"type":"object",
"properties":{
 "valid":{"type":"boolean"},"task_id":{"type":"string"},"message":{"type":"string"},"error":{"type":"string"},"cycle_path":{"type":"array","items":{"type":"string"}},"missing":{"type":"array","items":{"type":"string"}},
 "code":{"type":"integer"},"data":{"type":"object"}
},
"anyOf":[{"required":["valid"]},{"required":["code","message"]}]}`

// validateTaskGraph is the tool validate_task_graph.
func validateTaskGraph(t *workspace.Tasks) tool {
	return tool{
		name: "validate_task_graph", title: "Check dependencies for cycles", description: validateTaskGraphDescription,
		input: validateTaskGraphInput, output: validateTaskGraphOutput,
		readOnly: true,
		call:     typed(func(_ context.Context, r cards.ValidateRequest) (any, error) { return t.Cards.Validate(r) }),
	}
}
