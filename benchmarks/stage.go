package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
	"cairn/retriever"
)

// StageOptions configures Stage.
type StageOptions struct {
	Tasks   int
	Workers int
	Clients int    // number of clients that create tasks at the same time
	Dir     string // folder of the tasks; "" means the system's folder for temporary files
	// Open, if not nil, connects to servers: once for the clients and, with a queue, once
	// for each worker. A nil Store means the folder, a nil Queue this process.
	Open     func(ctx context.Context) (stage.Store, stage.Queue, error)
	Progress func(what string) // receives the current step
}

// StageReport is the result of Stage.
type StageReport struct {
	Tasks   int `json:"tasks"`
	Stages  int `json:"stages"` // completed stages
	Workers int `json:"workers"`
	Clients int `json:"clients"`
	// Seconds is the time from the first creation to the end of the last task.
	Seconds         float64 `json:"seconds"`
	TasksPerSecond  float64 `json:"tasks_per_second"`
	StagesPerSecond float64 `json:"stages_per_second"`
	// Create and Status are the latencies of creating and reading a task while all workers
	// are busy.
	Create Latency `json:"create_ms"`
	Status Latency `json:"status_ms"`
	// IdleCreate and IdleStatus are the same latencies before the workers start.
	IdleCreate Latency `json:"idle_create_ms"`
	IdleStatus Latency `json:"idle_status_ms"`
}

// idleTasks is the number of tasks created before the workers start.
const idleTasks = 200

// Stage measures the engine of question tasks and its store. It creates tasks of the standard
// plan as fast as the store accepts them, while workers process the stages. The library and
// the reasoner return constant answers, so that neither the index nor a model is measured;
// everything else is real. Each task must complete, with every stage once.
func Stage(ctx context.Context, o StageOptions) (_ *StageReport, err error) {
	dir, err := os.MkdirTemp(o.Dir, "cairn-stage-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &stageBench{o: o, dir: dir}
	defer func() { err = errors.Join(err, b.close()) }()
	return b.run(ctx)
}

type stageBench struct {
	o      StageOptions
	dir    string
	opened []*workspace.Stages
}

// open opens the tasks for n workers. A negative n means none.
func (b *stageBench) open(ctx context.Context, n int) (_ *workspace.Stages, queue bool, err error) {
	so := &workspace.StageOptions{WorkOptions: stage.WorkOptions{Library: fixedLibrary{}, Reasoner: fixedReasoner{}}, Workers: n}
	if b.o.Open != nil {
		if so.Store, so.Queue, err = b.o.Open(ctx); err != nil {
			return nil, false, err
		}
	}
	st, err := workspace.OpenStages(config.Selection{Root: b.dir}, so)
	if err == nil {
		b.opened = append(b.opened, st)
	}
	return st, so.Queue != nil, err
}

func (b *stageBench) close() error {
	var all []error
	for _, st := range slices.Backward(b.opened) {
		all = append(all, st.Close())
	}
	b.opened = nil
	return errors.Join(all...)
}

func (b *stageBench) run(ctx context.Context) (*StageReport, error) {
	r := &StageReport{Workers: b.o.Workers, Clients: b.o.Clients}
	maker, queue, err := b.open(ctx, -1)
	if err != nil {
		return nil, err
	}
	var create, status []float64
	for range min(idleTasks, b.o.Tasks) {
		id, took, err := createTask(ctx, maker, "idle")
		if err != nil {
			return nil, err
		}
		create = append(create, took)
		if took, _, err = lookAt(ctx, maker, id); err != nil {
			return nil, err
		}
		status = append(status, took)
		if _, err := maker.Apply(ctx, id, stage.Event{Kind: stage.Abort}); err != nil {
			return nil, err
		}
	}
	r.IdleCreate, r.IdleStatus = percentiles(create), percentiles(status)
	// Without a queue the workers and the maker share an engine.
	if !queue {
		if err := b.close(); err != nil {
			return nil, err
		}
		if maker, _, err = b.open(ctx, b.o.Workers); err != nil {
			return nil, err
		}
	} else {
		for range b.o.Workers {
			if _, _, err := b.open(ctx, 1); err != nil {
				return nil, err
			}
		}
	}
	ids, err := b.load(ctx, maker, r)
	if err != nil {
		return nil, err
	}
	b.o.Progress("checking")
	for _, id := range ids {
		if err := checkTask(ctx, maker, id, r); err != nil {
			return nil, err
		}
	}
	r.Tasks = len(ids)
	r.TasksPerSecond, r.StagesPerSecond = float64(r.Tasks)/r.Seconds, float64(r.Stages)/r.Seconds
	return r, nil
}

// load creates all tasks and waits until all have ended.
func (b *stageBench) load(ctx context.Context, maker *workspace.Stages, r *StageReport) ([]string, error) {
	var mu sync.Mutex
	var ids []string
	var create, status []float64
	var next atomic.Int64
	var clients errgroup.Group
	began := time.Now()
	for range b.o.Clients {
		clients.Go(func() error {
			for i := next.Add(1); i <= int64(b.o.Tasks); i = next.Add(1) {
				id, took, err := createTask(ctx, maker, fmt.Sprint("user-", i%100))
				if err != nil {
					return err
				}
				mu.Lock()
				ids = append(ids, id)
				create = append(create, took)
				some := ids[len(ids)*7919%len(ids)]
				mu.Unlock()
				if i%10 == 0 {
					took, _, err := lookAt(ctx, maker, some)
					if err != nil {
						return err
					}
					mu.Lock()
					status = append(status, took)
					mu.Unlock()
				}
				if i%100 == 0 {
					b.o.Progress(fmt.Sprintf("%d tasks created", i))
				}
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < len(ids); {
		took, s, err := lookAt(ctx, maker, ids[i])
		if err != nil {
			return nil, err
		}
		if s.Status.Final() {
			i++
			continue
		}
		status = append(status, took)
		b.o.Progress(fmt.Sprintf("%d tasks have ended", i))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.Seconds = time.Since(began).Seconds()
	if len(status) == 0 { // too few tasks to read one
		status = []float64{0}
	}
	r.Create, r.Status = percentiles(create), percentiles(status)
	return ids, nil
}

func createTask(ctx context.Context, st *workspace.Stages, user string) (id string, ms float64, err error) {
	began := time.Now()
	s, err := st.Create(ctx, stage.Request{UserID: user, Query: "Who are the SRE team members?"})
	if err != nil {
		return "", 0, err
	}
	return s.ID, milliseconds(time.Since(began)), nil
}

func lookAt(ctx context.Context, st *workspace.Stages, id string) (ms float64, s *stage.State, err error) {
	began := time.Now()
	s, err = st.Task(ctx, id)
	return milliseconds(time.Since(began)), s, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkTask checks that a task has completed and that its log has every stage once.
func checkTask(ctx context.Context, st *workspace.Stages, id string, r *StageReport) error {
	s, err := st.Task(ctx, id)
	if err != nil {
		return err
	}
	if s.Status != stage.Complete || !slices.Equal(s.Completed, s.Plan) {
		return fmt.Errorf("task %s is %s after %v", id, s.Status, s.Completed)
	}
	entries, err := st.Log(ctx, id)
	if err != nil {
		return err
	}
	var counted []stage.Stage
	for _, e := range entries {
		if e.Action == stage.Completed {
			counted = append(counted, e.Stage)
		}
	}
	if !slices.Equal(counted, s.Plan) {
		return fmt.Errorf("the log of task %s counts %v", id, counted)
	}
	r.Stages += len(counted)
	return nil
}

// fixedLibrary finds the same three sections for every query.
type fixedLibrary struct{}

func (fixedLibrary) Search(context.Context, retriever.Query) (*retriever.Answer, error) {
	a := &retriever.Answer{Mode: retriever.Hybrid}
	for i := range 3 {
		a.Results = append(a.Results, retriever.Result{
			Path: fmt.Sprintf("teams/%d.md", i), Anchor: "members", Title: "Teams", Headings: []string{"Teams", "Members"}, Score: .8,
			Snippet: strings.Repeat("Ann, Bob and Chen are on call in turn. ", 5),
		})
	}
	return a, nil
}

func (fixedLibrary) ReadAll(_ context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return &retriever.Readings{Documents: []retriever.Reading{{Path: "teams/0.md", Anchor: new("members"), Content: strings.Repeat("Ann, Bob and Chen are on call in turn. ", 20)}}}, nil
}

// fixedReasoner answers from the first section.
type fixedReasoner struct{}

func (fixedReasoner) Answer(context.Context, *stage.Brief) (*stage.Answered, error) {
	return &stage.Answered{Draft: stage.Draft{Answer: "The SRE team consists of Ann, Bob and Chen, who are on call in turn.", Citations: []string{"doc:teams/0.md#members"}}, By: "benchmark"}, nil
}
