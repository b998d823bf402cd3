package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/base/testutil/pgtest"
	"cairn/internal/stage"
	"cairn/internal/stage/stagetest"
)

func open(t testing.TB, at string) *Store {
	t.Helper()
	s, err := Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	at := map[string]string{}
	stagetest.Store(t, func(t *testing.T) stage.Store {
		if at[t.Name()] == "" {
			at[t.Name()] = pgtest.Database(t)
		}
		return open(t, at[t.Name()])
	})
}

// TestRecord: the newest state wins over late, repeated and reordered records.
func TestRecord(t *testing.T) {
	s := open(t, pgtest.Database(t))
	st, fx, err := stage.New(stage.Request{ID: "a", UserID: "u", Query: "q", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	all := []stage.Record{{State: st, Entry: fx.Entry}}
	for !st.Status.Final() {
		if st, fx, err = stage.Step(st, stagetest.Next(st, time.Now())); err != nil {
			t.Fatal(err)
		}
		all = append(all, stage.Record{State: st, Entry: fx.Entry})
	}
	for _, i := range []int{3, 0, 3, 10, 1, 9, 5, 2, 7, 8, 4, 6, 0} {
		if err := s.Record(t.Context(), all[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	stagetest.Same(t, "recorded in any order", got, st)
	if entries, err := s.Log(t.Context(), "a"); err != nil || len(entries) != len(all) {
		t.Errorf("the log has %d entries, %v, want %d", len(entries), err, len(all))
	}
	if left, err := s.Unfinished(t.Context(), "", 10); err != nil || len(left) != 0 {
		t.Errorf("%d are unfinished, %v", len(left), err)
	}
}

// TestResume: after a task was restored, the archive ignores records of the
// earlier copy. It does not restore ended tasks.
func TestResume(t *testing.T) {
	s := open(t, pgtest.Database(t))
	ctx := t.Context()
	step := func(st *stage.State, worker string) stage.Record {
		e := stagetest.Next(st, time.Now())
		e.Worker = worker
		st, fx, err := stage.Step(st, e)
		if err != nil {
			t.Fatal(err)
		}
		return stage.Record{State: st, Entry: fx.Entry}
	}
	record := func(r stage.Record) {
		if err := s.Record(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	a, b := stagetest.Make(t, s, stage.Request{ID: "a", At: time.Now()}), stagetest.Make(t, s, stage.Request{ID: "b", At: time.Now()})
	stagetest.Apply(t, s, b.ID, stage.Event{Kind: stage.Abort, At: time.Now()})
	late := step(a, "lost")
	later := step(late.State, "lost")
	list, err := s.Resume(ctx, time.Now(), "a", "b", "nobody")
	if err != nil || len(list) != 1 || list[0].ID != "a" || list[0].Machine.Version != 2 || list[0].Machine.Generation != 1 {
		t.Fatalf("restored: %+v, %v", list, err)
	}
	record(late)
	found := step(list[0], "found")
	record(found)
	record(later)
	got, err := s.Load(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	stagetest.Same(t, "in the archive", got, found.State)
	entries, err := s.Log(ctx, "a")
	var lines []string
	for _, e := range entries {
		lines = append(lines, fmt.Sprint(e.Version, e.Action, e.Worker))
	}
	if got := strings.Join(lines, ", "); err != nil || got != "1create, 2restore, 3startfound" {
		t.Errorf("the log says %s, %v", got, err)
	}
}

// TestUnreachable: the error names host and port, and no password.
func TestUnreachable(t *testing.T) {
	for _, at := range []string{"postgres://ann:geheim@127.0.0.1:1/x", "postgres://ann:geheim@[::bad/x", "host=127.0.0.1 port=1 password=geheim user=ann"} {
		_, err := Open(t.Context(), at)
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
		if strings.Contains(at, ":1/") && (!errors.Is(err, stage.Is(stage.CodeUnavailable)) || !strings.Contains(err.Error(), "127.0.0.1:1")) {
			t.Errorf("%s: %v, want it to name the server", at, err)
		}
	}
}
