package tools

import (
	"context"
	"slices"
	"time"

	"cairn/internal/stage"
	"cairn/internal/workspace"
	"cairn/retriever"
)

const stageListDescription = `List question tasks, newest first: id, query, status, current stage, progress.
Use it to find a task again. Not for its answer: use task_dag_get.`

const stageListInput = `{
"type":"object",
"properties":{
 "user_id":{"type":"string"},
 "status":{"type":"string","enum":["waiting","in_progress","complete","failed","aborted"]},
 "limit":{"type":"integer","default":20,"minimum":1,"maximum":100}},
"additionalProperties":false}`

const stageListOutput = `{
"type":"object",
"properties":{
 "tasks":{"type":"array","items":{"type":"object"}},"count":{"type":"integer"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"}
},
"anyOf":[{"required":["tasks","count"]},{"required":["success","error","code"]}]}`

// listedTask is a task in a list.
type listedTask struct {
	ID        string       `json:"task_id"`
	UserID    string       `json:"user_id"`
	Query     string       `json:"query"` // its beginning
	Status    stage.Status `json:"status"`
	Current   stage.Stage  `json:"current_stage"`
	Progress  int          `json:"progress_percentage"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// stageList is the tool task_dag_list.
func stageList(st *workspace.Stages) tool {
	type args struct {
		UserID string       `json:"user_id"`
		Status stage.Status `json:"status"`
		Limit  *whole       `json:"limit"`
	}
	return tool{
		name: "task_dag_list", title: "List question tasks", description: stageListDescription,
		input: stageListInput, output: stageListOutput,
		readOnly: true,
		call: stageCall(func(ctx context.Context, a args, _ call) (any, error) {
			q := stage.Query{UserID: a.UserID, Status: a.Status, Limit: 20}
			if a.Limit != nil {
				if q.Limit = int(*a.Limit); q.Limit < 1 || q.Limit > 100 {
					return nil, invalid("limit: %d, want 1 to 100", q.Limit)
				}
			}
			if known := []stage.Status{"", stage.Waiting, stage.InProgress, stage.Complete, stage.Failed, stage.Aborted}; !slices.Contains(known, q.Status) {
				return nil, invalid("status: unknown %.40q, want {waiting,in_progress,complete,failed,aborted}", q.Status)
			}
			found, err := st.List(ctx, q)
			if err != nil {
				return nil, err
			}
			list := make([]listedTask, len(found))
			for i, s := range found {
				query := []rune(s.Query)
				list[i] = listedTask{s.ID, s.UserID, string(query[:min(len(query), 200)]), s.Status, s.Current, s.Progress, s.UpdatedAt}
			}
			return map[string]any{"tasks": list, "count": len(list)}, nil
		}),
	}
}

// checkWaitAndBudget refuses what would only fail after something was done.
func checkWaitAndBudget(wait *whole, budget whole) error {
	if wait != nil && (*wait < 0 || *wait > maxStageWait) {
		return invalid("wait_seconds is %d, want 0 to %d", *wait, maxStageWait)
	}
	if budget != 0 && (budget < retriever.MinBudget || budget > retriever.MaxBudget) {
		return invalid("max_tokens: %d, want %d to %d", budget, retriever.MinBudget, retriever.MaxBudget)
	}
	return nil
}
