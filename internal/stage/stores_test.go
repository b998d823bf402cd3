package stage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/internal/base/testutil/pgtest"
	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
	"cairn/internal/stage/postgres"
	"cairn/internal/stage/redis"
	"cairn/internal/store/kv"
)

// TestStores runs the suite on each kind of store. open returns two stores of the same empty
// data, as if two processes opened it. Times are close to the present, because servers have
// their own clocks.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(*testing.T) [2]stage.Store{"embedded": openEmbedded, "postgres": openPostgres, "redis": openRedis} {
		t.Run(name, func(t *testing.T) {
			t.Run("Random", func(t *testing.T) { random(t, open(t)) })
			t.Run("Contends", func(t *testing.T) { contends(t, open(t)) })
			t.Run("Cancelled", func(t *testing.T) { cancelled(t, open(t)[0]) })
		})
	}
}

func openEmbedded(t *testing.T) [2]stage.Store {
	file := kv.NewFile(filepath.Join(t.TempDir(), "stage.db"), nil)
	t.Cleanup(func() { file.Close() })
	return [2]stage.Store{embedded.Open(file), embedded.Open(file)}
}

func openPostgres(t *testing.T) (pair [2]stage.Store) {
	at := pgtest.Database(t)
	for i := range pair {
		s, err := postgres.Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		pair[i] = s
	}
	return pair
}

// openRedis copies tasks to the server of CAIRN_TEST_REDIS.
func openRedis(t *testing.T) [2]stage.Store {
	at := os.Getenv("CAIRN_TEST_REDIS")
	if at == "" {
		t.Skip("set CAIRN_TEST_REDIS to the address of a server whose databases may be emptied")
	}
	pair := openEmbedded(t)
	for i, of := range pair {
		s, err := redis.Open(t.Context(), at, of, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		pair[i] = s
	}
	return pair
}

// now returns the start time of a test's tasks. Servers expire keys by their own clock, so it
// is the present.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// apply returns the Change that applies an event.
func apply(id string, e stage.Event) stage.Change {
	return func(s *stage.State) (*stage.State, *stage.Effects, error) {
		if s == nil {
			return nil, nil, stage.NotFound(id)
		}
		return stage.Step(s, e)
	}
}

// create stores a new task.
func create(ctx context.Context, s stage.Store, st *stage.State, fx *stage.Effects) error {
	_, _, err := s.Update(ctx, st.ID, func(old *stage.State) (*stage.State, *stage.Effects, error) {
		if old != nil {
			return nil, nil, stage.Exists(st.ID)
		}
		return st, fx, nil
	})
	return err
}

// next returns an event that advances a task.
func next(s *stage.State, at time.Time) stage.Event {
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

// equal compares two states as JSON.
func equal(t testing.TB, what string, got, want *stage.State) {
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

// model is the obvious store.
type model struct {
	states map[string]*stage.State
	log    map[string][]stage.Entry
	resend map[stage.Job]time.Time // the current jobs
}

func (m *model) put(st *stage.State, fx *stage.Effects) {
	if old := m.states[st.ID]; old != nil {
		if j, ok := old.Job(); ok {
			delete(m.resend, j)
		}
	}
	m.states[st.ID], m.log[st.ID] = st, append(m.log[st.ID], fx.Entry)
	if j, ok := st.Job(); ok {
		m.resend[j] = st.UpdatedAt.Add(stage.ResendAfter)
	}
}

// clean deletes the tasks that ended at least keep before now.
func (m *model) clean(now time.Time, keep time.Duration) (n int) {
	for id, st := range m.states {
		if st.Status.Final() && !st.UpdatedAt.Add(keep).After(now) {
			delete(m.states, id)
			delete(m.log, id)
			n++
		}
	}
	return n
}

// until returns the keys whose time is not after now, the earliest first.
func until[K comparable](times map[K]time.Time, now time.Time, limit int) []K {
	keys := slices.SortedFunc(maps.Keys(times), func(a, b K) int { return times[a].Compare(times[b]) })
	keys = slices.DeleteFunc(keys, func(k K) bool { return times[k].After(now) })
	return keys[:min(limit, len(keys))]
}

func (m *model) deadlines() map[string]time.Time {
	times := map[string]time.Time{}
	for id, st := range m.states {
		if !st.Status.Final() {
			times[id] = st.Deadline()
		}
	}
	return times
}

func (m *model) list(q stage.Query) (ids []string) {
	all := slices.SortedFunc(maps.Values(m.states), func(a, b *stage.State) int { return b.StartedAt.Compare(a.StartedAt) })
	for _, st := range all {
		if q.Matches(st) && len(ids) < q.Bound() {
			ids = append(ids, st.ID)
		}
	}
	return ids
}

// check compares a store with the model at a time, for a task and a query.
func (m *model) check(t *testing.T, s stage.Store, at time.Time, id string, q stage.Query) {
	t.Helper()
	ctx := t.Context()
	got, err := s.Load(ctx, id)
	log, logErr := s.Log(ctx, id)
	if want := m.states[id]; want == nil {
		if !errors.Is(err, stage.Is(stage.CodeNotFound)) || !errors.Is(logErr, stage.Is(stage.CodeNotFound)) {
			t.Fatalf("the unknown task %s: %v, its log: %v", id, err, logErr)
		}
	} else if err != nil || logErr != nil {
		t.Fatal(err, logErr)
	} else {
		equal(t, id, got, want)
	}
	same(t, "the log of "+id, log, m.log[id])
	due, err := s.Due(ctx, at, q.Bound())
	same(t, "due", due, until(m.deadlines(), at, q.Bound()), err)
	unsent, err := s.Unsent(ctx, at, q.Bound())
	same(t, "unsent", unsent, until(m.resend, at, q.Bound()), err)
	list, err := s.List(ctx, q)
	var ids []string
	for _, st := range list {
		ids = append(ids, st.ID)
	}
	same(t, fmt.Sprintf("the list of %+v", q), ids, m.list(q), err)
}

// same compares two lists.
func same[T any](t *testing.T, what string, got, want []T, err ...error) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || errors.Join(err...) != nil {
		t.Fatalf("%s (-want +got): %v\n%s", what, errors.Join(err...), diff)
	}
}

// event returns a random event of a task, which may not fit its state.
func event(r *rand.Rand, st *stage.State, at time.Time) stage.Event {
	e := next(st, at)
	switch r.IntN(10) {
	case 0:
		e = stage.Event{Kind: stage.Failure, Stage: st.Current, At: at, Reason: "broke"}
	case 1:
		e = stage.Event{Kind: stage.Tick, At: at}
	case 2:
		e = stage.Event{Kind: stage.Abort, At: at, Reason: "enough <&>"}
	case 3:
		e.ID = "claim:1" // applied before, unless it is the first
	case 4:
		e = stage.Event{Kind: stage.Done, Stage: stage.Moderation, At: at}
	}
	return e
}

// random checks that two stores of the same data behave like the model under random events.
// No two times that a store compares are equal.
func random(t *testing.T, stores [2]stage.Store) {
	r := rand.New(rand.NewPCG(1, 2))
	m := &model{map[string]*stage.State{}, map[string][]stage.Entry{}, map[stage.Job]time.Time{}}
	begin := now()
	user := func(n int) string { return []string{"", "u", "u0", "u1"}[r.IntN(n)] }
	for n := range 500 {
		at := begin.Add(time.Duration(n) * 1009 * time.Millisecond)
		id, s, other := fmt.Sprint("t", r.IntN(25)), stores[n%2], stores[1-n%2]
		st := m.states[id]
		switch r.IntN(8) {
		case 0:
			rules := stage.Rules{Delegated: [][]stage.Stage{nil, {stage.ExecutorReasoning}}[r.IntN(2)], TaskTimeout: 100 * time.Second, StageTimeout: 30 * time.Second}
			made, fx, err := stage.New(stage.Request{ID: id, UserID: "u" + user(4), Query: "q", At: at, Rules: rules, Template: stage.Templates[r.IntN(len(stage.Templates))].Name})
			if err != nil {
				t.Fatal(err)
			}
			if err = create(t.Context(), s, made, fx); err == nil && st == nil {
				m.put(made, fx)
			} else if st == nil || !errors.Is(err, stage.Is(stage.CodeExists)) {
				t.Fatalf("step %d: creating %s: %v", n, id, err)
			}
		case 1:
			jobs := []stage.Job{{TaskID: id, Stage: stage.IntentAnalysis, Run: 1}} // may have ended
			if current := until(m.resend, at.Add(time.Hour), 100); len(current) > 0 {
				jobs = append(jobs, current[r.IntN(len(current))])
			}
			for i, j := range jobs {
				later := at.Add(time.Duration(20+i) * time.Second)
				if err := s.Postpone(t.Context(), later, j); err != nil {
					t.Fatal(err)
				}
				if _, ok := m.resend[j]; ok {
					m.resend[j] = later
				}
			}
		case 2:
			if st != nil && st.Status.Final() {
				keep := at.Sub(st.UpdatedAt) + time.Duration(r.IntN(2))*time.Millisecond // due now, or soon
				removed, err := s.Clean(t.Context(), at, keep)
				if want := m.clean(at, keep); err != nil || removed != want {
					t.Fatalf("step %d: Clean removes %d, %v, want %d", n, removed, err, want)
				}
			}
		default:
			e := stage.Event{Kind: stage.Abort, At: at}
			next, fx, want := (*stage.State)(nil), (*stage.Effects)(nil), stage.NotFound(id)
			if st != nil {
				e = event(r, st, at)
				next, fx, want = stage.Step(st, e)
			}
			got, _, err := s.Update(t.Context(), id, apply(id, e))
			if fmt.Sprint(err) != fmt.Sprint(want) || (got == nil) != (next == nil) {
				t.Fatalf("step %d: %v, want %v", n, err, want)
			}
			if err == nil {
				equal(t, fmt.Sprint("step ", n), got, next)
				m.put(next, fx)
			}
		}
		statuses := []stage.Status{"", stage.Waiting, stage.InProgress, stage.Complete, stage.Failed, stage.Aborted}
		m.check(t, other, at.Add(time.Duration(r.IntN(150))*time.Second), id, stage.Query{UserID: user(4), Status: statuses[r.IntN(len(statuses))], Limit: r.IntN(8)})
	}
	if len(m.states) < 10 {
		t.Errorf("%d tasks are left", len(m.states))
	}
}

// contends checks that only one of several concurrent creations with the same id succeeds,
// and that only one of many results for the same run counts.
func contends(t *testing.T, stores [2]stage.Store) {
	one := func(what string, call func(w int, s stage.Store) error) {
		t.Helper()
		var counted atomic.Int32
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				var refused *stage.Error
				switch err := call(w, stores[w%2]); {
				case err == nil:
					counted.Add(1)
				case !errors.As(err, &refused) || refused.Code == stage.CodeUnavailable:
					t.Errorf("worker %d: %v", w, err)
				}
			})
		}
		wg.Wait()
		if counted.Load() != 1 {
			t.Fatalf("%d of 8 %s", counted.Load(), what)
		}
	}
	one("make the task", func(w int, s stage.Store) error {
		st, fx, err := stage.New(stage.Request{ID: "a", UserID: fmt.Sprint("u", w), Query: "q", At: now()})
		if err != nil {
			return err
		}
		return create(t.Context(), s, st, fx)
	})
	for {
		st, err := stores[1].Load(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if st.Status.Final() {
			break
		}
		one("advance the task at "+string(st.Current), func(w int, s stage.Store) error {
			e := next(st, now())
			e.Worker = fmt.Sprint("w", w)
			_, _, err := s.Update(t.Context(), "a", apply("a", e))
			return err
		})
	}
	if entries, err := stores[0].Log(t.Context(), "a"); err != nil || len(entries) != 11 {
		t.Errorf("the log has %d entries, %v, want 11", len(entries), err)
	}
}

// cancelled checks that a change under a cancelled context is not stored.
func cancelled(t *testing.T, s stage.Store) {
	st, fx, err := stage.New(stage.Request{ID: "a", UserID: "u", Query: "q", At: now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := create(t.Context(), s, st, fx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Update(ctx, "a", apply("a", next(st, now()))); err == nil {
		t.Error("a change under a cancelled context is stored")
	}
	got, err := s.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "after the refusal", got, st)
}
