package tools

import (
	"bytes"
	"context"
	"encoding/json"

	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
)

type advanceArgs struct {
	TaskID     string          `json:"task_id"`
	Claim      bool            `json:"claim,omitempty" schema:"default=false" jsonschema:"Only claim the task, without a result"`
	Stage      stage.Stage     `json:"stage,omitempty" schema:"enum=executor_reasoning|web_search"`
	Success    *bool           `json:"success,omitempty" jsonschema:"false if the attempt failed; reason says why"`
	Output     json.RawMessage `json:"output,omitempty"`
	Confidence *float64        `json:"confidence,omitempty" schema:"min=0,max=1"`
	NeedsWeb   bool            `json:"needs_web_search,omitempty" schema:"default=false" jsonschema:"The passages do not contain the answer; honoured once"`
	Reason     string          `json:"reason,omitempty" schema:"max=2000"`
	Run        integer         `json:"run,omitempty" jsonschema:"From the brief: refuse the result if that run is over"`
	Worker     string          `json:"worker,omitempty" schema:"max=100" jsonschema:"Your name, as in the claim"`
	EventID    string          `json:"event_id,omitempty" schema:"max=100" jsonschema:"Events with the same id count once"`
	Budget     integer         `json:"max_tokens,omitempty" schema:"default=3000"`
	Wait       integer         `json:"wait_seconds,omitempty" schema:"default=5,min=0,max=300"`
}

func (st stageTools) advance(ctx context.Context, a advanceArgs) (*stageAnswer, error) {
	if err := checkBudget(a.Budget); err != nil {
		return nil, err
	}
	s, err := a.apply(ctx, st.Stages)
	if err != nil {
		return nil, err
	}
	if !a.Claim {
		if s, err = st.await(ctx, s.ID, a.Wait); err != nil {
			return nil, err
		}
	}
	return st.answer(ctx, s, a.Budget)
}

func (a *advanceArgs) apply(ctx context.Context, st *workspace.Stages) (*stage.State, error) {
	e := stage.Event{ID: a.EventID, Kind: stage.Done, Stage: a.Stage, Run: int(a.Run), Worker: a.Worker, Reason: a.Reason}
	switch {
	case a.Claim:
		if a.Success != nil || a.Output != nil || a.NeedsWeb {
			return nil, invalid("claim: pass it without a result")
		}
		e.Kind = stage.Claim
		return st.Apply(ctx, a.TaskID, e)
	case a.Stage == "":
		return nil, invalid("stage: missing; use the stage of the brief, or current_stage of the task")
	case a.Success == nil:
		return nil, invalid("success: missing; pass true with output, or false with reason")
	case !*a.Success:
		if e.Kind = stage.Failure; !hasText(a.Reason) {
			return nil, invalid("reason: missing; say why the attempt failed")
		}
		return st.Submit(ctx, a.TaskID, e)
	}
	out := bytes.TrimSpace(a.Output)
	switch a.Stage {
	case stage.ExecutorReasoning:
		answered := stage.Answered{Confidence: a.Confidence, NeedsWebSearch: a.NeedsWeb, By: a.Worker}
		if err := decode(out, &answered.Draft); err != nil {
			return nil, err
		}
		return st.Answer(ctx, a.TaskID, &answered, e)
	case stage.WebSearch:
		var w stage.WebResults
		if err := decode(out, &w); err != nil {
			return nil, err
		}
		r, err := w.Result()
		if err != nil {
			return nil, err
		}
		e.Result = r
	default:
		e.Result.Output = out // Submit returns an error
	}
	e.Result.Confidence, e.Result.NeedsWebSearch = a.Confidence, a.NeedsWeb
	return st.Submit(ctx, a.TaskID, e)
}
