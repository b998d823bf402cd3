package tools

import (
	"context"
	"errors"
	"time"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

// stageAnswer is what the tools on one question task answer.
type stageAnswer struct {
	Task *stage.Task `json:"task"`
	// Brief is present while the task waits for the caller.
	Brief *stage.Brief  `json:"brief,omitempty"`
	Log   []stage.Entry `json:"log,omitempty"`
	// Next says what to do.
	Next string `json:"next"`
}

const stageOutput = `{
"type":"object",
"properties":{
 "task":{"type":"object"},"brief":{"type":"object"},"log":{"type":"array","items":{"type":"object"}},"next":{"type":"string"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"}
},
"anyOf":[{"required":["task","next"]},{"required":["success","error","code"]}]}`

// maxStageWait bounds how long a call waits for a task, in seconds.
const maxStageWait = 300

// stageCall is the call of a tool on question tasks, which fails with
// {success:false, error, code}.
func stageCall[In any](fn func(ctx context.Context, a In, c call) (any, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		var a In
		err := decode(c.args, &a)
		if err == nil {
			var answer any
			if answer, err = fn(ctx, a, c); err == nil {
				return answer, nil
			}
		}
		return nil, stageFailure(err)
	}
}

func stageFailure(err error) *Failure {
	f, code := FailureOf(err), "INTERNAL_ERROR"
	if f.Code == CodeInvalidParams {
		code = string(stage.CodeParameter)
	}
	if e, ok := errors.AsType[*stage.Error](err); ok {
		f = &Failure{Code: CodeInvalidParams, Message: e.Error()}
		switch code = string(e.Code); e.Code {
		case stage.CodeNotFound:
			f.Code = CodeNotFound
		case stage.CodeUnavailable:
			f.Code = CodeInternal
		}
	}
	f.Data = map[string]any{"code": code}
	f.body = map[string]any{"success": false, "error": f.Message, "code": code}
	return f
}

// follow waits until a task needs the caller or has ended, at most that long,
// and tells progress on the way.
func follow(ctx context.Context, st *workspace.Stages, id string, wait *whole, otherwise int, c call) (*stage.State, error) {
	seconds := otherwise
	if wait != nil {
		seconds = int(*wait)
	}
	if seconds < 0 || seconds > maxStageWait {
		return nil, invalid("wait_seconds is %d, want 0 to %d", seconds, maxStageWait)
	}
	if seconds == 0 {
		return st.Task(ctx, id)
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	tell := func(s *stage.State) {
		if c.progress != nil {
			c.progress(workspace.Progress{Phase: string(s.Current), Done: len(s.Completed), Total: len(s.Plan)})
		}
	}
	s, err := st.Watch(waiting, id, tell, stage.NeedsCaller)
	if s != nil && waiting.Err() != nil && ctx.Err() == nil {
		return s, nil // it goes on meanwhile
	}
	return s, err
}

// stageState answers with a task and what it wants from the caller.
func stageState(ctx context.Context, st *workspace.Stages, s *stage.State, budget int) (*stageAnswer, error) {
	a := &stageAnswer{Task: &s.Task}
	var err error
	if a.Brief, err = st.Brief(ctx, s, budget); err != nil {
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
		a.Next = "yours: do what brief says and hand it in with task_dag_advance, stage " + string(s.Current)
	default:
		a.Next = "cairn works on it: call task_dag_get with wait_seconds"
	}
	return a, nil
}
