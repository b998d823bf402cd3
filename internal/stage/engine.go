package stage

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Work runs one stage of a task. It owns s. An error is a failed attempt.
type Work func(ctx context.Context, s *State) (Result, error)

// Options configures NewEngine. Nil and the zero value mean the defaults.
type Options struct {
	// Queue delivers jobs to workers; nil means a LocalQueue.
	Queue Queue
	// Work holds the functions that run stages in this process.
	Work map[Stage]Work
	// Rules are the rules of new tasks.
	Rules Rules
	// Name identifies the worker in the log; "" means a random name.
	Name string
	// Sweep is the interval at which Maintain calls Engine.Sweep; 0 means 1 s.
	Sweep time.Duration
	// Keep is the time that ended tasks are kept; 0 means KeepArchive.
	Keep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger receives warnings about the store and the queue. Nil discards them.
	Logger *slog.Logger
}

// Engine applies events to a store and runs stages. It is safe for concurrent use. Any
// number of engines, in any number of processes, can share a store.
type Engine struct {
	store   Store
	options Options

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each transition by this engine
}

// NewEngine returns an Engine that uses a store. The caller closes the store.
func NewEngine(store Store, o *Options) *Engine {
	e := &Engine{store: store, changed: make(chan struct{}), options: *cmp.Or(o, &Options{})}
	if e.options.Queue == nil {
		e.options.Queue = NewLocalQueue()
	}
	if e.options.Now == nil {
		e.options.Now = time.Now
	}
	e.options.Name = cmp.Or(e.options.Name, "worker-"+rand.Text()[:8])
	if e.options.Sweep <= 0 {
		e.options.Sweep = time.Second
	}
	e.options.Keep = cmp.Or(e.options.Keep, KeepArchive)
	e.options.Logger = cmp.Or(e.options.Logger, slog.New(slog.DiscardHandler))
	return e
}

// Keep returns the time that ended tasks are kept.
func (e *Engine) Keep() time.Duration { return e.options.Keep }

// Create creates a task with the rules of the engine, and with a new id if r has none.
func (e *Engine) Create(ctx context.Context, r Request) (*State, error) {
	r.ID = cmp.Or(r.ID, uuid.NewString())
	r.Rules, r.At = e.options.Rules, e.options.Now()
	s, fx, err := New(r)
	if err != nil {
		return nil, err
	}
	return e.change(ctx, s.ID, func(old *State) (*State, *Effects, error) {
		if old != nil {
			return nil, nil, Exists(s.ID)
		}
		return s, fx, nil
	})
}

// Apply applies an event. It sets the time of the event to now.
func (e *Engine) Apply(ctx context.Context, id string, ev Event) (*State, error) {
	return e.update(ctx, id, ev, false)
}

// Submit applies an event of a client to a delegated stage: a claim or a result. An event of any
// other stage is an error, because those stages check the results of clients.
func (e *Engine) Submit(ctx context.Context, id string, ev Event) (*State, error) {
	return e.update(ctx, id, ev, true)
}

// Answer submits a client's answer as the result of executor_reasoning. The caller may set
// ID, Run and Worker of ev.
func (e *Engine) Answer(ctx context.Context, id string, a *Answered, ev Event) (*State, error) {
	s, err := e.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	ev.Kind, ev.Stage = Done, ExecutorReasoning
	if ev.Result, err = a.Result(s); err != nil {
		return nil, err
	}
	return e.Submit(ctx, id, ev)
}

// update applies an event that happens now. If delegated is true, the stage must be
// delegated.
func (e *Engine) update(ctx context.Context, id string, ev Event, delegated bool) (*State, error) {
	ev.At = e.options.Now()
	return e.change(ctx, id, func(s *State) (*State, *Effects, error) {
		if s == nil {
			return nil, nil, NotFound(id)
		}
		n, fx, err := Step(s, ev)
		if err == nil && delegated && !Delegated(s) {
			return nil, nil, refuse(CodeNotYours, "stage %s of task %s is done by cairn itself", s.Current, s.ID)
		}
		return n, fx, err
	})
}

// change stores a transition.
func (e *Engine) change(ctx context.Context, id string, fn Change) (*State, error) {
	s, fx, err := e.store.Update(ctx, id, fn)
	if err != nil {
		return nil, err
	}
	e.after(ctx, fx)
	return s, nil
}

// Task returns a task.
func (e *Engine) Task(ctx context.Context, id string) (*State, error) {
	return e.store.Load(ctx, id)
}

// Log returns every transition of a task in order.
func (e *Engine) Log(ctx context.Context, id string) ([]Entry, error) {
	return e.store.Log(ctx, id)
}

// List returns tasks, newest first.
func (e *Engine) List(ctx context.Context, q Query) ([]*State, error) { return e.store.List(ctx, q) }

// republishAfter is the time after which the engine publishes a job to a durable queue
// again, in case the queue lost it.
const republishAfter = 120 * time.Second

// after wakes the callers of Watch after a stored transition and publishes its job. If
// publishing fails, the store lists the job as unsent.
func (e *Engine) after(ctx context.Context, fx *Effects) {
	e.mu.Lock()
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	if fx.Job == nil || fx.Entry.Action == Started {
		return // the client that claimed it runs it
	}
	e.send(context.WithoutCancel(ctx), *fx.Job)
}

func (e *Engine) send(ctx context.Context, jobs ...Job) {
	ctx, cancel := context.WithTimeout(ctx, ResendAfter)
	defer cancel()
	err := e.options.Queue.Publish(ctx, jobs...)
	if err == nil && e.options.Queue.Durable() {
		err = e.store.Postpone(ctx, e.options.Now().Add(republishAfter), jobs...)
	}
	if err != nil {
		e.options.Logger.Warn("sending jobs, which are sent again later", "jobs", len(jobs), "error", err)
	}
}

// pollInterval is the interval at which Watch checks for transitions by other processes.
const pollInterval = 250 * time.Millisecond

// Watch calls fn with the state of a task after each transition since its creation, until
// the task or ctx ends, or enough returns true. It returns the last state. It replays the
// transitions before the current one from the log; see replay.
func (e *Engine) Watch(ctx context.Context, id string, fn func(*State), enough func(*State) bool) (*State, error) {
	var version int64
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		s, err := e.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		if s.Machine.Version != version && fn != nil {
			if err := e.follow(ctx, s, version, fn); err != nil {
				return nil, err
			}
		}
		version = s.Machine.Version
		if s.Status.Final() || enough != nil && enough(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// follow calls fn with the states of a task after a version, up to s.
func (e *Engine) follow(ctx context.Context, s *State, version int64, fn func(*State)) error {
	if s.Machine.Version == version+1 {
		fn(s)
		return nil
	}
	log, err := e.store.Log(ctx, s.ID)
	if err != nil {
		return err
	}
	for _, n := range replay(s, log) {
		if n.Machine.Version > version {
			fn(n)
		}
	}
	return nil
}

// NeedsCaller reports whether a task has ended or waits for a client.
func NeedsCaller(s *State) bool {
	return s.Status.Final() || s.Status == Waiting && s.Machine.Rules.delegates(s.Current)
}

// Delegated reports whether a client, and not a worker, runs the current stage of a task.
func Delegated(s *State) bool { return s.Machine.Rules.delegates(s.Current) }

// Run runs the given stages, n at a time, until ctx ends. It ignores stages without Work. It
// also runs Maintain.
func (e *Engine) Run(ctx context.Context, stages []Stage, n int) error {
	mine := slices.DeleteFunc(slices.Clone(stages), func(s Stage) bool { return e.options.Work[s] == nil })
	var sweeper sync.WaitGroup
	sweeper.Go(func() { e.Maintain(ctx) })
	defer sweeper.Wait()
	return e.options.Queue.Consume(ctx, mine, n, e.do)
}

// heartbeat is the interval at which a worker reports that it still runs a job. After twice
// this time without a report, another worker may run the job as well.
const heartbeat = ResendAfter / 2

// do runs a job. After an error the queue must deliver the job again.
func (e *Engine) do(ctx context.Context, j Job) error {
	s, err := e.load(ctx, j.TaskID)
	if errors.Is(err, Is(CodeNotFound)) {
		return nil // the task was deleted long after its end
	}
	if err != nil {
		return err
	}
	if current, ok := s.Job(); !ok || current != j {
		return nil // the run has ended, or belongs to a lost state
	}
	if s.Status == Waiting {
		s, err = e.apply(ctx, j, Event{ID: fmt.Sprint("start:", j.Run), Kind: Claim, Stage: j.Stage})
		if err != nil || s == nil {
			return err
		}
		if current, ok := s.Job(); !ok || current != j {
			return nil
		}
	}
	ev := Event{ID: fmt.Sprint("end:", j.Run), Kind: Done, Stage: j.Stage}
	limited, cancel := context.WithTimeout(ctx, s.Deadline().Sub(e.options.Now()))
	ev.Result, err = e.workWithHeartbeat(limited, j, s)
	cancel()
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // this worker stops; another worker runs the job
	case err != nil:
		ev.Kind, ev.Reason = Failure, clip(err.Error(), maxDetail)
	}
	_, err = e.apply(ctx, j, ev)
	if errors.Is(err, Is(CodeParameter)) { // an invalid result counts as a failure
		ev.Kind, ev.Reason, ev.Result = Failure, clip(err.Error(), maxDetail), Result{}
		_, err = e.apply(ctx, j, ev)
	}
	return err
}

// workWithHeartbeat runs the work of a job and postpones the next delivery of the job until work returns.
func (e *Engine) workWithHeartbeat(ctx context.Context, j Job, s *State) (Result, error) {
	beats, stop := context.WithCancel(ctx)
	var postponing sync.WaitGroup
	postponing.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if beats.Err() != nil {
					return // work has returned
				}
				if err := e.store.Postpone(beats, e.options.Now().Add(ResendAfter), j); err != nil {
					e.options.Logger.Warn("postponing a job", "task", j.TaskID, "error", err)
				}
			case <-beats.Done():
				return
			}
		}
	})
	defer postponing.Wait()
	defer stop()
	return e.options.Work[j.Stage](ctx, s)
}

// The waits between attempts to store a result.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

// apply stores an event of this worker about j. During an outage of the store it retries, so
// that the result is not lost. It returns nil, nil if the run has ended.
func (e *Engine) apply(ctx context.Context, j Job, ev Event) (s *State, err error) {
	ev.Run, ev.Worker = j.Run, e.options.Name
	err = e.retry(ctx, func() error {
		s, err = e.Apply(ctx, j.TaskID, ev)
		return err
	})
	refused, ok := errors.AsType[*Error](err)
	switch {
	case ok && refused.Code == CodeTransition && ev.Kind == Claim:
		return e.load(ctx, j.TaskID)
	case ok && refused.Code != CodeParameter:
		return nil, nil
	}
	return s, err
}

// load reads a task. During an outage of the store it retries, because the queue would
// deliver a returned job again at once.
func (e *Engine) load(ctx context.Context, id string) (s *State, err error) {
	err = e.retry(ctx, func() error {
		s, err = e.store.Load(ctx, id)
		return err
	})
	return s, err
}

// retry calls fn until the store is available.
func (e *Engine) retry(ctx context.Context, fn func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := fn()
		if !errors.Is(err, Is(CodeUnavailable)) {
			return err
		}
		e.options.Logger.Warn("waiting for the store", "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// maxSwept is the maximum number of tasks, and of jobs, in a sweep.
const maxSwept = 1000

// cleanEvery is the number of sweeps per call of Store.Clean.
const cleanEvery = 60

// Maintain calls Sweep regularly and deletes old tasks, until ctx ends.
func (e *Engine) Maintain(ctx context.Context) {
	tick := time.NewTicker(e.options.Sweep)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		err := e.Sweep(ctx)
		if err == nil && n%cleanEvery == 0 {
			_, err = e.store.Clean(ctx, e.options.Now(), e.options.Keep)
		}
		if err != nil && ctx.Err() == nil {
			e.options.Logger.Warn("sweeping tasks", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep applies the timeouts that are due and publishes unsent jobs.
func (e *Engine) Sweep(ctx context.Context) error {
	now := e.options.Now()
	due, err := e.store.Due(ctx, now, maxSwept)
	if err != nil {
		return err
	}
	for _, id := range due {
		_, err := e.Apply(ctx, id, Event{Kind: Tick})
		// Another process may have swept or advanced the task.
		if refused, ok := errors.AsType[*Error](err); err != nil && (!ok || refused.Code == CodeUnavailable) {
			return err
		}
	}
	jobs, err := e.store.Unsent(ctx, now, maxSwept)
	if err != nil || len(jobs) == 0 {
		return err
	}
	e.send(ctx, jobs...)
	return nil
}

// clip shortens a text to n bytes at a character boundary, and removes invalid characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return validText(s)
	}
	return validText(s[:n])
}

// replay returns the state of a task after each transition of its log; the last is s itself.
// The log does not contain outputs, so an earlier state has only those that no later
// transition replaced.
func replay(s *State, log []Entry) []*State {
	made := map[Stage]int64{} // the versions that made the outputs
	for _, e := range log {
		switch e.Action {
		case Completed, Reinvoked, Inserted, Skipped, GaveUp:
			made[e.Stage] = e.Version
		}
	}
	at := State{Task: s.Task}
	at.Plan, at.Current, at.Completed = s.TemplatePlan, s.TemplatePlan[0], []Stage{}
	at.Response, at.Error = nil, nil
	var all []*State
	for _, e := range log {
		if e.Version >= s.Machine.Version {
			break
		}
		at.move(e.Action, e.Stage)
		at.Status, at.UpdatedAt = e.Status, e.At
		at.Progress = at.progress()
		n := at
		n.Machine = Machine{Version: e.Version}
		n.Context, n.VectorHits = map[Stage]json.RawMessage{}, []string{}
		for stage, version := range made {
			if output, ok := s.Context[stage]; ok && version <= e.Version {
				n.Context[stage] = output
			}
		}
		if version, ok := made[EmbeddingLookup]; ok && version <= e.Version {
			n.VectorHits = s.VectorHits
		}
		all = append(all, &n)
	}
	return append(all, s)
}
