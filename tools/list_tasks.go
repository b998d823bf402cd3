package tools

import (
	"context"

	"cairn/internal/task/cards"
	"cairn/internal/workspace"
)

const listTasksDescription = `List the task cards of the workspace, the most urgent first, then the oldest.
Use it to see what is to be done and by whom. Not for finding text: read_context finds cards too.`

const listTasksInput = `{
"type":"object",
"properties":{
 "status":{"type":"string","enum":["todo","active","done","archived"]},
 "assignee":{"type":"string"},
 "tags":{"type":"array","items":{"type":"string"},"description":"Any of these"},
 "priority":{"type":"string","enum":["low","medium","high","critical"]},
 "created":{"type":"string","description":"Such as '2024-01-01', '<3d', '>2w'"},
 "updated":{"type":"string"},
 "limit":{"type":"integer","minimum":1}},
"additionalProperties":false}`

const listTasksOutput = `{
"type":"object",
"properties":{
 "tasks":{"type":"array","items":{"type":"object"}},"count":{"type":"integer"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["tasks","count"]},{"required":["code","message"]}]}`

// listTasksRequest is a request of the cards, and how many to show.
type listTasksRequest struct {
	cards.ListRequest
	Limit *whole `json:"limit"`
}

// listTasksAnswer is what list_tasks returns; the bare method answers Tasks.
type listTasksAnswer struct {
	Tasks []cards.ListItem `json:"tasks"`
	Count int              `json:"count"` // that match, shown or not
}

// listTasks is the tool list_tasks.
func listTasks(t *workspace.Tasks) tool {
	return tool{
		name: "list_tasks", title: "List task cards", description: listTasksDescription,
		input: listTasksInput, output: listTasksOutput,
		readOnly: true, rate: rate{Limit: 20, Burst: 30},
		call: typed(func(_ context.Context, r listTasksRequest) (*listTasksAnswer, error) {
			if r.Limit != nil && *r.Limit < 1 {
				return nil, invalid("limit: %d, want at least 1", *r.Limit)
			}
			found, err := t.Cards.List(r.ListRequest)
			if err != nil {
				return nil, err
			}
			a := &listTasksAnswer{Tasks: found, Count: len(found)}
			if r.Limit != nil {
				a.Tasks = found[:min(int(*r.Limit), len(found))]
			}
			return a, nil
		}),
		bare: func(structured any) any { return structured.(*listTasksAnswer).Tasks },
	}
}
