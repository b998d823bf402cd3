package shared

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/graphrank"
	"cairn/internal/catalog"
	"cairn/internal/kv"
	"cairn/internal/store/qdrant"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/usage"
)

// clock is a time that all stores of a test share.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// dial connects another process, as it were, to a server.
func dial(t testing.TB, s *qdranttest.Server) *qdrant.Records {
	t.Helper()
	target, err := qdrant.ParseTarget("qdrant://" + s.Addr() + "/box")
	if err != nil {
		t.Fatal(err)
	}
	client, err := qdrant.Dial(target, &qdrant.Options{ReadTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client.Records()
}

func options(c *clock) Options {
	return Options{
		Conflict: func(err error) bool { return errors.Is(err, qdrant.ErrConflict) },
		Away: func(err error) bool {
			_, ok := errors.AsType[*qdrant.UnavailableError](err)
			return ok
		},
		Now: c.now,
	}
}

func openUsage(t testing.TB, r Records, c *clock) *usage.Store {
	t.Helper()
	u := OpenUsage(r, "usage", options(c))
	s, err := usage.Open(u, &usage.Options{Journal: u.Journal(), Now: c.now, MaxIntents: 40, HalfLife: -1})
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

// known is all that a store knows, as text.
func known(t testing.TB, s *usage.Store) string {
	t.Helper()
	var lines []string
	if err := s.Read(func(g *graphrank.Graph) error {
		for e := range g.Edges() {
			lines = append(lines, fmt.Sprintf("%s %s %v %v %.9g", e.From, e.To, e.Type, e.Source, e.Count))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	intents, err := s.Intents()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range intents {
		lines = append(lines, fmt.Sprint(m.Text, m.Tools, m.Edges, m.Count, m.Last.Unix()))
	}
	return strings.Join(lines, "\n")
}

func trace(intent string, tools ...string) usage.Trace {
	t := usage.Trace{Intent: intent}
	for _, tool := range tools {
		t.Calls = append(t.Calls, usage.Call{Tool: tool})
	}
	return t
}

// many are more changes than a journal takes at once: they go to the database.
func many(n int) (traces []usage.Trace) {
	for i := range 1100 {
		traces = append(traces, trace("", "tool1", fmt.Sprint("many", n, "-", i%9)))
	}
	return traces
}

// TestAsInAFile does the same at random to stores on two servers and to one on a
// file: after every step, and an Age, all know the same, and so does one that opens then.
func TestAsInAFile(t *testing.T) {
	c, rng := newClock(), rand.New(rand.NewPCG(7, 8))
	server := qdranttest.New(t, nil)
	db, err := kv.Open(filepath.Join(t.TempDir(), "usage.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	file, err := usage.Open(db, &usage.Options{Now: c.now, MaxIntents: 40, HalfLife: -1})
	if err != nil {
		t.Fatal(err)
	}
	servers := []*usage.Store{openUsage(t, dial(t, server), c), openUsage(t, dial(t, server), c)}
	id := func() string { return fmt.Sprint("tool", rng.IntN(12)) }
	for step := range 60 {
		var work func(*usage.Store) error
		switch k := rng.IntN(20); {
		case k < 9:
			sight := usage.Sight{From: id(), To: id(), Type: graphrank.Type(rng.IntN(4)), Weak: rng.IntN(3) == 0}
			work = func(s *usage.Store) error { return s.Observe(t.Context(), sight, sight) }
		case k < 16:
			tr := trace(fmt.Sprint("Intent ", rng.IntN(20)), id(), id(), id())
			work = func(s *usage.Store) error { return s.Learn(t.Context(), tr) }
		case k < 18:
			list := many(step % 3)
			work = func(s *usage.Store) error { return s.Learn(t.Context(), list...) }
		default:
			node := id()
			work = func(s *usage.Store) error { _, err := s.ForgetNode(node); return err }
		}
		s := servers[rng.IntN(2)]
		if err := errors.Join(work(file), work(s)); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		want := known(t, file)
		if got := known(t, s); got != want {
			t.Fatalf("step %d, who wrote:\n%s\nin a file:\n%s", step, got, want)
		}
		c.add(Age)
		for i, s := range append(servers, openUsage(t, dial(t, server), c)) {
			if got := known(t, s); got != want {
				t.Fatalf("step %d, server %d an Age later:\n%s\nin a file:\n%s", step, i, got, want)
			}
		}
	}
}

// TestManyWriters has several servers write at the same time, in small and large
// changes: nothing is lost and nothing counted twice.
func TestManyWriters(t *testing.T) {
	c := newClock()
	server := qdranttest.New(t, nil)
	const writers, writes = 4, 30
	var stores []*usage.Store
	var working sync.WaitGroup
	for w := range writers {
		s := openUsage(t, dial(t, server), c)
		stores = append(stores, s)
		working.Go(func() {
			for n := range writes {
				var err error
				if n%10 == 9 {
					list := many(w)
					for i := range list {
						list[i] = trace("", "a", "b")
					}
					err = s.Learn(t.Context(), list...)
				} else {
					err = s.Learn(t.Context(), trace("", "a", "b"))
				}
				if err != nil {
					t.Errorf("writer %d, write %d: %v", w, n, err)
					return
				}
			}
		})
	}
	working.Wait()
	c.add(Age)
	const want = writers * (27 + 3*1100)
	for i, s := range append(stores, openUsage(t, dial(t, server), c)) {
		var count float64
		if err := s.Read(func(g *graphrank.Graph) error {
			for e := range g.Out("a") {
				count = e.Count
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if count != want {
			t.Errorf("store %d counts %v sights, want %d", i, count, want)
		}
	}
}

// TestSealedAndLeft has a process end after it has sealed the journal: the next
// one that writes puts the records into the database.
func TestSealedAndLeft(t *testing.T) {
	c := newClock()
	server := qdranttest.New(t, nil)
	first := OpenUsage(dial(t, server), "usage", options(c))
	dead, err := usage.Open(first, &usage.Options{Journal: first.Journal(), Now: c.now, HalfLife: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Learn(t.Context(), trace("open a file", "a", "b")); err != nil {
		t.Fatal(err)
	}
	mark, err := first.Journal().Mark()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Journal().Seal(mark.Epoch, mark.Size); err != nil {
		t.Fatal(err)
	}
	other := openUsage(t, dial(t, server), c)
	if got := known(t, other); !strings.Contains(got, "a b") || !strings.Contains(got, "open a file") {
		t.Errorf("of a sealed journal is read:\n%s", got)
	}
	if err := other.Learn(t.Context(), trace("", "a", "b")); err != nil {
		t.Fatal(err)
	}
	if version, err := dial(t, server).Version(t.Context(), "usage"); err != nil || version != 1 {
		t.Errorf("the database has version %d, %v, want 1", version, err)
	}
	c.add(Age)
	for name, s := range map[string]*usage.Store{"the other": other, "a third": openUsage(t, dial(t, server), c)} {
		if got := known(t, s); !strings.Contains(got, "a b") || !strings.Contains(got, " 2\n") {
			t.Errorf("%s knows:\n%s\nwant two sights", name, got)
		}
	}
}

// slow waits before the first record is made of a journal.
type slow struct {
	Records
	before func(name string)
}

func (s *slow) Put(ctx context.Context, name string, value []byte, from int64) (int64, error) {
	s.before(name)
	return s.Records.Put(ctx, name, value, from)
}

// TestSlowWriter has a write arrive when the records of its epoch are removed
// already: it counts, once.
func TestSlowWriter(t *testing.T) {
	for _, folds := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprint(folds), func(t *testing.T) {
			c := newClock()
			server := qdranttest.New(t, nil)
			u := OpenUsage(dial(t, server), "usage", options(c))
			busy, err := usage.Open(u, &usage.Options{Journal: u.Journal(), Now: c.now, HalfLife: -1})
			if err != nil {
				t.Fatal(err)
			}
			if err := busy.Learn(t.Context(), trace("", "x", "y")); err != nil {
				t.Fatal(err)
			}
			stalled := false
			late := openUsage(t, &slow{dial(t, server), func(name string) {
				if stalled || name == "usage" {
					return
				}
				stalled = true
				for n := range folds {
					if err := busy.Learn(t.Context(), many(n)...); err != nil {
						t.Error(err)
					}
					u.Journal().removing.Wait()
				}
			}}, c)
			if err := late.Learn(t.Context(), trace("", "a", "b")); err != nil {
				t.Fatal(err)
			}
			c.add(Age)
			want := known(t, late)
			if !strings.Contains(want, "a b") || !strings.Contains(want, "x y") {
				t.Errorf("who was late knows:\n%s", want)
			}
			for name, s := range map[string]*usage.Store{"who was busy": busy, "who opens now": openUsage(t, dial(t, server), c)} {
				got := known(t, s)
				if got != want || !strings.HasPrefix(got, "a b sequence inferred 1") {
					t.Errorf("%s knows:\n%s\nwho was late:\n%s", name, got, want)
				}
			}
			if err := busy.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStoreAway reads what was known last, and does not write.
func TestStoreAway(t *testing.T) {
	c := newClock()
	server := qdranttest.New(t, nil)
	writer, err := catalog.Open(Open(dial(t, server), "catalogue", options(c)))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := catalog.Open(Open(dial(t, server), "catalogue", options(c)))
	if err != nil {
		t.Fatal(err)
	}
	learner := openUsage(t, dial(t, server), c)
	if err := learner.Learn(t.Context(), trace("", "a", "b")); err != nil {
		t.Fatal(err)
	}
	names := func(c *catalog.Catalog) string {
		t.Helper()
		tools, err := c.Tools()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, tool := range tools {
			ids = append(ids, tool.ID)
		}
		return strings.Join(ids, " ")
	}
	importing := func(source string, n int) error {
		var tools []catalog.Tool
		for i := range n {
			tools = append(tools, catalog.Tool{ID: catalog.MakeID(source, fmt.Sprint("tool", i)), Server: source, Name: fmt.Sprint("tool", i), Description: strings.Repeat(fmt.Sprint(i, " "), 50)})
		}
		_, err := writer.Import(source, tools)
		return err
	}
	if err := importing("one", 2); err != nil {
		t.Fatal(err)
	}
	if got := names(reader); got != "" {
		t.Errorf("within an Age the other server knows %q", got)
	}
	c.add(Age)
	if got := names(reader); got != "one:tool0 one:tool1" {
		t.Errorf("after an Age the other server knows %q", got)
	}
	server.Stop()
	c.add(Age)
	if got := names(reader); got != "one:tool0 one:tool1" {
		t.Errorf("while the store is away the server knows %q", got)
	}
	if err := importing("two", 1); !options(c).Away(err) {
		t.Errorf("importing while the store is away: %v, want a *qdrant.UnavailableError", err)
	}
	if got := known(t, learner); !strings.HasPrefix(got, "a b") {
		t.Errorf("while the store is away is learnt: %q", got)
	}
	if err := learner.Learn(t.Context(), trace("", "a", "c")); !options(c).Away(err) {
		t.Errorf("learning while the store is away: %v, want a *qdrant.UnavailableError", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(5 * time.Second); ; {
		if err := importing("two", 20_000); err == nil { // in several parts
			break
		} else if time.Now().After(limit) {
			t.Fatalf("5 s after the return of the store: %v", err)
		}
	}
	c.add(Age)
	if got := strings.Fields(names(reader)); len(got) != 20_002 {
		t.Errorf("after its return the server knows %d tools, want 20002", len(got))
	}
}

func TestDamaged(t *testing.T) {
	c := newClock()
	records := dial(t, qdranttest.New(t, nil))
	for _, name := range []string{"catalogue", "usage/1/0"} {
		if _, err := records.Put(t.Context(), name, []byte("?"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := catalog.Open(Open(records, "catalogue", options(c))); err == nil || !strings.Contains(err.Error(), "record catalogue") {
		t.Errorf("a damaged database: %v", err)
	}
	u := OpenUsage(records, "usage", options(c))
	if _, err := usage.Open(u, &usage.Options{Journal: u.Journal()}); err == nil || !strings.Contains(err.Error(), "record usage/1/0") {
		t.Errorf("a damaged journal: %v", err)
	}
}
