package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"cairn/internal/base/testutil"
	"cairn/internal/stage"
)

// TestSimulation runs question tasks under faults. Processes are killed and started again,
// calls of the store fail, take long or lose their answers, jobs are lost, delivered twice
// or late, and stages fail or take too long. A virtual clock makes a run of hours take
// milliseconds, and everything random follows from the seed.
func TestSimulation(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "stage.db"))
	ended := map[stage.Status]int{}
	testutil.Simulate(t, func(t *testing.T, c *testutil.Chance) { simulate(t, Open(file), c, ended) })
	t.Logf("tasks by status %v", ended)
}

// Sizes of a simulation.
const (
	simProcesses = 3
	simTasks     = 4
	simFaults    = 20 * time.Minute // during which there are faults
)

// simulation is one run.
type simulation struct {
	*testutil.Chance
	store   stage.Store
	jobs    []stage.Job // in the queue
	calm    atomic.Bool // no more faults
	clock   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation
}

// simProcess is the store as one process sees it.
type simProcess struct {
	stage.Store
	sim  *simulation
	name string
	dead atomic.Bool
}

// Kinds of operations in a history.
const (
	opUpdate = iota // creates a task, too
	opLoad
)

// simOp is an operation on a task as its caller saw it. Unless unknown, it met the task
// at version before (0 for none) and left it at version after.
type simOp struct {
	kind          int
	task          string
	before, after int64
	unknown       bool
}

// do makes one call with the faults of the simulation. reached reports whether the caller
// received the result of the call.
func (p *simProcess) do(what, task string, call func() error) (err error, reached bool) {
	r := p.sim.Of(p.name, what, task)
	wait := func() {
		limit := 300 * time.Millisecond
		if r.IntN(20) == 0 {
			limit = 40 * time.Second
		}
		time.Sleep(time.Duration(r.Int64N(int64(limit))) + 1)
	}
	faulty := !p.sim.calm.Load()
	wait()
	if p.dead.Load() || faulty && r.IntN(12) == 0 {
		return stage.Unavailable("the store", errors.New("not reached")), false
	}
	err = call()
	wait()
	if p.dead.Load() || faulty && r.IntN(20) == 0 {
		return stage.Unavailable("the store", errors.New("the answer was lost")), false
	}
	return err, true
}

// record adds an operation that began at the time begin to the history.
func (p *simProcess) record(op simOp, begin int64) {
	end := p.sim.clock.Add(1)
	if op.unknown {
		end = 1 << 62 // it may still happen
	}
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	p.sim.history = append(p.sim.history, porcupine.Operation{Input: op, Call: begin, Output: op, Return: end})
}

// Update implements stage.Store.
func (p *simProcess) Update(ctx context.Context, id string, fn stage.Change) (st *stage.State, fx *stage.Effects, err error) {
	op, begin := simOp{kind: opUpdate, task: id}, p.sim.clock.Add(1)
	err, reached := p.do("update", id, func() error {
		st, fx, err = p.Store.Update(ctx, id, func(s *stage.State) (*stage.State, *stage.Effects, error) {
			if s != nil {
				op.before, op.after = s.Machine.Version, s.Machine.Version
			}
			n, fx, err := fn(s)
			if err == nil {
				op.after = n.Machine.Version
			}
			return n, fx, err
		})
		return err
	})
	_, refused := errors.AsType[*stage.Error](err)
	op.unknown = !reached || err != nil && !refused // such as the end of ctx
	p.record(op, begin)
	if err != nil {
		return nil, nil, err
	}
	return st, fx, nil
}

// Load implements stage.Store.
func (p *simProcess) Load(ctx context.Context, id string) (st *stage.State, err error) {
	begin := p.sim.clock.Add(1)
	err, reached := p.do("load", id, func() error { st, err = p.Store.Load(ctx, id); return err })
	if !reached {
		return nil, err
	}
	op := simOp{kind: opLoad, task: id}
	if err == nil {
		op.before, op.after = st.Machine.Version, st.Machine.Version
	}
	p.record(op, begin)
	return st, err
}

// Due implements stage.Store.
func (p *simProcess) Due(ctx context.Context, now time.Time, limit int) (ids []string, err error) {
	err, _ = p.do("due", "", func() error { ids, err = p.Store.Due(ctx, now, limit); return err })
	return ids, err
}

// Unsent implements stage.Store.
func (p *simProcess) Unsent(ctx context.Context, now time.Time, limit int) (jobs []stage.Job, err error) {
	err, _ = p.do("unsent", "", func() error { jobs, err = p.Store.Unsent(ctx, now, limit); return err })
	return jobs, err
}

// Postpone implements stage.Store.
func (p *simProcess) Postpone(ctx context.Context, until time.Time, jobs ...stage.Job) error {
	err, _ := p.do("postpone", fmt.Sprint(jobs), func() error { return p.Store.Postpone(ctx, until, jobs...) })
	return err
}

// Clean implements stage.Store. It does nothing, because other runs have tasks in the same
// file.
func (p *simProcess) Clean(context.Context, time.Time, time.Duration) (int, error) { return 0, nil }

// simQueue is a durable queue, as one process sees it, that loses, repeats and delays
// jobs. Its workers look for jobs at moments of their own, so that which of them gets a
// job does not depend on the order in which goroutines run.
type simQueue struct {
	sim  *simulation
	name string
}

// Durable implements stage.Queue.
func (q *simQueue) Durable() bool { return true }

// Close implements stage.Queue.
func (q *simQueue) Close() error { return nil }

// Publish implements stage.Queue.
func (q *simQueue) Publish(_ context.Context, jobs ...stage.Job) error {
	for _, j := range jobs {
		r := q.sim.Of(q.name, "publish", j)
		copies := 1
		if !q.sim.calm.Load() {
			copies = []int{0, 2, 1, 1, 1, 1, 1, 1}[r.IntN(8)]
		}
		for range copies {
			time.Sleep(time.Duration(r.Int64N(int64(5*time.Second))) + 1)
			q.put(j)
		}
	}
	return nil
}

func (q *simQueue) put(j stage.Job) {
	q.sim.mu.Lock()
	defer q.sim.mu.Unlock()
	q.sim.jobs = append(q.sim.jobs, j)
}

// take removes the first job of one of the stages.
func (q *simQueue) take(stages []stage.Stage) (stage.Job, bool) {
	q.sim.mu.Lock()
	defer q.sim.mu.Unlock()
	i := slices.IndexFunc(q.sim.jobs, func(j stage.Job) bool { return slices.Contains(stages, j.Stage) })
	if i < 0 {
		return stage.Job{}, false
	}
	j := q.sim.jobs[i]
	q.sim.jobs = slices.Delete(q.sim.jobs, i, i+1)
	return j, true
}

// Consume implements stage.Queue.
func (q *simQueue) Consume(ctx context.Context, stages []stage.Stage, n int, do func(context.Context, stage.Job) error) error {
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() {
			r := q.sim.Of(q.name, "worker", i)
			for ctx.Err() == nil {
				time.Sleep(time.Duration(r.Int64N(int64(2*time.Second))) + 1)
				if j, ok := q.take(stages); ok && do(ctx, j) != nil {
					q.put(j)
				}
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// simulate runs processes that are killed and started again, and clients that create
// tasks and run the stages that are delegated to them, and then waits for the end of
// every task.
func simulate(t *testing.T, store stage.Store, c *testutil.Chance, ended map[stage.Status]int) {
	sim := &simulation{Chance: c, store: store}
	ctx, stop := context.WithCancel(t.Context())
	var processes, clients sync.WaitGroup
	for i := range simProcesses {
		processes.Go(func() { sim.process(ctx, i) })
	}
	ids := make([]string, simTasks)
	for i := range ids {
		ids[i] = fmt.Sprintf("seed-%d-task-%d", c.Seed, i)
		clients.Go(func() { sim.client(t, ids[i], i%2 == 0) })
	}
	time.Sleep(simFaults)
	sim.calm.Store(true)
	clients.Wait()
	stop()
	processes.Wait()
	for _, id := range ids {
		st, err := store.Load(t.Context(), id)
		if err != nil || !st.Status.Final() {
			t.Errorf("seed %d: task %s is %+v, %v, want one that has ended", c.Seed, id, st, err)
			continue
		}
		ended[st.Status]++
		sim.checkLog(t, st)
	}
	if result := porcupine.CheckOperationsTimeout(versions, sim.history, 0); result != porcupine.Ok {
		t.Errorf("seed %d: the history of %d operations is not linearizable: %v", c.Seed, len(sim.history), result)
	}
}

// process runs processes one after another, each of which is killed after some time.
func (s *simulation) process(ctx context.Context, i int) {
	for life := 0; ctx.Err() == nil; life++ {
		p := &simProcess{Store: s.store, sim: s, name: fmt.Sprintf("process-%d-%d", i, life)}
		r := s.Of(p.name)
		alive, kill := context.WithCancel(ctx)
		killer := time.AfterFunc(time.Duration(r.Int64N(int64(5*time.Minute))), func() {
			if !s.calm.Load() {
				p.dead.Store(true)
				kill()
			}
		})
		e := stage.NewEngine(p, &stage.Options{Queue: &simQueue{s, p.name}, Work: s.works(p), Name: p.name})
		_ = e.Run(alive, stage.Stages, 2)
		killer.Stop()
		kill()
		time.Sleep(time.Duration(r.Int64N(int64(30*time.Second))) + 1)
	}
}

// works are the stages of a process.
func (s *simulation) works(p *simProcess) map[stage.Stage]stage.Work {
	works := map[stage.Stage]stage.Work{}
	for _, name := range stage.Stages {
		works[name] = func(ctx context.Context, st *stage.State) (stage.Result, error) {
			r := s.Of(p.name, "work", st.ID, name, st.Machine.Run)
			takes := time.Duration(r.Int64N(int64(30*time.Second))) + 1
			if !s.calm.Load() && r.IntN(15) == 0 {
				takes = 2 * stage.DefaultStageTimeout
			}
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return stage.Result{}, ctx.Err()
			}
			if !s.calm.Load() && r.IntN(10) == 0 {
				return stage.Result{}, errors.New("it failed")
			}
			return simResult(name, r), nil
		}
	}
	return works
}

func simResult(name stage.Stage, r *rand.Rand) stage.Result {
	switch name {
	case stage.Moderation:
		return stage.Result{Confidence: new(.5 + r.Float64()/2)}
	case stage.ExecutorReasoning:
		return stage.Result{NeedsWebSearch: r.IntN(4) == 0}
	case stage.ResponsePackaging:
		return stage.Result{Response: &stage.Response{Answer: "a"}}
	}
	return stage.Result{}
}

// client creates a task, runs the stages that are delegated to it, and returns when the
// task has ended.
func (s *simulation) client(t *testing.T, id string, delegates bool) {
	p := &simProcess{Store: s.store, sim: s, name: "client of " + id}
	o := &stage.Options{Queue: &simQueue{s, p.name}}
	if delegates {
		o.Rules.Delegated = []stage.Stage{stage.ExecutorReasoning, stage.WebSearch}
	}
	e := stage.NewEngine(p, o)
	r := s.Of(p.name)
	time.Sleep(time.Duration(r.Int64N(int64(simFaults / 2))))
	for {
		_, err := e.Create(t.Context(), stage.Request{ID: id, UserID: "u", Query: "q"})
		if err == nil || errors.Is(err, stage.Is(stage.CodeExists)) {
			break // created now, or by a call whose answer was lost
		}
	}
	for {
		st, err := e.Watch(t.Context(), id, nil, stage.NeedsCaller)
		if err != nil {
			continue
		}
		if st.Status.Final() {
			return
		}
		event := stage.Event{ID: fmt.Sprint("client:", st.Machine.Run), Kind: stage.Done, Stage: st.Current, Run: st.Machine.Run, Result: simResult(st.Current, r)}
		for {
			// A repeated submission is refused, or it is late, or it is the first to arrive.
			if _, err := e.Submit(t.Context(), id, event); !errors.Is(err, stage.Is(stage.CodeUnavailable)) {
				break
			}
		}
	}
}

// checkLog checks that the log has every transition once, and no event twice.
func (s *simulation) checkLog(t *testing.T, st *stage.State) {
	entries, err := s.store.Log(t.Context(), st.ID)
	if err != nil {
		t.Errorf("seed %d: the log of %s: %v", s.Seed, st.ID, err)
	}
	events := map[string]bool{}
	final := 0
	for i, e := range entries {
		if e.Version != int64(i+1) {
			t.Errorf("seed %d: entry %d of %s has version %d", s.Seed, i, st.ID, e.Version)
		}
		if e.Event != "" && events[e.Event] {
			t.Errorf("seed %d: event %s of %s was applied twice", s.Seed, e.Event, st.ID)
		}
		events[e.Event] = true
		if e.Status.Final() {
			final++
		}
	}
	if int64(len(entries)) != st.Machine.Version || final != 1 {
		t.Errorf("seed %d: %s has version %d, %d entries, %d of them final, want as many entries and one final", s.Seed, st.ID, st.Machine.Version, len(entries), final)
	}
}

// versions is the specification of a store: each task has a version, 0 before its creation,
// which an update that is not refused raises by 1.
var versions = (&porcupine.NondeterministicModel{
	Partition: testutil.PartitionBy(func(op simOp) string { return op.task }),
	Init:      func() []any { return []any{int64(0)} },
	Step: func(state, input, _ any) []any {
		version, op := state.(int64), input.(simOp)
		switch {
		case op.unknown && op.kind == opUpdate:
			return []any{version, version + 1}
		case op.unknown:
			return []any{version}
		case version != op.before:
			return nil
		}
		return []any{op.after}
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()
