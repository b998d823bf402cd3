package tools

import (
	"context"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

const stageAbortDescription = `Stop a question task that waits or is in progress, for good.
Use it when its answer is not wanted any more. Not for a stage that went wrong: use task_dag_advance with success=false, which tries again.`

const stageAbortInput = `{
"type":"object",
"properties":{
 "task_id":{"type":"string"},
 "reason":{"type":"string","maxLength":2000}},
"required":["task_id"],
"additionalProperties":false}`

// stageAbort is the tool task_dag_abort.
func stageAbort(st *workspace.Stages) tool {
	type args struct {
		TaskID string `json:"task_id"`
		Reason string `json:"reason"`
	}
	return tool{
		name: "task_dag_abort", title: "Stop a question task", description: stageAbortDescription,
		input: stageAbortInput, output: stageOutput,
		call: stageCall(func(ctx context.Context, a args, _ call) (any, error) {
			s, err := st.Apply(ctx, a.TaskID, stage.Event{Kind: stage.Abort, Reason: a.Reason})
			if err != nil {
				return nil, err
			}
			return stageState(ctx, st, s, 0)
		}),
	}
}
