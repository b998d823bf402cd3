package tools

import (
	"context"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

type stageCreateArgs struct {
	Query    string        `json:"query" schema:"max=4000"`
	UserID   *string       `json:"user_id,omitempty" schema:"default=local,max=200"`
	Template string        `json:"template,omitempty" schema:"enum=standard_query|simple_lookup|complex_research|web_enhanced|quick_answer,default=standard_query"`
	Plan     []stage.Stage `json:"plan,omitempty" jsonschema:"Instead of template: stages, from intent_analysis to response_packaging"`
	TaskID   string        `json:"task_id,omitempty" schema:"max=100" jsonschema:"Instead of a generated one"`
	Budget   whole         `json:"max_tokens,omitempty" schema:"default=3000" jsonschema:"Of passages in the brief"`
	Wait     whole         `json:"wait_seconds,omitempty" schema:"default=5,min=0,max=300"`
}

// stageCreate is the tool task_dag_create.
func stageCreate(st *workspace.Stages) tool {
	return tool{
		name: "task_dag_create", title: "Start a question task", groups: []Group{Stages}, additive: true, notIdempotent: true, waits: true,
		description: `Start a question task: cairn analyses the question and finds passages, you reason over them, cairn checks the answer's citations and packages it with its sources. The task survives restarts, and others can continue it.
Use it for questions whose answer needs sources and has to be kept. Not for a quick search: use read_context.
The answer holds the task and, as soon as it is your turn, the brief with the passages.`,
		handler: stageHandler(func(ctx context.Context, a stageCreateArgs) (*stageAnswer, error) {
			if err := checkBudget(a.Budget); err != nil {
				return nil, err
			}
			r := stage.Request{ID: a.TaskID, UserID: "local", Query: a.Query, Template: a.Template, Plan: a.Plan}
			if a.UserID != nil {
				r.UserID = *a.UserID
			}
			s, err := st.Create(ctx, r)
			if err != nil {
				return nil, err
			}
			if s, err = awaitCaller(ctx, st, s.ID, a.Wait); err != nil {
				return nil, err
			}
			return stageState(ctx, st, s, a.Budget)
		}),
	}
}
