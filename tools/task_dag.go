package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
)

// stageAnswer is the answer of the tools on one question task.
type stageAnswer struct {
	Task *stage.Task `json:"task"`
	// Brief is nil unless the task waits for the caller.
	Brief *stage.Brief  `json:"brief,omitempty"`
	Log   []stage.Entry `json:"log,omitempty"`
	// Next tells the caller what to do.
	Next string `json:"next"`

	state *stage.State  // of Task
	keep  time.Duration // for which the task can be read after its end
}

const stageCreateName = "task_dag_create"

// stageTools are the tools on question tasks.
type stageTools struct{ *workspace.Stages }

func (st stageTools) tools() []tool {
	return []tool{
		{name: stageCreateName, title: "Start a question task", groups: []Group{Stages}, additive: true, notIdempotent: true, waits: true, handler: stageHandler(st.create),
			description: `Start a question task: cairn analyses the question and finds passages, you reason over them, cairn checks the answer's citations and packages it with its sources. The task survives restarts, and other agents can continue it.
Use it for a question whose answer needs sources and must be kept. Not for a quick search: use read_context.
The answer contains the task and, when it is your turn, the brief with the passages.`},
		{name: "task_dag_get", title: "Show a question task", groups: []Group{Stages}, readOnly: true, waits: true, handler: stageHandler(st.get),
			description: `Return the state of a question task, with the brief and its passages when it is your turn, or the response when it is complete.
Use it to wait for a task or to continue one. Not for several tasks: use task_dag_list.`},
		{name: "task_dag_advance", title: "Submit the result of a stage", groups: []Group{Stages}, additive: true, notIdempotent: true, waits: true, handler: stageHandler(st.advance),
			description: `Submit the result of the stage that a question task waits for, or claim the task so that no other worker takes it.
Use it after a brief. output of executor_reasoning is {"answer","citations":[ids of passages]}, or {"not_found":true} if the passages do not contain the answer; output of web_search is {"results":[{"url","title","text"}]}. Not for stages that cairn does itself. A result that is late, repeated or of another stage is refused and changes nothing.`},
		{name: "task_dag_abort", title: "Abort a question task", groups: []Group{Stages}, handler: stageHandler(st.abort),
			description: `Abort a question task that is waiting or in progress. It cannot be continued.
Use it when its answer is no longer needed. Not for a failed stage: use task_dag_advance with success=false, which tries again.`},
		{name: "task_dag_list", title: "List question tasks", groups: []Group{Stages}, readOnly: true, handler: stageHandler(st.list),
			description: `List question tasks, newest first: id, query, status, current stage, progress.
Use it to find an earlier task. Not for its answer: use task_dag_get.`},
	}
}

// await waits until a task needs the caller or has ended, for at most the given
// number of seconds. Meanwhile it reports progress.
func (st stageTools) await(ctx context.Context, id string, seconds integer) (*stage.State, error) {
	if seconds == 0 {
		return st.Task(ctx, id)
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	report := originOf(ctx).progress
	changed := func(s *stage.State) {
		if report != nil {
			report(job.Progress{Phase: string(s.Current), Done: len(s.Completed), Total: len(s.Plan)})
		}
	}
	s, err := st.Watch(waiting, id, changed, stage.NeedsCaller)
	if s != nil && waiting.Err() != nil && ctx.Err() == nil {
		return s, nil // the task continues
	}
	return s, err
}

// answer returns a task and the work that it expects of the caller.
func (st stageTools) answer(ctx context.Context, s *stage.State, budget integer) (*stageAnswer, error) {
	a := &stageAnswer{Task: &s.Task, state: s, keep: st.Keep()}
	var err error
	if a.Brief, err = st.Brief(ctx, s, int(budget)); err != nil {
		return nil, err
	}
	switch {
	case s.Status == stage.Complete:
		a.Next = "done: the answer is in task.response"
	case s.Status == stage.Failed:
		a.Next = "failed: task.error says why; create another task to try again"
	case s.Status == stage.Aborted:
		a.Next = "aborted: nothing"
	case a.Brief != nil:
		a.Next = "your turn: follow brief and submit the result with task_dag_advance, stage " + string(s.Current)
	default:
		a.Next = "cairn is working on it: call task_dag_get with wait_seconds"
	}
	return a, nil
}

type stageCreateArgs struct {
	Query    string        `json:"query" schema:"max=4000"`
	UserID   *string       `json:"user_id,omitempty" schema:"default=local,max=200"`
	Template string        `json:"template,omitempty" schema:"enum=standard_query|simple_lookup|complex_research|web_enhanced|quick_answer,default=standard_query"`
	Plan     []stage.Stage `json:"plan,omitempty" jsonschema:"Stages instead of a template, from intent_analysis to response_packaging"`
	TaskID   string        `json:"task_id,omitempty" schema:"max=100" jsonschema:"Replaces the generated id"`
	Budget   integer       `json:"max_tokens,omitempty" schema:"default=3000,min=200,max=25000" jsonschema:"Limit of the passages in the brief"`
	Wait     integer       `json:"wait_seconds,omitempty" schema:"default=5,min=0,max=300"`
}

func (st stageTools) create(ctx context.Context, a stageCreateArgs) (*stageAnswer, error) {
	r := stage.Request{ID: a.TaskID, UserID: "local", Query: a.Query, Template: a.Template, Plan: a.Plan}
	if a.UserID != nil {
		r.UserID = *a.UserID
	}
	s, err := st.Create(ctx, r)
	if err != nil {
		return nil, err
	}
	if s, err = st.await(ctx, s.ID, a.Wait); err != nil {
		return nil, err
	}
	return st.answer(ctx, s, a.Budget)
}

type stageGetArgs struct {
	TaskID string  `json:"task_id"`
	Wait   integer `json:"wait_seconds,omitempty" schema:"default=0,min=0,max=300" jsonschema:"Wait until it is your turn or the task has ended"`
	Budget integer `json:"max_tokens,omitempty" schema:"default=3000,min=200,max=25000" jsonschema:"Limit of the passages in the brief"`
	Log    bool    `json:"log,omitempty" schema:"default=false" jsonschema:"Add every transition"`
}

func (st stageTools) get(ctx context.Context, a stageGetArgs) (*stageAnswer, error) {
	s, err := st.await(ctx, a.TaskID, a.Wait)
	if err != nil {
		return nil, err
	}
	answer, err := st.answer(ctx, s, a.Budget)
	if err == nil && a.Log {
		answer.Log, err = st.Log(ctx, a.TaskID)
	}
	return answer, err
}

type stageListArgs struct {
	UserID string  `json:"user_id,omitempty"`
	Status choice  `json:"status,omitempty" schema:"enum=waiting|in_progress|complete|failed|aborted"`
	Limit  integer `json:"limit,omitempty" schema:"default=20,min=1,max=100"`
}

type stageListAnswer struct {
	Count int          `json:"count"`
	Tasks []listedTask `json:"tasks"`
}

// listedTask is a task in a list.
type listedTask struct {
	ID        string       `json:"task_id"`
	UserID    string       `json:"user_id"`
	Query     string       `json:"query"` // the first 200 characters
	Status    stage.Status `json:"status"`
	Current   stage.Stage  `json:"current_stage"`
	Progress  int          `json:"progress_percentage"`
	UpdatedAt time.Time    `json:"updated_at"`
}

func (st stageTools) list(ctx context.Context, a stageListArgs) (*stageListAnswer, error) {
	found, err := st.List(ctx, stage.Query{UserID: a.UserID, Status: stage.Status(a.Status), Limit: int(a.Limit)})
	if err != nil {
		return nil, err
	}
	list := &stageListAnswer{Count: len(found), Tasks: make([]listedTask, len(found))}
	for i, s := range found {
		query := []rune(s.Query)
		list.Tasks[i] = listedTask{s.ID, s.UserID, string(query[:min(len(query), 200)]), s.Status, s.Current, s.Progress, s.UpdatedAt}
	}
	return list, nil
}

type stageAbortArgs struct {
	TaskID string `json:"task_id"`
	Reason string `json:"reason,omitempty" schema:"max=2000"`
}

func (st stageTools) abort(ctx context.Context, a stageAbortArgs) (*stageAnswer, error) {
	s, err := st.Apply(ctx, a.TaskID, stage.Event{Kind: stage.Abort, Reason: a.Reason})
	if err != nil {
		return nil, err
	}
	return st.answer(ctx, s, 0)
}

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
	Budget     integer         `json:"max_tokens,omitempty" schema:"default=3000,min=200,max=25000"`
	Wait       integer         `json:"wait_seconds,omitempty" schema:"default=5,min=0,max=300"`
}

func (st stageTools) advance(ctx context.Context, a advanceArgs) (*stageAnswer, error) {
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
		return st.Submit(ctx, a.TaskID, e)
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
