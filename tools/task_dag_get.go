package tools

import (
	"context"

	"cairn/internal/workspace"
)

const stageGetDescription = `Return a question task: where it stands, and the brief with the passages when it is your turn, or the response when it is complete.
Use it to wait for a task, or to take one up again. Not for many at once: use task_dag_list.`

const stageGetInput = `{
"type":"object",
"properties":{
 "task_id":{"type":"string"},
 "wait_seconds":{"type":"integer","default":0,"minimum":0,"maximum":300,"description":"Wait until it is your turn or it has ended"},
 "max_tokens":{"type":"integer","default":3000,"description":"Of passages in the brief"},
 "log":{"type":"boolean","default":false,"description":"Add every transition"}},
"required":["task_id"],
"additionalProperties":false}`

// stageGet is the tool task_dag_get.
func stageGet(st *workspace.Stages) tool {
	type args struct {
		TaskID string `json:"task_id"`
		Wait   *whole `json:"wait_seconds"`
		Budget whole  `json:"max_tokens"`
		Log    bool   `json:"log"`
	}
	return tool{
		name: "task_dag_get", title: "Look at a question task", description: stageGetDescription,
		input: stageGetInput, output: stageOutput,
		readOnly: true, long: true,
		call: stageCall(func(ctx context.Context, a args, c call) (any, error) {
			if err := checkWaitAndBudget(a.Wait, a.Budget); err != nil {
				return nil, err
			}
			s, err := follow(ctx, st, a.TaskID, a.Wait, 0, c)
			if err != nil {
				return nil, err
			}
			answer, err := stageState(ctx, st, s, int(a.Budget))
			if err == nil && a.Log {
				answer.Log, err = st.Log(ctx, a.TaskID)
			}
			return answer, err
		}),
	}
}
