package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/stage"
)

// plain are works without dependencies. They count each run of a stage.
func plain(runs *sync.Map) map[stage.Stage]stage.Work {
	works := map[stage.Stage]stage.Work{}
	for _, name := range stage.Stages {
		works[name] = func(_ context.Context, s *stage.State) (stage.Result, error) {
			n, _ := runs.LoadOrStore(stage.Job{TaskID: s.ID, Stage: s.Current, Run: s.Machine.Run}, new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
			switch name {
			case stage.Moderation:
				return stage.Result{Confidence: new(1.0)}, nil
			case stage.ResponsePackaging:
				return stage.Result{Response: &stage.Response{Answer: "a"}}, nil
			}
			return stage.Result{}, nil
		}
	}
	return works
}

// start runs an engine's workers until the test ends.
func start(t *testing.T, e *stage.Engine, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx, stage.Stages, n) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// TestEngine: many tasks on several workers all end, each stage run once.
func TestEngine(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	var runs sync.Map
	e := stage.NewEngine(s, &stage.Options{Work: plain(&runs), Sweep: 10 * time.Millisecond})
	start(t, e, 4)
	var ids []string
	for i := range 40 {
		st, err := e.Create(t.Context(), stage.Request{UserID: "u", Query: fmt.Sprint("question ", i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, st.ID)
	}
	for _, id := range ids {
		seen := 0
		st, err := e.Watch(t.Context(), id, func(*stage.State) { seen++ }, nil)
		if err != nil || st.Status != stage.Complete || seen == 0 {
			t.Fatalf("task %s is %+v, %v", id, st, err)
		}
	}
	runs.Range(func(job, n any) bool {
		if n.(*atomic.Int32).Load() != 1 {
			t.Errorf("%+v ran %d times", job, n.(*atomic.Int32).Load())
		}
		return true
	})
}

// TestEngineTakesOver: a process runs the jobs that another left unfinished.
func TestEngineTakesOver(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	// This engine runs no workers, like a process that dies before it publishes.
	dead := stage.NewEngine(s, nil)
	st, err := dead.Create(t.Context(), stage.Request{UserID: "u", Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if st, err = dead.Apply(t.Context(), st.ID, stage.Event{Kind: stage.Claim, Worker: "dead"}); err != nil || st.Status != stage.InProgress {
		t.Fatal(err)
	}
	var runs sync.Map
	later := func() time.Time { return time.Now().Add(stage.ResendAfter) }
	start(t, stage.NewEngine(s, &stage.Options{Work: plain(&runs), Sweep: 10 * time.Millisecond, Now: later}), 1)
	if st, err = dead.Watch(t.Context(), st.ID, nil, nil); err != nil || st.Status != stage.Complete {
		t.Errorf("the task is %s, %v", st.Status, err)
	}
}

// TestEngineEndsWhatIsDue: a task without a worker ends at its deadline.
func TestEngineEndsWhatIsDue(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	maker := stage.NewEngine(s, nil)
	st, err := maker.Create(t.Context(), stage.Request{UserID: "u", Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(stage.DefaultTaskTimeout) }
	start(t, stage.NewEngine(s, &stage.Options{Sweep: 10 * time.Millisecond, Now: later}), 1)
	if st, err = maker.Watch(t.Context(), st.ID, nil, nil); err != nil || st.Status != stage.Failed {
		t.Errorf("the task is %s, %v", st.Status, err)
	}
}

// TestEngineFailures: a work that fails, or returns an invalid result, fails the
// task after one retry.
func TestEngineFailures(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	var runs sync.Map
	works := plain(&runs)
	works[stage.EmbeddingLookup] = func(_ context.Context, s *stage.State) (stage.Result, error) {
		if s.Query == "bad result" {
			return stage.Result{Output: []byte("[]")}, nil
		}
		return stage.Result{}, errors.New("no\x00 \xff good")
	}
	e := stage.NewEngine(s, &stage.Options{Work: works, Sweep: 10 * time.Millisecond})
	start(t, e, 2)
	for query, want := range map[string]string{"bad result": "Stage 'embedding_lookup' failed: output: want a JSON object", "error": "Stage 'embedding_lookup' failed: no  good"} {
		st, err := e.Create(t.Context(), stage.Request{UserID: "u", Query: query})
		if err != nil {
			t.Fatal(err)
		}
		if st, err = e.Watch(t.Context(), st.ID, nil, nil); err != nil || st.Status != stage.Failed || *st.Error != want {
			t.Errorf("%s: the task is %s, %v, %v", query, st.Status, *st.Error, err)
		}
	}
}

// TestSubmit: clients claim delegated stages, and submit results of them, only.
func TestSubmit(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	var runs sync.Map
	e := stage.NewEngine(s, &stage.Options{Work: plain(&runs), Sweep: 10 * time.Millisecond, Rules: stage.Rules{Delegated: []stage.Stage{stage.ExecutorReasoning, stage.WebSearch}}})
	start(t, e, 1)
	st, err := e.Create(t.Context(), stage.Request{UserID: "u", Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if st, err = e.Watch(t.Context(), st.ID, nil, stage.NeedsCaller); err != nil || st.Current != stage.ExecutorReasoning || st.Status != stage.Waiting {
		t.Fatalf("%s at %s, %v", st.Status, st.Current, err)
	}
	forged := stage.Event{Kind: stage.Done, Stage: stage.Moderation, Result: stage.Result{Confidence: new(1.0)}}
	if _, err := e.Submit(t.Context(), st.ID, forged); !errors.Is(err, stage.Is(stage.CodeWrongStage)) {
		t.Errorf("moderation from outside: %v", err)
	}
	claim := stage.Event{Kind: stage.Claim, Worker: "me"}
	if _, err := e.Submit(t.Context(), st.ID, claim); err != nil {
		t.Errorf("a claim: %v", err)
	}
	if _, err := e.Submit(t.Context(), st.ID, stage.Event{Kind: stage.Done, Stage: stage.ExecutorReasoning}); err != nil {
		t.Fatal(err)
	}
	if st, err = e.Watch(t.Context(), st.ID, nil, nil); err != nil || st.Status != stage.Complete {
		t.Errorf("the task is %s, %v", st.Status, err)
	}
	idle := stage.NewEngine(s, nil)
	st, err = idle.Create(t.Context(), stage.Request{UserID: "u", Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Submit(t.Context(), st.ID, claim); !errors.Is(err, stage.Is(stage.CodeNotYours)) {
		t.Errorf("a claim of a stage of cairn's own from outside: %v", err)
	}
	if _, err := idle.Apply(t.Context(), st.ID, claim); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Submit(t.Context(), st.ID, stage.Event{Kind: stage.Done, Stage: stage.IntentAnalysis}); !errors.Is(err, stage.Is(stage.CodeNotYours)) {
		t.Errorf("a stage of cairn's own from outside: %v", err)
	}
}
