package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
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

// tasks returns an embedded store, which needs no server.
func tasks(t testing.TB) stage.Store {
	file := kv.NewFile(filepath.Join(t.TempDir(), "tasks.db"), nil)
	t.Cleanup(func() { file.Close() })
	return embedded.Open(file)
}

func open(t testing.TB, at string, of stage.Store) *Store {
	t.Helper()
	s, err := Open(t.Context(), at, of, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.pool.Close() })
	return s
}

// do runs a command.
func (s *Store) do(ctx context.Context, name string, args ...any) (reply any, err error) {
	err = s.with(ctx, func(c redis.Conn) (err error) {
		reply, err = c.Do(name, args...)
		return err
	})
	return reply, err
}

// copied returns the copy of a task, nil if there is none.
func copied(t *testing.T, s *Store, id string) *stage.State {
	t.Helper()
	text, err := redis.Bytes(s.do(t.Context(), "GET", taskKey(id)))
	if errors.Is(err, redis.ErrNil) {
		return nil
	}
	st := &stage.State{}
	bad := json.Unmarshal(text, st)
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	return st
}

// created creates a task.
func created(t *testing.T, s stage.Store, id string) *stage.State {
	t.Helper()
	st, err := stage.NewEngine(s, nil).Create(t.Context(), stage.Request{ID: id, UserID: "user-001", Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// advanced advances a task by one transition.
func advanced(t *testing.T, s stage.Store, st *stage.State) *stage.State {
	t.Helper()
	e := stage.Event{Kind: stage.Done, Stage: st.Current}
	switch {
	case st.Status == stage.Waiting:
		e.Kind, e.Stage = stage.Claim, ""
	case st.Current == stage.EmbeddingLookup:
		e.Result.Hits = []string{"doc:a.md#b"}
	case st.Current == stage.Moderation:
		e.Result.Confidence = new(1.0)
	case st.Current == stage.ResponsePackaging:
		e.Result.Response = &stage.Response{Answer: "a"}
	}
	st, err := stage.NewEngine(s, nil).Apply(t.Context(), st.ID, e)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// same compares a task with the one wanted, as JSON.
func same(t *testing.T, what string, got, want *stage.State) {
	t.Helper()
	g, _ := stage.Encode(got)
	w, _ := stage.Encode(want)
	if !bytes.Equal(g, w) {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

// TestKeys: the keys are those of the specification, with their times to live.
func TestKeys(t *testing.T) {
	s := open(t, server(t), tasks(t))
	began := time.Now()
	st := created(t, s, "abc")
	if ttl := number(t, s, "TTL", "task:abc"); ttl < 1190 || ttl > 1200 {
		t.Errorf("the copy of an active task lives for %d s, want its 600 s and 600 s more", ttl)
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
		st = advanced(t, s, st)
		same(t, "the copy", copied(t, s, "abc"), st)
	}
	keys, err := redis.Strings(s.do(t.Context(), "KEYS", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for key, most := range map[string]time.Duration{
		"task:abc": keepActive, "task:abc:context": keepActive, "task:abc:progress": keepActive, "task:abc:vector_hits": keepActive,
		"task:abc:react_steps": keepActive, "response:task:abc": keepActive, "user:user-001:tasks": keepUser,
	} {
		if ttl := time.Duration(number(t, s, "TTL", key)) * time.Second; !slices.Contains(keys, key) || ttl > most || ttl < most-time.Since(began)-time.Second {
			t.Errorf("%s lives for %v, want %v", key, ttl, most)
		}
	}
	if n := number(t, s, "XLEN", "task:abc:progress"); n != 11 {
		t.Errorf("%d transitions are in the stream, want 11", n)
	}
	if m, ok := sub.ReceiveWithTimeout(0).(redis.Message); !ok || !strings.Contains(string(m.Data), `"task_id":"abc"`) {
		t.Errorf("the message of the response is %v", m)
	}
}

// TestRenewed: Clean renews the copies that are missing or old, such as after a restart of
// Redis without data, except for tasks that ended long ago.
func TestRenewed(t *testing.T) {
	of := tasks(t)
	s := open(t, server(t), of)
	want := map[string]*stage.State{}
	for i := range 20 {
		id := fmt.Sprint("t", i)
		st := created(t, s, id)
		for range i % 12 {
			if !st.Status.Final() {
				st = advanced(t, of, st) // without a copy
			}
		}
		want[id] = st
	}
	for range 2 {
		if _, err := s.Clean(t.Context(), time.Now(), stage.KeepArchive); err != nil {
			t.Fatal(err)
		}
		for id, st := range want {
			same(t, id, copied(t, s, id), st)
		}
		flush(t, s)
	}
	if _, err := s.Clean(t.Context(), time.Now().Add(keepActive), stage.KeepArchive); err != nil {
		t.Fatal(err)
	}
	for id, st := range want {
		if has := copied(t, s, id) != nil; has == st.Status.Final() {
			t.Errorf("long after, %s is %s and has a copy: %v", id, st.Status, has)
		}
	}
}

// TestLateCopy: a transition that is copied after a later one is published, and does not
// replace the newer state.
func TestLateCopy(t *testing.T) {
	of := tasks(t)
	s := open(t, server(t), of)
	old := created(t, s, "abc")
	now := advanced(t, s, old)
	s.copy(t.Context(), old, &stage.Entry{TaskID: "abc", Version: 1})
	same(t, "after a late copy", copied(t, s, "abc"), now)
	if n := number(t, s, "XLEN", "task:abc:progress"); n != 3 {
		t.Errorf("%d transitions are in the stream, want 3", n)
	}
}

// TestRedisDown: tasks continue without Redis.
func TestRedisDown(t *testing.T) {
	s := open(t, server(t), tasks(t))
	st := created(t, s, "abc")
	s.pool.Close()
	for !st.Status.Final() {
		st = advanced(t, s, st)
	}
	if _, err := s.Clean(t.Context(), time.Now(), stage.KeepArchive); err != nil {
		t.Error(err)
	}
	got, err := s.Load(t.Context(), "abc")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "without Redis", got, st)
}

// fake is a connection to a server without keys.
type fake struct{ redis.Conn }

func (fake) Do(name string, args ...any) (any, error) {
	switch name {
	case "MGET":
		return make([]any, len(args)), nil
	case "EXEC":
		return []any{}, nil
	}
	return nil, nil
}

func (fake) Send(string, ...any) error { return nil }
func (fake) Err() error                { return nil }
func (fake) Close() error              { return nil }

// TestPause: after a failed copy, transitions do not wait for Redis, and Clean ends the pause.
func TestPause(t *testing.T) {
	dials, down := 0, errors.New("i/o timeout")
	s := &Store{Store: tasks(t), log: slog.New(slog.DiscardHandler), pool: &redis.Pool{Dial: func() (redis.Conn, error) {
		dials++
		return fake{}, down
	}}}
	st := created(t, s, "abc")
	for range 4 {
		st = advanced(t, s, st)
	}
	if dials != 1 {
		t.Errorf("%d connections for 5 transitions, want 1", dials)
	}
	down = nil
	if _, err := s.Clean(t.Context(), time.Now(), stage.KeepArchive); err != nil {
		t.Fatal(err)
	}
	renewed := dials
	if advanced(t, s, st); renewed != 3 || dials != 4 {
		t.Errorf("%d connections after Clean and %d after a transition, want 3 and 4", renewed, dials)
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
