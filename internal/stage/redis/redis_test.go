package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
	"cairn/internal/stage/stagetest"
	"cairn/internal/store/kv"
)

// numbers are the databases of the server that tests take in turn.
var numbers atomic.Int32

// server returns the address of an empty database of CAIRN_TEST_REDIS.
func server(t testing.TB) string {
	t.Helper()
	at := os.Getenv("CAIRN_TEST_REDIS")
	if at == "" {
		t.Skip("set CAIRN_TEST_REDIS to the address of a server whose databases may be emptied")
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = fmt.Sprint("/", numbers.Add(1)%16)
	c, err := redis.DialURL(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do("FLUSHDB"); err != nil {
		t.Fatal(err)
	}
	return u.String()
}

// number returns the integer reply to a command.
func number(t *testing.T, s *Store, name string, args ...any) int {
	t.Helper()
	n, err := redis.Int(s.do(t.Context(), name, args...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func flush(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.do(t.Context(), "FLUSHDB"); err != nil {
		t.Fatal(err)
	}
}

// archive is an embedded store, which needs no server, as a stage.Archive.
type archive struct {
	*embedded.Store
	down atomic.Bool
	// held is what the next Record waits for, if anything.
	held atomic.Pointer[hold]
}

// hold delays the next record on its way to the archive.
type hold struct{ begun, release chan struct{} }

func (a *archive) Record(ctx context.Context, all ...stage.Record) error {
	if h := a.held.Swap(nil); h != nil {
		close(h.begun)
		<-h.release
	}
	if a.down.Load() {
		return stage.Unavailable("the archive", errors.New("it is down"))
	}
	for _, r := range all {
		err := a.Create(ctx, r.State, &stage.Effects{Entry: r.Entry})
		if errors.Is(err, stage.Is(stage.CodeExists)) {
			_, _, err = a.Update(ctx, r.State.ID, func(old *stage.State) (*stage.State, *stage.Effects, error) {
				o, n := old.Machine, r.State.Machine
				switch c := cmp.Or(cmp.Compare(o.Generation, n.Generation), cmp.Compare(o.Version, n.Version)); {
				case c < 0:
					return r.State, &stage.Effects{Entry: r.Entry}, nil
				case o.Generation == n.Generation: // late: only its entry is missing
					return old, &stage.Effects{Entry: r.Entry}, nil
				}
				return nil, nil, errLate
			})
		}
		if err != nil && !errors.Is(err, errLate) {
			return err
		}
	}
	return nil
}

var errLate = errors.New("the record is of an earlier generation")

// Resume implements stage.Archive.
func (a *archive) Resume(ctx context.Context, at time.Time, ids ...string) ([]*stage.State, error) {
	list := []*stage.State{}
	for _, id := range ids {
		old, err := a.Load(ctx, id)
		if err != nil || old.Status.Final() {
			continue
		}
		st, _, err := a.Update(ctx, id, func(old *stage.State) (*stage.State, *stage.Effects, error) {
			st, fx := stage.Restore(old, at)
			return st, fx, nil
		})
		if err != nil {
			return nil, err
		}
		list = append(list, st)
	}
	return list, nil
}

// Unfinished implements stage.Archive.
func (a *archive) Unfinished(ctx context.Context, after string, limit int) ([]*stage.State, error) {
	all, err := a.List(ctx, stage.Query{Limit: 1000})
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(all, func(st *stage.State) bool { return st.Status.Final() || st.ID <= after })
	slices.SortFunc(list, func(a, b *stage.State) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(limit, len(list))], nil
}

func (a *archive) Close() error { return nil } // shared by the stores of a test

func newArchive(t testing.TB) *archive {
	db, err := kv.Open(filepath.Join(t.TempDir(), "archive.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &archive{Store: embedded.Open(db, nil)}
}

// open opens a store that does nothing in the background.
func open(t testing.TB, at string, a stage.Archive) *Store { return flushing(t, at, a, time.Hour) }

func flushing(t testing.TB, at string, a stage.Archive, every time.Duration) *Store {
	t.Helper()
	s, err := Open(t.Context(), at, a, &Options{Flush: every})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	type pair struct {
		at string
		a  *archive
	}
	made := map[string]pair{}
	stagetest.Store(t, func(t *testing.T) stage.Store {
		p, ok := made[t.Name()]
		if !ok {
			p = pair{server(t), newArchive(t)}
			made[t.Name()] = p
		}
		return flushing(t, p.at, p.a, 10*time.Millisecond)
	})
}

// TestKeys: the keys are those of the specification, with their times to live.
func TestKeys(t *testing.T) {
	s := open(t, server(t), newArchive(t))
	began := time.Now()
	st := stagetest.Make(t, s, stage.Request{ID: "abc", At: began})
	if ttl := number(t, s, "TTL", "task:abc"); ttl != -1 {
		t.Errorf("an active task lives for %d s, want without end", ttl)
	}
	c := s.pool.Get()
	defer c.Close()
	sub := redis.PubSubConn{Conn: c}
	if err := sub.Subscribe("ai:response:ready"); err != nil {
		t.Fatal(err)
	}
	if got, ok := sub.Receive().(redis.Subscription); !ok {
		t.Fatal(got)
	}
	for !st.Status.Final() {
		st = stagetest.Apply(t, s, "abc", stagetest.Next(st, time.Now()))
	}
	keys, err := redis.Strings(s.do(t.Context(), "KEYS", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for key, most := range map[string]time.Duration{
		"task:abc": stage.KeepActive, "task:abc:context": stage.KeepActive, "task:abc:progress": stage.KeepActive, "task:abc:vector_hits": stage.KeepActive,
		"task:abc:react_steps": stage.KeepActive, "response:task:abc": stage.KeepActive, "user:user-001:tasks": keepUser,
	} {
		if ttl := time.Duration(number(t, s, "TTL", key)) * time.Second; !slices.Contains(keys, key) || ttl > most || ttl < most-time.Since(began)-time.Second {
			t.Errorf("%s lives for %v, want %v", key, ttl, most)
		}
	}
	if m, ok := sub.ReceiveWithTimeout(0).(redis.Message); !ok || !strings.Contains(string(m.Data), `"task_id":"abc"`) {
		t.Errorf("the message of the response is %v", m)
	}
}

// TestRebuilt: a Redis that restarts without data gets all unfinished tasks and no others.
func TestRebuilt(t *testing.T) {
	at, a := server(t), newArchive(t)
	s := open(t, at, a)
	want := map[string]*stage.State{}
	for i := range 20 {
		id := fmt.Sprint("t", i)
		st := stagetest.Make(t, s, stage.Request{ID: id, At: time.Now()})
		for range i % 7 {
			st = stagetest.Apply(t, s, id, stagetest.Next(st, time.Now()))
		}
		want[id] = st
	}
	flush(t, s)
	other := open(t, at, a)
	if err := other.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, w := range want {
		got, err := other.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !w.Status.Final() {
			w, _ = stage.Restore(w, got.UpdatedAt)
		}
		stagetest.Same(t, id, got, w)
		if w.Status.Final() {
			continue
		}
		next, _, err := s.Update(t.Context(), id, stagetest.Event(stagetest.Next(w, time.Now())))
		if err != nil || next.Machine.Version != w.Machine.Version+1 {
			t.Errorf("%s goes on: %v", id, err)
		}
	}
	unfinished := 0
	for _, w := range want {
		if !w.Status.Final() {
			unfinished++
		}
	}
	if n := number(t, s, "ZCARD", keyDue) + number(t, s, "ZCARD", keyEnded); n != unfinished {
		t.Errorf("%d tasks are in Redis, want the %d that had not ended", n, unfinished)
	}
}

// delayed delays the record of do on its way to the archive, empties Redis, calls then, and
// releases the record.
func delayed(t *testing.T, s *Store, a *archive, do, then func()) {
	t.Helper()
	h := &hold{make(chan struct{}), make(chan struct{})}
	a.held.Store(h)
	var doing sync.WaitGroup
	doing.Go(do)
	<-h.begun
	flush(t, s)
	then()
	close(h.release)
	doing.Wait()
}

// TestLateRecord: records of a lost copy that reach the archive after Redis was filled again
// do not mix with new ones.
func TestLateRecord(t *testing.T) {
	at, a := server(t), newArchive(t)
	s, other := open(t, at, a), open(t, at, a)
	st := stagetest.Make(t, s, stage.Request{ID: "abc", At: time.Now()})
	lost := stagetest.Next(st, time.Now())
	lost.Worker = "lost"
	delayed(t, s, a, func() { stagetest.Apply(t, s, "abc", lost) }, func() {
		found := stagetest.Next(st, time.Now())
		found.Worker = "found"
		st = stagetest.Apply(t, other, "abc", found)
	})
	got, err := a.Load(t.Context(), "abc")
	if err != nil {
		t.Fatal(err)
	}
	stagetest.Same(t, "in the archive", got, st)
	entries, err := s.Log(t.Context(), "abc")
	var line []string
	for _, e := range entries {
		line = append(line, strings.TrimSpace(string(e.Action)+" "+e.Worker))
	}
	if got := strings.Join(line, ", "); err != nil || got != "create, restore, start found" {
		t.Errorf("the log says %s, %v", got, err)
	}
}

// TestLateCreation: a task that reaches the archive after Redis was filled is restored by the
// next Clean.
func TestLateCreation(t *testing.T) {
	at, a := server(t), newArchive(t)
	s, other := open(t, at, a), open(t, at, a)
	delayed(t, s, a, func() { stagetest.Make(t, s, stage.Request{ID: "late", At: time.Now()}) }, func() {
		if err := other.ensure(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if ids, err := s.Due(t.Context(), time.Now().Add(time.Hour), 10); err != nil || len(ids) != 0 {
		t.Fatalf("%v are due, %v", ids, err)
	}
	if _, err := other.Clean(t.Context(), time.Now(), stage.KeepArchive); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.Due(t.Context(), time.Now().Add(time.Hour), 10); err != nil || !slices.Equal(ids, []string{"late"}) {
		t.Errorf("%v are due, %v, want the late one", ids, err)
	}
}

// TestArchiveDown: tasks continue without the archive, which receives all records later.
func TestArchiveDown(t *testing.T) {
	a := newArchive(t)
	s := open(t, server(t), a)
	st := stagetest.Make(t, s, stage.Request{ID: "abc", At: time.Now()})
	a.down.Store(true)
	for !st.Status.Final() {
		st = stagetest.Apply(t, s, "abc", stagetest.Next(st, time.Now()))
	}
	a.down.Store(false)
	entries, err := s.Log(t.Context(), "abc")
	if err != nil || len(entries) != 11 {
		t.Errorf("the log has %d entries, %v, want 11", len(entries), err)
	}
	got, err := a.Load(t.Context(), "abc")
	if err != nil {
		t.Fatal(err)
	}
	stagetest.Same(t, "in the archive", got, st)
	if n := number(t, s, "HLEN", keyOutbox); n != 0 {
		t.Errorf("%d records are left in the outbox", n)
	}
}

// TestUnreachable: the error names host and port, and no password.
func TestUnreachable(t *testing.T) {
	for _, at := range []string{"redis://:geheim@127.0.0.1:1/0", "redis://:geheim@127.0.0.1:1/x/y", "nonsense://geheim"} {
		_, err := Open(t.Context(), at, nil, nil)
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
		if strings.HasSuffix(at, "/0") && (!errors.Is(err, stage.Is(stage.CodeUnavailable)) || !strings.Contains(err.Error(), "127.0.0.1:1")) {
			t.Errorf("%s: %v, want it to name the server", at, err)
		}
	}
}
