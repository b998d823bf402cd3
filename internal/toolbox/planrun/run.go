// Package planrun runs plans of tool calls and records each step, so that a run continues
// after a crash without a second call of a step that succeeded.
package planrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/base/owner"
	"cairn/internal/text/fit"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox/plancheck"
)

// State is the state of a step or of a run.
type State string

// The states. Only a Started and a Lost step may have run without a known outcome.
const (
	Pending State = "pending"
	Started State = "started"
	Done    State = "done"
	Failed  State = "failed"  // the tool reported an error, or the call was refused
	Down    State = "down"    // the server does not run; the call was not made
	Lost    State = "lost"    // the call may have run
	Skipped State = "skipped" // an earlier step has no result
)

// Step is the state of one call of a plan.
type Step struct {
	ID    string `json:"id"`
	Tool  string `json:"tool"`
	State State  `json:"state"`
	// Arguments and Output have secrets masked.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Cut       bool            `json:"cut,omitempty"` // the record lacks Output
	Error     string          `json:"error,omitempty"`
	Attempts  int             `json:"attempts,omitempty"`
	MS        int64           `json:"ms,omitempty"`

	Sent json.RawMessage `json:"-"` // the arguments of the call
}

// Result is the outcome of one call.
type Result struct {
	State  State           // Done, Failed, Down or Lost
	Output json.RawMessage // with secrets masked
	Error  string
	Retry  bool // the call did not run, or the tool reported an error
}

// Options configures Run.
type Options struct {
	// Call makes a call.
	Call  func(ctx context.Context, c plancheck.Call, arguments json.RawMessage) Result
	Masks *secret.Masks
	// Dir holds the records.
	Dir string
	// KeepGoing runs the steps that do not need a failed one. Otherwise none begins after it.
	KeepGoing bool
	// Resume continues the last run of the plan, and Restart ignores it. Repeat lists steps to
	// make again, although they succeeded or may have run.
	Resume, Restart bool
	Repeat          []string
	// Progress receives a line for each step that has ended; nil discards them.
	Progress func(line string)
}

const (
	// maxParallel bounds the steps that run at the same time.
	maxParallel = 8
	// maxWait bounds the time before an attempt, which doubles from one second.
	maxWait = 30 * time.Second
)

// UnsureError lists the steps of an earlier run that may have run.
type UnsureError struct{ Steps []string }

func (e *UnsureError) Error() string {
	return fmt.Sprintf("steps that may have run before: %s; check what they did, then name those to repeat", strings.Join(e.Steps, ", "))
}

// Run runs a valid plan without cycles and returns its steps in the order of the layers. The
// error says why the run did not begin, or that it was cancelled or not recorded.
func Run(ctx context.Context, p plancheck.Plan, o Options) ([]Step, error) {
	layers, err := p.Layers()
	if err != nil {
		return nil, err
	}
	dir, err := o.open(&p)
	if err != nil {
		return nil, err
	}
	unlock, err := owner.Lock(ctx, dir, "cairn run")
	if err != nil {
		if _, ok := errors.AsType[*owner.LockError](err); ok {
			err = fmt.Errorf("this plan is running: %w", err)
		}
		return nil, err
	}
	defer unlock()
	r := &run{o: o, plan: &p, steps: map[string]*Step{}}
	if err := r.begin(dir); err != nil {
		return nil, err
	}
	defer r.file.Close()
	for _, layer := range layers {
		var running errgroup.Group
		running.SetLimit(maxParallel)
		for _, id := range layer {
			running.Go(func() error { r.step(ctx, id); return nil })
		}
		_ = running.Wait() // no step returns an error
	}
	var steps []Step
	for _, id := range slices.Concat(layers...) {
		steps = append(steps, *r.steps[id])
	}
	if ctx.Err() == nil {
		r.write(Step{State: Done})
	}
	return steps, errors.Join(r.err, ctx.Err())
}

// run is a plan that runs.
type run struct {
	o    Options
	plan *plancheck.Plan

	mu     sync.Mutex
	steps  map[string]*Step
	ended  int
	failed bool
	file   *os.File // the record
	err    error    // of the record
}

// step runs a step unless it is done or cannot run.
func (r *run) step(ctx context.Context, id string) {
	i := r.plan.Position(id)
	call := r.plan.Calls[i]
	r.mu.Lock()
	s := *r.steps[id]
	arguments, why := r.prepare(i, s.State == Done)
	r.mu.Unlock()
	switch {
	case s.State == Done:
	case why != "" || ctx.Err() != nil:
		s.State, s.Error = Skipped, why
	default:
		s.Sent, _ = json.Marshal(arguments) // it was JSON
		s.Arguments = bounded(r.o.Masks.Arguments(arguments))
		r.attempt(ctx, call, &s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps[id] = &s
	r.ended++
	r.failed = r.failed || s.State != Done
	if r.o.Progress != nil {
		r.o.Progress(fmt.Sprintf("%s %s %s, %d of %d", s.ID, s.Tool, s.State, r.ended, len(r.plan.Calls)))
	}
}

// prepare returns the arguments of call i, or why it cannot run. The caller holds r.mu.
func (r *run) prepare(i int, done bool) (map[string]any, string) {
	if done {
		return nil, ""
	}
	if r.err != nil {
		return nil, "the record cannot be written: " + r.err.Error()
	}
	if r.failed && !r.o.KeepGoing {
		return nil, "an earlier step failed"
	}
	outputs := map[string]any{}
	for _, w := range r.plan.Waits() {
		if before := r.steps[r.plan.Calls[w[0]].ID]; w[1] == i && before.State != Done {
			return nil, "it waits for " + before.ID
		}
	}
	for id, s := range r.steps {
		if s.State == Done && !s.Cut && json.Valid(s.Output) {
			outputs[id] = plancheck.Parsed(string(s.Output))
		}
	}
	arguments, err := r.plan.Fill(r.plan.Calls[i].ID, outputs)
	if err != nil {
		return nil, err.Error()
	}
	return arguments, ""
}

// attempt makes the call of a step, again if it may be repeated, and records it.
func (r *run) attempt(ctx context.Context, call plancheck.Call, s *Step) {
	began := time.Now()
	for wait := time.Second; ; wait = min(2*wait, maxWait) {
		s.State, s.Output, s.Error = Started, nil, ""
		s.Attempts++
		if !r.write(*s) {
			s.State, s.Error = Skipped, "the record cannot be written"
			return
		}
		result := r.o.Call(ctx, call, s.Sent)
		s.State, s.Output, s.Error, s.MS = result.State, result.Output, fit.Cut(result.Error, maxError), time.Since(began).Milliseconds()
		r.write(*s)
		if s.State == Done || !result.Retry || s.Attempts > call.Retries {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}
