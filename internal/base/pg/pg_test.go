package pg

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil/pgtest"
)

// TestValues sends values of every type to a server and reads them back.
func TestValues(t *testing.T) {
	p, err := Open(pgtest.Database(t)+"?pool_max_conns=1", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	type values struct {
		S, First, Last string
		N              int
		N64            int64
		U              uint64
		B              bool
		Bytes          []byte
		Key            []byte
		Null           []byte
		Time           int64
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.FixedZone("", 3600))
	want := values{`a"\,{}'`, `x"\`, "ä,\n", 7, -8, 9, true, []byte("\x00\xff\\"), []byte(`"k`), nil, at.UnixMicro()}
	var got values
	err = p.With(t.Context(), func(c *Conn) error {
		return c.Query(t.Context(), func(r Row) error {
			return r.Scan(&got.S, &got.First, &got.Last, &got.N, &got.N64, &got.U, &got.B, &got.Bytes, &got.Key, &got.Null, &got.Time)
		}, `SELECT $1::text, ($2::text[])[1], ($2::text[])[2], $3::int, $4::bigint, $5::bigint, $6::bool, $7::bytea, ($8::bytea[])[2], $9::bytea,
(extract(epoch FROM $10::timestamptz) * 1000000)::bigint`,
			want.S, []string{want.First, want.Last}, want.N, want.N64, want.U, want.B, want.Bytes, [][]byte{{1}, want.Key}, nil, at)
	})
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v (-want +got)\n%s", err, cmp.Diff(want, got))
	}
}

// TestFailures checks that a statement that fails changes nothing, and that the only
// connection of the pool is usable afterwards.
func TestFailures(t *testing.T) {
	p, err := Open(pgtest.Database(t)+"?pool_max_conns=1", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.CreateTables(t.Context(), 1, "CREATE TABLE a (n int); CREATE TABLE b (n int);"); err != nil {
		t.Fatal(err)
	}
	one := Statement{"INSERT INTO a VALUES ($1)", []any{1}}
	for name, fn := range map[string]func(*Conn) error{
		"an error in a batch": func(c *Conn) error {
			_, err := c.Exec(t.Context(), one, Statement{"INSERT INTO none VALUES (1)", nil})
			return err
		},
		"a value of another type": func(c *Conn) error {
			_, err := c.Exec(t.Context(), one, Statement{"INSERT INTO a VALUES ($1)", []any{1.5}})
			return err
		},
		"too few variables": func(c *Conn) error {
			if _, err := c.Exec(t.Context(), one); err != nil {
				return err
			}
			return c.Query(t.Context(), func(r Row) error { return r.Scan() }, "SELECT n FROM a")
		},
	} {
		if err := p.Begin(t.Context(), fn); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var n int
	if err := p.With(t.Context(), func(c *Conn) error {
		return c.Query(t.Context(), func(r Row) error { return r.Scan(&n) }, "SELECT count(*) FROM a")
	}); err != nil || n != 0 {
		t.Errorf("%d rows, %v, want none", n, err)
	}
}

func TestAddress(t *testing.T) {
	for _, bad := range []string{"postgres://ann:secret@[/", "postgres://ann:secret@h/d?pool_max_conns=0"} {
		if _, err := Open(bad, time.Second); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%s) = %v", bad, err)
		}
	}
}
