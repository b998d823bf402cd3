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
 "id":{"type":"string","pattern":"^[a-z0-9]{6}$"},
 "references":{"type":"boolean","description":"Look instead at documents that refer to each other by @/path or refs; a circle fails with 1002","default":false}},
"additionalProperties":false}`

const validateTaskGraphOutput = `{
"type":"object",
"properties":{
 "valid":{"type":"boolean"},"task_id":{"type":"string"},"message":{"type":"string"},"error":{"type":"string"},"cycle_path":{"type":"array","items":{"type":"string"}},"missing":{"type":"array","items":{"type":"string"}},
 "code":{"type":"integer"},"data":{"type":"object"}
},
"anyOf":[{"required":["valid"]},{"required":["code","message"]}]}`

// validateRequest is a request of the cards, or one of the documents.
type validateRequest struct {
	cards.ValidateRequest
	References bool `json:"references,omitempty"`
}

// validateTaskGraph is the tool validate_task_graph.
func validateTaskGraph(t *workspace.Tasks) tool {
	return tool{
		name: "validate_task_graph", title: "Check dependencies for cycles", description: validateTaskGraphDescription,
		input: validateTaskGraphInput, output: validateTaskGraphOutput,
		readOnly: true,
		call: typed(func(ctx context.Context, r validateRequest) (*cards.ValidateAnswer, error) {
			switch {
			case !r.References:
				return t.Cards.Validate(r.ValidateRequest)
			case r.ID != "":
				return nil, invalid("references looks at all documents: leave id out")
			}
			circle, err := t.Documents.ReferenceCycle(ctx)
			if err != nil {
				return nil, err
			}
			if circle != nil {
				return nil, &Failure{Code: CodeCycle, Message: "Cycle Detected", Data: map[string]any{
					"cycle_path": circle, "suggestion": "Remove reference from " + circle[0]}}
			}
			return &cards.ValidateAnswer{Valid: true, Message: "No documents refer to each other in a circle"}, nil
		}),
	}
}
