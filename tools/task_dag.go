package tools

import (
	"context"
	"time"

	"cairn/internal/job"
	"cairn/internal/stage"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// stageAnswer is the answer of the tools on one question task.
type stageAnswer struct {
	Task *stage.Task `json:"task"`
	// Brief is present while the task waits for the caller.
	Brief *stage.Brief  `json:"brief,omitempty"`
	Log   []stage.Entry `json:"log,omitempty"`
	// Next says what to do.
	Next string `json:"next"`
}

// awaitCaller waits until a task needs the caller or has ended, at most the given
// number of seconds, and reports progress meanwhile.
func awaitCaller(ctx context.Context, st *workspace.Stages, id string, seconds whole) (*stage.State, error) {
	if seconds == 0 {
		return st.Task(ctx, id)
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	report := progressOf(ctx)
	changed := func(s *stage.State) {
		if report != nil {
			report(job.Progress{Phase: string(s.Current), Done: len(s.Completed), Total: len(s.Plan)})
		}
	}
	s, err := st.Watch(waiting, id, changed, stage.NeedsCaller)
	if s != nil && waiting.Err() != nil && ctx.Err() == nil {
		return s, nil // the task goes on
	}
	return s, err
}

// checkBudget refuses a budget that would only fail after the task has changed.
func checkBudget(budget whole) error {
	if budget != 0 && (budget < retriever.MinBudget || budget > retriever.MaxBudget) {
		return invalid("max_tokens: %d, want %d to %d", budget, retriever.MinBudget, retriever.MaxBudget)
	}
	return nil
}

// stageState returns a task and what it wants from the caller.
func stageState(ctx context.Context, st *workspace.Stages, s *stage.State, budget whole) (*stageAnswer, error) {
	a := &stageAnswer{Task: &s.Task}
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
		a.Next = "yours: do what brief says and hand it in with task_dag_advance, stage " + string(s.Current)
	default:
		a.Next = "cairn works on it: call task_dag_get with wait_seconds"
	}
	return a, nil
}
