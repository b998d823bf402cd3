package tools

import (
	"context"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

const stageCreateDescription = `Start a question task: cairn analyses the question and looks passages up, you reason over them, cairn checks the answer's citations and packages it with its sources. The task survives restarts and can be taken up by others.
Use it for questions whose answer has to be founded and kept. Not for a quick search: use read_context.
The answer holds the task and, as soon as it is your turn, the brief with the passages.`

const stageCreateInput = `{
"type":"object",
"properties":{
 "query":{"type":"string","maxLength":4000},
 "user_id":{"type":"string","default":"local","maxLength":200},
 "template":{"type":"string","enum":["standard_query","simple_lookup","complex_research","web_enhanced","quick_answer"],"default":"standard_query"},
 "plan":{"type":"array","items":{"type":"string"},"description":"Instead of template: stages, from intent_analysis to response_packaging"},
 "task_id":{"type":"string","maxLength":100,"description":"Instead of one drawn by lot"},
 "max_tokens":{"type":"integer","default":3000,"description":"Of passages in the brief"},
 "wait_seconds":{"type":"integer","default":5,"minimum":0,"maximum":300}},
"required":["query"],
"additionalProperties":false}`

// stageCreate is the tool task_dag_create.
func stageCreate(st *workspace.Stages) tool {
	type args struct {
		Query    string        `json:"query"`
		UserID   *string       `json:"user_id"`
		Template string        `json:"template"`
		Plan     []stage.Stage `json:"plan"`
		TaskID   string        `json:"task_id"`
		Budget   whole         `json:"max_tokens"`
		Wait     *whole        `json:"wait_seconds"`
	}
	return tool{
		name: "task_dag_create", title: "Start a question task", description: stageCreateDescription,
		input: stageCreateInput, output: stageOutput,
		adds: true, counts: true, long: true,
		call: stageCall(func(ctx context.Context, a args, c call) (any, error) {
			if err := checkWaitAndBudget(a.Wait, a.Budget); err != nil {
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
			if s, err = follow(ctx, st, s.ID, a.Wait, 5, c); err != nil {
				return nil, err
			}
			return stageState(ctx, st, s, int(a.Budget))
		}),
	}
}
