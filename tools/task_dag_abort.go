package tools

import (
	"context"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

type stageAbortArgs struct {
	TaskID string `json:"task_id"`
	Reason string `json:"reason,omitempty" schema:"max=2000"`
}

// stageAbort is the tool task_dag_abort.
func stageAbort(st *workspace.Stages) tool {
	return tool{
		name: "task_dag_abort", title: "Stop a question task", groups: []Group{Stages},
		description: `Stop a question task that waits or is in progress, for good.
Use it when its answer is not wanted any more. Not for a stage that went wrong: use task_dag_advance with success=false, which tries again.`,
		handler: stageHandler(func(ctx context.Context, a stageAbortArgs) (*stageAnswer, error) {
			s, err := st.Apply(ctx, a.TaskID, stage.Event{Kind: stage.Abort, Reason: a.Reason})
			if err != nil {
				return nil, err
			}
			return stageState(ctx, st, s, 0)
		}),
	}
}
