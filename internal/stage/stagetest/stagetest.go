// Package stagetest is the conformance suite of stage.Store. It is for tests only.
package stagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/stage"
)

// Store runs the suite. Within a test each call of open returns a store with the same data,
// as if another process opened it. In another test the store is empty. Times are close to
// the present, because servers have their own clocks.
func Store(t *testing.T, open func(t *testing.T) stage.Store) {
	for name, test := range map[string]func(*testing.T, func(*testing.T) stage.Store){
		"Keeps": keeps, "Refuses": refuses, "Contends": contends, "Creates": creates,
		"Timers": timers, "Lists": lists, "Cleans": cleans, "Random": random,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// now returns the start time of a test's tasks. Servers expire keys by their own clock, so it
// is the present.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Make creates a task.
func Make(t testing.TB, s stage.Tasks, r stage.Request) *stage.State {
	t.Helper()
	if r.UserID == "" {
		r.UserID = "user-001"
	}
	if r.Query == "" {
		r.Query = "Who are the SRE team members?"
	}
	st, fx, err := stage.New(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), st, fx); err != nil {
		t.Fatal(err)
	}
	return st
}

// Apply applies an event.
func Apply(t testing.TB, s stage.Tasks, id string, e stage.Event) *stage.State {
	t.Helper()
	st, _, err := s.Update(t.Context(), id, Event(e))
	if err != nil {
		t.Fatalf("%s of %s: %v", e.Kind, id, err)
	}
	return st
}

// Event returns the Change that applies an event.
func Event(e stage.Event) stage.Change {
	return func(s *stage.State) (*stage.State, *stage.Effects, error) { return stage.Step(s, e) }
}

// Next returns an event that advances a task.
func Next(s *stage.State, at time.Time) stage.Event {
	e := stage.Event{ID: fmt.Sprint("done:", s.Machine.Run), Kind: stage.Done, Stage: s.Current, Run: s.Machine.Run, At: at}
	switch {
	case s.Status == stage.Waiting:
		e.ID, e.Kind, e.Stage = fmt.Sprint("claim:", s.Machine.Run), stage.Claim, ""
	case s.Current == stage.EmbeddingLookup:
		e.Result = stage.Result{Hits: []string{"doc:a.md#b"}, Output: json.RawMessage(`{"n":1}`)}
	case s.Current == stage.Moderation:
		e.Result.Confidence = new(1.0)
	case s.Current == stage.ResponsePackaging:
		e.Result.Response = &stage.Response{Answer: "they <&>   are 日本", Sources: []stage.Source{{ID: "doc:a.md#b"}}, Confidence: .8, How: []string{"so"}}
	}
	return e
}

// Same compares two states as JSON.
func Same(t testing.TB, what string, got, want *stage.State) {
	t.Helper()
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func text(s *stage.State) string {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// keeps checks that another process reads each transition of a task.
func keeps(t *testing.T, open func(*testing.T) stage.Store) {
	s, other := open(t), open(t)
	st := Make(t, s, stage.Request{ID: "abc123", At: now()})
	for i := 0; !st.Status.Final(); i++ {
		st = Apply(t, s, "abc123", Next(st, st.UpdatedAt.Add(time.Second)))
		for name, from := range map[string]stage.Store{"this": s, "another": other} {
			got, err := from.Load(t.Context(), "abc123")
			if err != nil {
				t.Fatal(err)
			}
			Same(t, fmt.Sprintf("step %d read from %s store", i, name), got, st)
		}
	}
	if st.Status != stage.Complete || len(st.Completed) != 5 {
		t.Errorf("the task is %s after %v", st.Status, st.Completed)
	}
	entries, err := other.Log(t.Context(), "abc123")
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for i, e := range entries {
		if e.Version != int64(i+1) || e.TaskID != "abc123" || e.At.IsZero() || i > 0 && e.Event == "" {
			t.Errorf("entry %d is %+v", i, e)
		}
		actions = append(actions, string(e.Action))
	}
	if got := strings.Join(actions, " "); got != "create"+strings.Repeat(" start complete", 5) {
		t.Errorf("the log says %s", got)
	}
}

// refuses checks that a rejected event changes nothing.
func refuses(t *testing.T, open func(*testing.T) stage.Store) {
	s := open(t)
	ctx := t.Context()
	if _, err := s.Load(ctx, "nobody"); !errors.Is(err, stage.Is(stage.CodeNotFound)) {
		t.Errorf("loading an unknown task: %v", err)
	}
	if _, err := s.Log(ctx, "nobody"); !errors.Is(err, stage.Is(stage.CodeNotFound)) {
		t.Errorf("the log of an unknown task: %v", err)
	}
	never := func(*stage.State) (*stage.State, *stage.Effects, error) { panic("called for an unknown task") }
	if _, _, err := s.Update(ctx, "nobody", never); !errors.Is(err, stage.Is(stage.CodeNotFound)) {
		t.Errorf("changing an unknown task: %v", err)
	}
	st := Make(t, s, stage.Request{ID: "a", At: now()})
	again, fx, err := stage.New(stage.Request{ID: "a", UserID: "other", Query: "other", At: now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, again, fx); !errors.Is(err, stage.Is(stage.CodeExists)) {
		t.Errorf("the same id again: %v", err)
	}
	late := stage.Event{Kind: stage.Done, Stage: stage.Moderation, At: now()}
	if got, fx, err := s.Update(ctx, "a", Event(late)); !errors.Is(err, stage.Is(stage.CodeWrongStage)) || got != nil || fx != nil {
		t.Errorf("the wrong stage: %v", err)
	}
	st = Apply(t, s, "a", Next(st, now()))
	replay := Next(st, now())
	st = Apply(t, s, "a", replay)
	if _, _, err := s.Update(ctx, "a", Event(replay)); !errors.Is(err, stage.Is(stage.CodeReplayed)) {
		t.Errorf("an event again: %v", err)
	}
	got, err := s.Load(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	Same(t, "after all refusals", got, st)
	if entries, err := s.Log(ctx, "a"); err != nil || len(entries) != 3 {
		t.Errorf("the log has %d entries, %v, want 3", len(entries), err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := s.Update(gone, "a", Event(Next(st, now()))); err == nil {
		t.Error("a change under a cancelled context is stored")
	}
}

// contends checks that only one of many results for the same run counts.
func contends(t *testing.T, open func(*testing.T) stage.Store) {
	stores := []stage.Store{open(t), open(t)}
	Make(t, stores[0], stage.Request{ID: "a", At: now()})
	for {
		st, err := stores[1].Load(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if st.Status.Final() {
			break
		}
		var counted atomic.Int32
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				e := Next(st, now())
				e.Worker = fmt.Sprint("w", w)
				_, _, err := stores[w%2].Update(t.Context(), "a", Event(e))
				var refused *stage.Error
				switch {
				case err == nil:
					counted.Add(1)
				case !errors.As(err, &refused) || refused.Code == stage.CodeUnavailable:
					t.Errorf("worker %d: %v", w, err)
				}
			})
		}
		wg.Wait()
		if counted.Load() != 1 {
			t.Fatalf("%d of 8 workers advance the task at %s", counted.Load(), st.Current)
		}
	}
	if entries, err := stores[0].Log(t.Context(), "a"); err != nil || len(entries) != 11 {
		t.Errorf("the log has %d entries, %v, want 11", len(entries), err)
	}
}

// creates checks that only one of several concurrent creations with the same id succeeds.
func creates(t *testing.T, open func(*testing.T) stage.Store) {
	stores := []stage.Store{open(t), open(t)}
	var made atomic.Int32
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			st, fx, err := stage.New(stage.Request{ID: "same", UserID: fmt.Sprint("u", w), Query: "q", At: now()})
			if err != nil {
				t.Error(err)
				return
			}
			switch err := stores[w%2].Create(t.Context(), st, fx); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, stage.Is(stage.CodeExists)):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%d of 8 make the task", made.Load())
	}
}

// timers checks that deadlines and jobs are listed at their time.
func timers(t *testing.T, open func(*testing.T) stage.Store) {
	s := open(t)
	ctx := t.Context()
	at := now()
	rules := stage.Rules{StageTimeout: 10 * time.Second, TaskTimeout: time.Minute, Delegated: []stage.Stage{stage.ExecutorReasoning}}
	Make(t, s, stage.Request{ID: "idle", At: at, Rules: rules})
	st := Make(t, s, stage.Request{ID: "busy", At: at.Add(time.Second), Rules: rules, Template: "quick_answer"})
	st = Apply(t, s, "busy", Next(st, at.Add(2*time.Second)))
	due := func(after time.Duration, want ...string) {
		t.Helper()
		got, err := s.Due(ctx, at.Add(after), 10)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %v %v are due, %v, want %v", after, got, err, want)
		}
	}
	unsent := func(after time.Duration, want ...stage.Job) {
		t.Helper()
		got, err := s.Unsent(ctx, at.Add(after), 10)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %v %v are to be sent, %v, want %v", after, got, err, want)
		}
	}
	due(11 * time.Second)
	due(12*time.Second, "busy")
	due(time.Minute, "busy", "idle")
	idle, busy := stage.Job{TaskID: "idle", Stage: stage.IntentAnalysis, Run: 1}, stage.Job{TaskID: "busy", Stage: stage.IntentAnalysis, Run: 1}
	unsent(stage.ResendAfter - time.Second)
	unsent(stage.ResendAfter, idle)
	unsent(stage.ResendAfter+2*time.Second, idle, busy)
	if err := s.Postpone(ctx, at.Add(30*time.Second), idle); err != nil {
		t.Fatal(err)
	}
	unsent(stage.ResendAfter+2*time.Second, busy)
	unsent(31*time.Second, busy, idle)
	st = Apply(t, s, "busy", Next(st, at.Add(5*time.Second)))
	// Postponing the previous job, which has ended, changes nothing.
	if err := s.Postpone(ctx, at.Add(time.Hour), busy); err != nil {
		t.Fatal(err)
	}
	busy.Stage, busy.Run = stage.EmbeddingLookup, 2
	unsent(stage.ResendAfter+5*time.Second, busy)
	if got, err := s.Unsent(ctx, at.Add(time.Hour), 1); err != nil || len(got) != 1 {
		t.Errorf("a limit of 1 gives %v, %v", got, err)
	}
	// A delegated stage has no job.
	for range 2 {
		st = Apply(t, s, "busy", Next(st, at.Add(6*time.Second)))
	}
	if st.Status != stage.Waiting {
		t.Fatalf("the task is %s", st.Status)
	}
	unsent(time.Hour, idle)
	due(time.Hour, "idle", "busy")
	Apply(t, s, "busy", stage.Event{Kind: stage.Abort, At: at.Add(7 * time.Second)})
	Apply(t, s, "idle", stage.Event{Kind: stage.Tick, At: at.Add(time.Minute)})
	due(time.Hour)
	unsent(time.Hour)
}

// lists checks that tasks are listed newest first and filtered by user and status.
func lists(t *testing.T, open func(*testing.T) stage.Store) {
	s := open(t)
	at := now()
	for i := range 10 {
		Make(t, s, stage.Request{ID: fmt.Sprint("t", i), UserID: fmt.Sprint("u", i%2), At: at.Add(time.Duration(i) * time.Second)})
	}
	Make(t, s, stage.Request{ID: "x", UserID: "u", At: at}) // a prefix of the others
	Apply(t, s, "t4", stage.Event{Kind: stage.Abort, At: at.Add(time.Minute)})
	for _, c := range []struct {
		q    stage.Query
		want string
	}{
		{stage.Query{}, "t9 t8 t7 t6 t5 t4 t3 t2 t1"},
		{stage.Query{UserID: "u0"}, "t8 t6 t4 t2 t0"},
		{stage.Query{UserID: "u"}, "x"},
		{stage.Query{UserID: "nobody"}, ""},
		{stage.Query{Status: stage.Aborted}, "t4"},
		{stage.Query{UserID: "u0", Status: stage.Waiting, Limit: 3}, "t8 t6 t2"},
	} {
		list, err := s.List(t.Context(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, st := range list {
			ids = append(ids, st.ID)
		}
		got := strings.Join(ids, " ")
		if c.q == (stage.Query{}) && len(ids) == 11 {
			got = strings.Join(ids[:9], " ") // t0 and x have the same time
		}
		if got != c.want {
			t.Errorf("%+v lists %q, want %q", c.q, got, c.want)
		}
	}
}

// cleans checks that an ended task is readable for a week and then deleted.
func cleans(t *testing.T, open func(*testing.T) stage.Store) {
	s := open(t)
	ctx := t.Context()
	at := now()
	Make(t, s, stage.Request{ID: "old", At: at})
	Make(t, s, stage.Request{ID: "open", At: at})
	old := Apply(t, s, "old", stage.Event{Kind: stage.Abort, At: at})
	clean := func(after, keep time.Duration, want int) {
		t.Helper()
		if n, err := s.Clean(ctx, at.Add(after), keep); err != nil || n != want {
			t.Errorf("after %v %d tasks go, %v, want %d", after, n, err, want)
		}
	}
	clean(10*time.Minute, stage.KeepArchive, 0)
	got, err := s.Load(ctx, "old")
	if err != nil {
		t.Fatal(err)
	}
	Same(t, "after its end", got, old)
	if _, _, err := s.Update(ctx, "old", Event(stage.Event{Kind: stage.Abort, At: at})); !errors.Is(err, stage.Is(stage.CodeTransition)) {
		t.Errorf("changing an ended task: %v", err)
	}
	st, fx, _ := stage.New(stage.Request{ID: "old", UserID: "u", Query: "q", At: at})
	if err := s.Create(ctx, st, fx); !errors.Is(err, stage.Is(stage.CodeExists)) {
		t.Errorf("making an ended task: %v", err)
	}
	clean(stage.KeepArchive, 2*stage.KeepArchive, 0)
	clean(stage.KeepArchive, 36_500*24*time.Hour, 0)
	clean(stage.KeepArchive/2, stage.KeepArchive/2, 1)
	if _, err := s.Load(ctx, "old"); !errors.Is(err, stage.Is(stage.CodeNotFound)) {
		t.Errorf("after its time: %v", err)
	}
	if _, err := s.Log(ctx, "old"); !errors.Is(err, stage.Is(stage.CodeNotFound)) {
		t.Errorf("its log, after its time: %v", err)
	}
	list, err := s.List(ctx, stage.Query{})
	if err != nil || len(list) != 1 || list[0].ID != "open" {
		t.Errorf("after its time %d tasks are listed, %v, want the open one", len(list), err)
	}
}

// random checks that the store behaves like a map under random events.
func random(t *testing.T, open func(*testing.T) stage.Store) {
	s := open(t)
	r := rand.New(rand.NewPCG(1, 2))
	want := map[string]*stage.State{}
	begin := now()
	for n := range 400 {
		at := begin.Add(time.Duration(n) * time.Second)
		id := fmt.Sprint("t", r.IntN(20))
		st := want[id]
		if st == nil {
			want[id] = Make(t, s, stage.Request{ID: id, UserID: fmt.Sprint("u", r.IntN(3)), At: at, Template: stage.Templates[r.IntN(len(stage.Templates))].Name})
			continue
		}
		e := Next(st, at)
		switch r.IntN(6) {
		case 0:
			e = stage.Event{Kind: stage.Failure, Stage: st.Current, At: at, Reason: "broke"}
		case 1:
			e = stage.Event{Kind: stage.Tick, At: at}
		}
		expected, _, wantErr := stage.Step(st, e)
		got, _, err := s.Update(t.Context(), id, Event(e))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("step %d: %v, want %v", n, err, wantErr)
		}
		if err == nil {
			Same(t, fmt.Sprint("step ", n), got, expected)
			want[id] = expected
		}
	}
	for id, w := range want {
		got, err := s.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		Same(t, id, got, w)
	}
	wantDue := map[string]bool{}
	horizon := begin.Add(time.Hour)
	for id, w := range want {
		if !w.Status.Final() {
			wantDue[id] = true
		}
	}
	due, err := s.Due(t.Context(), horizon, 1000)
	if err != nil || len(due) != len(wantDue) {
		t.Errorf("%d are due, %v, want %d", len(due), err, len(wantDue))
	}
	for _, id := range due {
		if !wantDue[id] {
			t.Errorf("%s is due, and has ended", id)
		}
	}
}
