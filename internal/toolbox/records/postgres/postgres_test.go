package postgres

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/base/testutil/pgtest"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/records"
	"cairn/internal/toolbox/usage"
)

// open connects a server to a database.
func open(t testing.TB, at string) *DB {
	t.Helper()
	db, err := Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestAsInAFile makes the same random writes through two servers and to a file:
// both servers get the contents of the file, whole and from the last generation on.
func TestAsInAFile(t *testing.T) {
	at := pgtest.Database(t)
	db, err := kv.Open(filepath.Join(t.TempDir(), "records.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	file := records.NewFile(db, "a", "B")
	servers := []*Store{open(t, at).Store("s"), open(t, at).Store("s")}
	other := servers[0].db.Store("other")
	random := rand.New(rand.NewPCG(1, 2))
	known, followed := map[string][]byte{}, uint64(0) // a copy that follows the second server
	for step := range 60 {
		var list []records.Record
		for range random.IntN(4) {
			r := records.Record{Bucket: []string{"a", "B"}[random.IntN(2)], Key: fmt.Sprint("k\x00\xff", random.IntN(9))}
			if random.IntN(4) > 0 {
				r.Value = fmt.Append([]byte{}, step)
			}
			list = append(list, r)
		}
		write := func(records.Changes) ([]records.Record, error) { return slices.Clone(list), nil } // which Update may change
		want, err := file.Update(t.Context(), 0, write)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := servers[random.IntN(2)].Update(t.Context(), uint64(random.IntN(step+1)), write); err != nil || got != want {
			t.Fatalf("step %d: generation %d, %v, want %d", step, got, err, want)
		}
		all, err := file.Since(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range servers {
			if got, err := s.Since(t.Context(), 0); err != nil || !cmp.Equal(all.Records, got.Records) || got.Generation != all.Generation {
				t.Fatalf("step %d, server %d: %v, generation %d (-file +server)\n%s", step, i, err, got.Generation, cmp.Diff(all.Records, got.Records))
			}
		}
		servers[1].next = time.Time{} // as after an Age
		c, err := servers[1].Since(t.Context(), followed)
		if err != nil {
			t.Fatal(err)
		}
		if c.Whole {
			clear(known)
		}
		for _, r := range c.Records {
			known[r.Bucket+r.Key] = r.Value
		}
		followed = c.Generation
		for _, r := range all.Records {
			if string(known[r.Bucket+r.Key]) != string(r.Value) || len(known) != len(all.Records) {
				t.Fatalf("step %d: a copy that follows has %v, want %v", step, known, all.Records)
			}
		}
	}
	if c, err := other.Since(t.Context(), 0); err != nil || len(c.Records) > 0 {
		t.Errorf("another space has %v, %v", c.Records, err)
	}
}

func trace(intent string, tools ...string) usage.Trace {
	t := usage.Trace{Intent: intent}
	for _, tool := range tools {
		t.Calls = append(t.Calls, usage.Call{Tool: tool})
	}
	return t
}

// TestConcurrentLearners has servers learn at the same time: no count is lost, and
// each sees the whole within two seconds.
func TestConcurrentLearners(t *testing.T) {
	at := pgtest.Database(t)
	const servers, each = 4, 25
	var stores []*usage.Store
	var wg sync.WaitGroup
	for i := range servers {
		s, err := usage.Open(open(t, at).Store("docs/usage"), &usage.Options{HalfLife: -1})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
		wg.Go(func() {
			for n := range each {
				if err := s.Learn(t.Context(), trace(fmt.Sprint(i, " ", n), "a", "b")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	late, err := usage.Open(open(t, at).Store("docs/usage"), &usage.Options{HalfLife: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range append(stores, late) {
		testutil.Await(t, func() string {
			intents, err := s.Intents()
			if err != nil {
				t.Fatal(err)
			}
			count := 0.0
			if err := s.Read(func(g *graphrank.Graph) {
				e, _ := g.Edge("a", "b")
				count = e.Count
			}); err != nil {
				t.Fatal(err)
			}
			if len(intents) == servers*each && count == servers*each {
				return ""
			}
			return fmt.Sprintf("server %d has %d intents and count %v, want %d", i, len(intents), count, servers*each)
		})
	}
	if f, err := stores[1].Forget(func(nodes []string, _ int64) bool { return slices.Contains(nodes, "a") }); err != nil || f.Intents != servers*each {
		t.Errorf("Forget = %+v, %v", f, err)
	}
	testutil.Await(t, func() string {
		if intents, err := stores[2].Intents(); err != nil || len(intents) > 0 {
			return fmt.Sprintf("%d intents after they were forgotten, %v", len(intents), err)
		}
		return ""
	})
}

func TestCatalogue(t *testing.T) {
	at := pgtest.Database(t)
	var servers []*catalog.Catalog
	for range 2 {
		c, err := catalog.Open(open(t, at).Store("docs/catalogue"))
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, c)
	}
	batch, err := catalog.Read(t.Context(), strings.NewReader(`{"server":"fs","name":"read"}`+"\n"+`{"server":"fs","name":"write"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := servers[0].Import("one", batch.Tools); err != nil || len(d.Added) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := servers[1].Import("one", batch.Tools[:1]); err != nil || d.Unchanged != 1 || !slices.Equal(d.Removed, []string{"fs:write"}) {
		t.Errorf("an import over that of another server: %+v, %v", d, err)
	}
	testutil.Await(t, func() string {
		if all, err := servers[0].Snapshot(); err != nil || len(all.Tools) != 1 {
			return fmt.Sprintf("%+v on the first server, %v, want 1 tool", all, err)
		}
		return ""
	})
}

// TestUnavailable: while the database is away a server answers from what it has
// read, and its writes fail.
func TestUnavailable(t *testing.T) {
	db := open(t, pgtest.Database(t))
	s, err := usage.Open(db.Store("docs/usage"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Learn(t.Context(), trace("i", "a", "b")); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if intents, err := s.Intents(); err != nil || len(intents) != 1 {
		t.Errorf("%d intents, %v, want what was read", len(intents), err)
	}
	if err := s.Learn(t.Context(), trace("i", "a", "b")); err == nil {
		t.Error("a write without a database is acknowledged")
	}
	if _, err := Open(t.Context(), "postgres://user:secret@127.0.0.1:1/none", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a server that does not answer: %v", err)
	}
	if _, err := Open(t.Context(), "postgres://user:secret@[/", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that is not valid: %v", err)
	}
}

func TestVectors(t *testing.T) {
	at := pgtest.Database(t)
	one, two := open(t, at).Vectors("m", 2), open(t, at).Vectors("m", 2)
	keys := [][32]byte{{1}, {2}}
	for range 2 {
		if err := one.Put(keys, [][]float32{{1, 2}, {3, 4}}); err != nil {
			t.Fatal(err)
		}
	}
	want := [][]float32{{3, 4}, nil, {1, 2}}
	if got, err := two.Get([][32]byte{{2}, {3}, {1}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := open(t, at).Vectors("m", 3).Get(keys); err != nil || got[0] != nil {
		t.Errorf("of another dimension: %v, %v", got, err)
	}
}
