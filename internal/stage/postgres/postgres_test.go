package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/internal/stage"
	"cairn/internal/stage/stagetest"
)

// database makes a database of its own on the server of CAIRN_TEST_POSTGRES,
// and returns its address.
func database(t testing.TB) string {
	t.Helper()
	at := os.Getenv("CAIRN_TEST_POSTGRES")
	if at == "" {
		t.Skip("set CAIRN_TEST_POSTGRES to the address of a server that may be written to")
	}
	name := fmt.Sprintf("cairn_test_%d", time.Now().UnixNano())
	c, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := c.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		if err := errors.Join(err, c.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

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
			at[t.Name()] = database(t)
		}
		return open(t, at[t.Name()])
	})
}

// TestRecord: records come late, twice and out of order, and the newest state stays.
func TestRecord(t *testing.T) {
	s := open(t, database(t))
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
	for _, i := range []int{3, 0, 3, 6, 1, 5, 2, 4, 0} {
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
