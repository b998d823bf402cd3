package tools

import (
	"bytes"
	"context"
	"encoding/json"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

const stageAdvanceDescription = `Hand in the result of the stage that a question task waits for, or claim the task so that nobody else takes it.
Use it after a brief: for executor_reasoning output is {"answer","citations":[ids of passages]}, for web_search {"results":[{"url","title","text"}]}. Not for stages cairn does itself. A result that is late, repeated or of another stage is refused and changes nothing.`

const stageAdvanceInput = `{
"type":"object",
"properties":{
 "task_id":{"type":"string"},
 "claim":{"type":"boolean","default":false,"description":"Only take it"},
 "stage":{"type":"string","enum":["executor_reasoning","web_search"]},
 "success":{"type":"boolean","description":"false: the attempt failed, reason says why"},
 "output":{"type":"object"},
 "confidence":{"type":"number","minimum":0,"maximum":1},
 "needs_web_search":{"type":"boolean","default":false,"description":"The passages do not hold the answer; heeded once"},
 "reason":{"type":"string","maxLength":2000},
 "run":{"type":"integer","description":"Of the brief: refuse it if that run is over"},
 "worker":{"type":"string","maxLength":100,"description":"Your name, as in the claim"},
 "event_id":{"type":"string","maxLength":100,"description":"The same id counts once"},
 "max_tokens":{"type":"integer","default":3000},
 "wait_seconds":{"type":"integer","default":5,"minimum":0,"maximum":300}},
"required":["task_id"],
"additionalProperties":false}`

// stageAdvance is the tool task_dag_advance.
func stageAdvance(st *workspace.Stages) tool {
	return tool{
		name: "task_dag_advance", title: "Hand in the result of a stage", description: stageAdvanceDescription,
		input: stageAdvanceInput, output: stageOutput,
		adds: true, counts: true, long: true,
		call: stageCall(func(ctx context.Context, a advanceArgs, c call) (any, error) {
			if err := checkWaitAndBudget(a.Wait, a.Budget); err != nil {
				return nil, err
			}
			s, err := a.apply(ctx, st)
			if err != nil {
				return nil, err
			}
			if !a.Claim {
				if s, err = follow(ctx, st, s.ID, a.Wait, 5, c); err != nil {
					return nil, err
				}
			}
			return stageState(ctx, st, s, int(a.Budget))
		}),
	}
}

type advanceArgs struct {
	TaskID     string          `json:"task_id"`
	Claim      bool            `json:"claim"`
	Stage      stage.Stage     `json:"stage"`
	Success    *bool           `json:"success"`
	Output     json.RawMessage `json:"output"`
	Confidence *float64        `json:"confidence"`
	NeedsWeb   bool            `json:"needs_web_search"`
	Reason     string          `json:"reason"`
	Run        whole           `json:"run"`
	Worker     string          `json:"worker"`
	EventID    string          `json:"event_id"`
	Budget     whole           `json:"max_tokens"`
	Wait       *whole          `json:"wait_seconds"`
}

func (a *advanceArgs) apply(ctx context.Context, st *workspace.Stages) (*stage.State, error) {
	e := stage.Event{ID: a.EventID, Kind: stage.Done, Stage: a.Stage, Run: int(a.Run), Worker: a.Worker, Reason: a.Reason}
	switch {
	case a.Claim:
		if a.Success != nil || a.Output != nil || a.NeedsWeb {
			return nil, invalid("claim: give it without a result")
		}
		e.Kind = stage.Claim
		return st.Apply(ctx, a.TaskID, e)
	case a.Stage == "":
		return nil, invalid("stage: missing; it is the brief's, or the task's current_stage")
	case a.Success == nil:
		// An absent success once meant yes; a forgotten word is not a result.
		return nil, invalid("success: missing; true with output, or false with reason")
	case !*a.Success:
		if e.Kind = stage.Failure; !hasText(a.Reason) {
			return nil, invalid("reason: missing; say why the attempt failed")
		}
		return st.Submit(ctx, a.TaskID, e)
	}
	// What the task holds decides how an answer is taken, so it is looked at first.
	s, err := st.Task(ctx, a.TaskID)
	if err != nil {
		return nil, err
	}
	if e.Result, err = a.result(s); err != nil {
		return nil, err
	}
	return st.Submit(ctx, a.TaskID, e)
}

// result reads the output of a delegated stage.
func (a *advanceArgs) result(s *stage.State) (stage.Result, error) {
	out := bytes.TrimSpace(a.Output)
	switch a.Stage {
	case stage.ExecutorReasoning:
		var d stage.Draft
		if err := decode(out, &d); err != nil {
			return stage.Result{}, err
		}
		answered := stage.Answered{Draft: d, Confidence: a.Confidence, NeedsWebSearch: a.NeedsWeb, By: a.Worker}
		return answered.Result(s)
	case stage.WebSearch:
		var w stage.WebResults
		if err := decode(out, &w); err != nil {
			return stage.Result{}, err
		}
		r, err := w.Result()
		r.Confidence, r.NeedsWebSearch = a.Confidence, a.NeedsWeb
		return r, err
	}
	// Refused by the machine, with its reason.
	return stage.Result{Output: out, Confidence: a.Confidence, NeedsWebSearch: a.NeedsWeb}, nil
}
