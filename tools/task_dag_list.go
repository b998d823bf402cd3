package tools

import (
	"context"
	"slices"
	"time"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

type stageListArgs struct {
	UserID string       `json:"user_id,omitempty"`
	Status stage.Status `json:"status,omitempty" schema:"enum=waiting|in_progress|complete|failed|aborted"`
	Limit  whole        `json:"limit,omitempty" schema:"default=20,min=1,max=100"`
}

type stageListAnswer struct {
	Count int          `json:"count"`
	Tasks []listedTask `json:"tasks"`
}

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
	return tool{
		name: "task_dag_list", title: "List question tasks", groups: []Group{Stages}, readOnly: true,
		description: `List question tasks, newest first: id, query, status, current stage, progress.
Use it to find a task again. Not for its answer: use task_dag_get.`,
		handler: stageHandler(func(ctx context.Context, a stageListArgs) (*stageListAnswer, error) {
			if known := []stage.Status{"", stage.Waiting, stage.InProgress, stage.Complete, stage.Failed, stage.Aborted}; !slices.Contains(known, a.Status) {
				return nil, invalid("status: unknown %.40q, want {waiting,in_progress,complete,failed,aborted}", a.Status)
			}
			found, err := st.List(ctx, stage.Query{UserID: a.UserID, Status: a.Status, Limit: int(a.Limit)})
			if err != nil {
				return nil, err
			}
			list := &stageListAnswer{Count: len(found), Tasks: make([]listedTask, len(found))}
			for i, s := range found {
				query := []rune(s.Query)
				list.Tasks[i] = listedTask{s.ID, s.UserID, string(query[:min(len(query), 200)]), s.Status, s.Current, s.Progress, s.UpdatedAt}
			}
			return list, nil
		}),
	}
}
