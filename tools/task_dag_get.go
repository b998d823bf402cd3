package tools

import (
	"context"

	"cairn/internal/workspace"
)

type stageGetArgs struct {
	TaskID string `json:"task_id"`
	Wait   whole  `json:"wait_seconds,omitempty" schema:"default=0,min=0,max=300" jsonschema:"Wait until it is your turn or it has ended"`
	Budget whole  `json:"max_tokens,omitempty" schema:"default=3000" jsonschema:"Of passages in the brief"`
	Log    bool   `json:"log,omitempty" schema:"default=false" jsonschema:"Add every transition"`
}

// stageGet is the tool task_dag_get.
func stageGet(st *workspace.Stages) tool {
	return tool{
		name: "task_dag_get", title: "Look at a question task", groups: []Group{Stages}, readOnly: true, waits: true,
		description: `Return a question task: where it stands, and the brief with the passages when it is your turn, or the response when it is complete.
Use it to wait for a task, or to continue one. Not for many at once: use task_dag_list.`,
		handler: stageHandler(func(ctx context.Context, a stageGetArgs) (*stageAnswer, error) {
			if err := checkBudget(a.Budget); err != nil {
				return nil, err
			}
			s, err := awaitCaller(ctx, st, a.TaskID, a.Wait)
			if err != nil {
				return nil, err
			}
			answer, err := stageState(ctx, st, s, a.Budget)
			if err == nil && a.Log {
				answer.Log, err = st.Log(ctx, a.TaskID)
			}
			return answer, err
		}),
	}
}
