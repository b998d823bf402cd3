package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/records"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is a time tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

const day = 24 * time.Hour

func openDB(t testing.TB) *kv.DB {
	t.Helper()
	db, err := kv.Open(filepath.Join(t.TempDir(), "usage.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func open(t testing.TB, db *kv.DB, o *Options) *Store {
	t.Helper()
	s, err := Open(file(db), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(db *kv.DB) records.Store { return records.NewFile(db, Buckets()...) }

// edges lists "from>to type source count" of what is loaded.
func edges(t testing.TB, s *Store) []string {
	t.Helper()
	var list []string
	err := s.Read(func(g *graphrank.Graph) {
		for e := range g.Edges() {
			list = append(list, fmt.Sprintf("%s>%s %v %v %.3g", e.From, e.To, e.Type, e.Source, e.Count))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func trace(t testing.TB, line string) Trace {
	t.Helper()
	traces, bad, err := ReadTraces(strings.NewReader(line))
	if err != nil || len(bad) > 0 || len(traces) != 1 {
		t.Fatalf("%s: %v, %v", line, bad, err)
	}
	return traces[0]
}

func TestObserveAndReopen(t *testing.T) {
	db := openDB(t)
	s := open(t, db, nil)
	other := open(t, db, nil) // stands for another process
	for range 3 {
		if err := s.Observe(t.Context(), Observation{From: "a", To: "b", Type: graphrank.Sequence}, Observation{From: "a", To: "a", Type: graphrank.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Observe(t.Context(), Observation{From: "b", To: "doc:x.md", Type: graphrank.Dependency}, Observation{From: "b", To: "doc:x.md", Type: graphrank.Dependency}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a>b sequence observed 3", "b>doc:x.md dependency inferred 2"}
	for name, s := range map[string]*Store{"writer": s, "other": other, "reopened": open(t, db, nil)} {
		if got := edges(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, bad := range []string{"", "doc:", "a\x00b", "a\nb", "a\xffb", strings.Repeat("x", MaxID+1)} {
		if err := s.Observe(t.Context(), Observation{From: "a", To: bad, Type: graphrank.Sequence}); err == nil {
			t.Errorf("id %.20q is accepted", bad)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Observe(ctx, Observation{From: "a", To: "c", Type: graphrank.Sequence}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	if got := edges(t, s); !slices.Equal(got, want) {
		t.Errorf("after refusals: %v, want %v", got, want)
	}
}

// TestDecay: after one half-life of 90 days a count of 4 is 2; a observation then
// makes it 3; a single observation of the beginning is 2^(-t/90d), which falls below
// 0.1 after 90·log2(10) = 298.97 days.
func TestDecay(t *testing.T) {
	db, c := openDB(t), &clock{start}
	o := &Options{Now: c.now}
	s := open(t, db, o)
	for range 4 {
		if err := s.Observe(t.Context(), Observation{From: "a", To: "b", Type: graphrank.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Observe(t.Context(), Observation{From: "x", To: "y", Type: graphrank.Dependency}); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want ...string) {
		t.Helper()
		if got := edges(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		if got := edges(t, open(t, db, o)); !slices.Equal(got, want) {
			t.Errorf("%s, reopened: %v, want %v", when, got, want)
		}
	}
	c.t = start.Add(90 * day)
	check("a half-life later", "a>b sequence observed 2", "x>y dependency inferred 0.5")
	if err := s.Observe(t.Context(), Observation{From: "a", To: "b", Type: graphrank.Sequence}); err != nil {
		t.Fatal(err)
	}
	check("seen again", "a>b sequence observed 3", "x>y dependency inferred 0.5")
	c.t = start.Add(298 * day)
	if got := edges(t, s); len(got) != 2 {
		t.Errorf("after 298 days: %v, want both edges", got)
	}
	c.t = start.Add(300 * day)
	if got := edges(t, s); len(got) != 1 {
		t.Errorf("after 300 days: %v, want one edge", got)
	}
	// A dead edge starts again from nothing, and the others are removed from the
	// file.
	if err := s.Observe(t.Context(), Observation{From: "m", To: "n", Type: graphrank.Sequence}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, db, edgesBucket); got != 2 {
		t.Errorf("%d edges in the file after the daily sweep, want 2", got)
	}
	forever := open(t, db, &Options{Now: c.now, HalfLife: -1})
	if got, want := edges(t, forever), "a>b sequence observed 3"; got[0] != want {
		t.Errorf("without decay: %v, want %v first", got, want)
	}
}

// TestThirdSightIsObserved has three observations on three days, when the count is
// below three: 2^(-2/90) + 2^(-1/90) + 1 = 2.977.
func TestThirdSightIsObserved(t *testing.T) {
	c := &clock{start}
	s := open(t, openDB(t), &Options{Now: c.now})
	for i, want := range []string{"a>b sequence inferred 1", "a>b sequence inferred 1.99", "a>b sequence observed 2.98"} {
		c.t = start.Add(time.Duration(i) * day)
		if err := s.Observe(t.Context(), Observation{From: "a", To: "b", Type: graphrank.Sequence}); err != nil {
			t.Fatal(err)
		}
		if got := edges(t, s); len(got) != 1 || got[0] != want {
			t.Errorf("observation %d: %v, want %s", i+1, got, want)
		}
	}
}

func count(t *testing.T, db *kv.DB, bucket string) (n int) {
	t.Helper()
	if err := db.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket(bucket)
		b.ForEach(func(_, _ []byte) bool { n++; return true })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestObservations(t *testing.T) {
	for line, want := range map[string]string{
		`{"calls":[{"tool":"a"},{"tool":"b"},{"tool":"c"}]}`:                                           "a>b sequence, b>c sequence",
		`{"calls":[{"tool":"a"},{"tool":"b"},{"tool":"c"}],"edges":[[0,2]]}`:                           "a>c dependency",
		`{"calls":[{"tool":"a"},{"tool":"b"}],"edges":[[1,0]]}`:                                        "b>a dependency",
		`{"calls":[{"tool":"a"},{"tool":"b","success":false},{"tool":"c","success":true}],"edges":[]}`: "a>c sequence",
		`{"calls":[{"tool":"a"},{"tool":"a"},{"tool":"b"},{"tool":"a"},{"tool":"b"}]}`:                 "a>b sequence, b>a sequence",
		`{"calls":[{"tool":"a"},{"tool":"b"},{"tool":"a"}],"edges":[[0,1],[2,1]]}`:                     "a>b dependency",
		`{"calls":[{"tool":"a"},{"tool":"b","success":false},{"tool":"c"}],"edges":[[0,1],[1,2]]}`:     "",
		`{"calls":[{"tool":"a","success":false}]}`:                                                     "",
		`{"calls":[{"tool":"a"},{"tool":"a"}],"edges":[[0,1]]}`:                                        "",
		`{"id":"7","calls":[{"tool":"a","args":{"x":1}},{"tool":"doc:b.md"}],"split":"dev"}`:           "a>doc:b.md sequence",
	} {
		tr := trace(t, line)
		var got []string
		for _, s := range tr.Observations() {
			got = append(got, fmt.Sprintf("%s>%s %v", s.From, s.To, s.Type))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s\n got %v\nwant %s", line, got, want)
		}
	}
}

func TestReadTraces(t *testing.T) {
	const lines = "\uFEFF" + `{"intent":"one","calls":[{"tool":"a"}]}

{"calls":[]}
not JSON
{"calls":[{"tool":""}]}
{"calls":[{"tool":"a"},{"tool":"b"}],"edges":[[0,2]]}
{"calls":[{"tool":"a"}],"edges":[[0,1]]}
{"calls":[{"tool":"a"}],"edges":[[-1,0]]}
{"calls":[{"tool":7}]}
{"intent":"last","calls":[{"tool":"b"}]}`
	traces, bad, err := ReadTraces(strings.NewReader(lines))
	if err != nil || len(traces) != 2 || traces[1].Intent != "last" {
		t.Errorf("%v, %+v, want the first and the last", err, traces)
	}
	want := []int{3, 4, 5, 6, 7, 8, 9}
	for i, e := range bad {
		if i >= len(want) || !strings.HasPrefix(e.Error(), fmt.Sprintf("line %d: ", want[i])) {
			t.Errorf("bad line %d: %v", i, e)
		}
	}
	if got, want := bad[len(bad)-1].Error(), "line 9: calls.tool: got number"; got != want {
		t.Errorf("the last error is %q, want %q", got, want)
	}
	if len(bad) != len(want) {
		t.Errorf("%d bad lines, want %d", len(bad), len(want))
	}
	_, _, err = ReadTraces(strings.NewReader("\n" + strings.Repeat("x", maxLine+1)))
	if err == nil || !strings.HasPrefix(err.Error(), "line 2: longer than ") {
		t.Errorf("a line too long: %v, want line 2", err)
	}
}

func TestLearnRemembers(t *testing.T) {
	db, c := openDB(t), &clock{start}
	s := open(t, db, &Options{Now: c.now})
	traces := []Trace{
		trace(t, `{"intent":"Copy a file","calls":[{"tool":"read"},{"tool":"stat","success":false},{"tool":"write"}],"edges":[[0,2],[1,2],[0,0]]}`),
		trace(t, `{"intent":"","calls":[{"tool":"read"}]}`),
		trace(t, `{"intent":"Fail","calls":[{"tool":"read","success":false}]}`),
	}
	if err := s.Learn(t.Context(), traces...); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Intents(); len(got) != 1 || !cmp.Equal(got[0].Edges, [][2]int{{0, 1}}) {
		t.Errorf("intents %+v, want one with the edge of its successful calls", got)
	}
	c.t = start.Add(time.Hour)
	if err := s.Learn(t.Context(), trace(t, `{"intent":" copy  A FILE","calls":[{"tool":"write"},{"tool":"read"}]}`), trace(t, `{"intent":"copy a file","calls":[{"tool":"cp"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Intents(); len(got) != 2 || !cmp.Equal(got[1].Edges, [][2]int(nil)) || !cmp.Equal(got[0].Edges, [][2]int(nil)) {
		t.Errorf("edges after the order was given anew: %+v, want none", got)
	}
	want := []Intent{
		{Text: "copy  A FILE", Tools: []string{"write", "read"}, Last: c.t, Count: 2},
		{Text: "copy a file", Tools: []string{"cp"}, Last: c.t, Count: 1},
	}
	for name, s := range map[string]*Store{"writer": s, "reopened": open(t, db, nil)} {
		got, err := s.Intents()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	if err := s.Learn(t.Context(), trace(t, `{"intent":"x","calls":[{"tool":"z"}]}`), Trace{}); err == nil || !strings.Contains(err.Error(), "trace 2: calls: none") {
		t.Errorf("a bad trace: %v", err)
	}
	if got, _ := s.Intents(); len(got) != 2 {
		t.Errorf("after a refused batch: %d intents, want 2", len(got))
	}
}

func TestIntentRoundTrip(t *testing.T) {
	m := Intent{Text: "x \u00fc", Tools: []string{"a", "b", "a"}, Edges: [][2]int{{0, 1}, {2, 1}}, Last: time.Unix(1_800_000_000, 0), Count: 300}
	b := m.encode()
	got, err := decodeIntent(b)
	if diff := cmp.Diff(m, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for n := range b {
		if _, err := decodeIntent(b[:n]); err == nil {
			t.Errorf("%d of %d bytes decode", n, len(b))
		}
	}
	for i := range b { // must not panic
		bad := slices.Clone(b)
		bad[i] ^= 0xff
		decodeIntent(bad)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	db, c := openDB(t), &clock{start}
	s := open(t, db, &Options{Now: c.now, MaxIntents: 100})
	for i := range 130 {
		c.t = start.Add(time.Duration(i) * time.Minute)
		if err := s.Learn(t.Context(), Trace{Intent: fmt.Sprintf("intent %03d", i), Calls: []Call{{Tool: "a"}}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Intents()
	if err != nil || len(got) > 100 || len(got) < 99 || got[len(got)-1].Text != "intent 129" || got[0].Text < "intent 030" {
		t.Errorf("%v, %d intents from %q to %q, want the newest hundred", err, len(got), got[0].Text, got[len(got)-1].Text)
	}
	if n := count(t, db, intentsBucket); n != len(got) {
		t.Errorf("%d intents in the file, %d loaded", n, len(got))
	}
}

func TestForget(t *testing.T) {
	db, c := openDB(t), &clock{start}
	s := open(t, db, &Options{Now: c.now})
	if err := s.Learn(t.Context(), trace(t, `{"intent":"old","calls":[{"tool":"a"},{"tool":"b"},{"tool":"c"}]}`)); err != nil {
		t.Fatal(err)
	}
	c.t = start.Add(10 * day)
	if err := s.Learn(t.Context(), trace(t, `{"intent":"new","calls":[{"tool":"b"},{"tool":"c"},{"tool":"d"}]}`)); err != nil {
		t.Fatal(err)
	}
	other := open(t, db, &Options{Now: c.now})
	if f, err := s.ForgetBefore(start.Add(5 * day)); err != nil || f != (Forgotten{Edges: 1, Intents: 1}) {
		t.Errorf("ForgetBefore = %+v, %v, want a>b and the old intent", f, err)
	}
	if got := edges(t, other); len(got) != 2 {
		t.Errorf("another store still sees %v", got)
	}
	if f, err := s.ForgetNode("d"); err != nil || f != (Forgotten{Edges: 1, Intents: 1}) {
		t.Errorf("ForgetNode(d) = %+v, %v, want c>d and the new intent", f, err)
	}
	if err := s.Read(func(g *graphrank.Graph) {
		if g.Has("d") || !g.Has("b") {
			t.Errorf("nodes %v after forgetting d", g.Nodes())
		}
	}); err != nil {
		t.Fatal(err)
	}
	if f, err := s.ForgetNode("nobody"); err != nil || f != (Forgotten{}) {
		t.Errorf("ForgetNode(nobody) = %+v, %v", f, err)
	}
	if f, err := s.ForgetAll(); err != nil || f != (Forgotten{Edges: 1}) {
		t.Errorf("ForgetAll = %+v, %v", f, err)
	}
	if got := edges(t, s); got != nil {
		t.Errorf("after ForgetAll: %v", got)
	}
	if got, err := other.Intents(); err != nil || len(got) != 0 {
		t.Errorf("after ForgetAll: %v, %v", got, err)
	}
}

func TestSession(t *testing.T) {
	db, c := openDB(t), &clock{start}
	s := open(t, db, &Options{Now: c.now})
	r := s.NewSession(t)
	r.Used("doc:a.md")
	r.Query("how to b")
	r.Used("doc:b.md")
	r.Used("doc:b.md")
	r.Query("How to  b")
	r.Used("doc:c.md")
	if got, want := edges(t, s), []string{"doc:a.md>doc:b.md sequence inferred 1", "doc:b.md>doc:c.md sequence inferred 1"}; !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	if got, _ := s.Intents(); len(got) != 0 {
		t.Errorf("the query is remembered before it ends: %v", got)
	}
	r.Query("something else")
	got, err := s.Intents()
	if err != nil || len(got) != 1 || got[0].Text != "how to b" || !slices.Equal(got[0].Tools, []string{"doc:b.md", "doc:b.md", "doc:c.md"}) {
		t.Errorf("%v, %+v, want the first query with what was read", err, got)
	}
	c.t = start.Add(Gap + time.Minute) // much later: no edge from c.md, and the query is over
	r.Used("doc:z.md")
	r.Close()
	r.Close()
	if got := edges(t, s); len(got) != 2 {
		t.Errorf("edges %v, want none over the pause", got)
	}
	if got, _ := s.Intents(); len(got) != 1 {
		t.Errorf("intents %v, want none without a use", got)
	}
	r.Query("many")
	for i := range 3 * Window {
		r.Used(fmt.Sprint("doc:t", i))
	}
	r.Close()
	if got, _ := s.Intents(); len(got) != 2 || len(got[1].Tools) != Window {
		t.Errorf("%d intents, want the second with %d tools", len(got), Window)
	}
	r.Used("doc:a.md")
	r.Used("\n")
	r.Used("doc:c.md")
	if got := edges(t, s); !slices.Contains(got, "doc:a.md>doc:c.md sequence inferred 1") {
		t.Errorf("edges %v: a line end is accepted as an id", got)
	}
}

// TestConcurrentWriters has many goroutines observe at once: each count arrives.
func TestConcurrentWriters(t *testing.T) {
	db := openDB(t)
	s := open(t, db, nil)
	const goroutines, calls = 32, 10
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range calls {
				if err := s.Observe(t.Context(), Observation{From: "a", To: "b", Type: graphrank.Sequence}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := edges(t, open(t, db, &Options{HalfLife: -1})), []string{fmt.Sprintf("a>b sequence observed %d", goroutines*calls)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDamagedEdge checks that a store with a damaged edge opens with the others.
func TestDamagedEdge(t *testing.T) {
	for name, damage := range map[string]func(tx *kv.Tx) error{
		"edge":    func(tx *kv.Tx) error { return put(tx, edgesBucket, "a\x00b", "short") },
		"no ends": func(tx *kv.Tx) error { return put(tx, edgesBucket, "ab", strings.Repeat("\x00", edgeSize)) },
		"count": func(tx *kv.Tx) error {
			return put(tx, edgesBucket, "a\x00b", string((&edge{count: math.NaN()}).encode()))
		},
	} {
		db := openDB(t)
		if err := open(t, db, nil).Observe(t.Context(), Observation{From: "x", To: "y", Type: graphrank.Dependency}); err != nil {
			t.Fatal(err)
		}
		if err := db.Update(damage); err != nil {
			t.Fatal(err)
		}
		if got, want := edges(t, open(t, db, nil)), []string{"x>y dependency inferred 1"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestLaterVersion(t *testing.T) {
	db := openDB(t)
	err := db.Update(func(tx *kv.Tx) error { return put(tx, metaBucket, "version", "\x09\x00\x00\x00\x00\x00\x00\x00") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file(db), nil); err == nil {
		t.Error("a later version opens")
	}
}

// TestDamagedIntent checks that a store with a damaged intent opens, warns and can
// be written.
func TestDamagedIntent(t *testing.T) {
	db := openDB(t)
	learnt := trace(t, `{"intent":"read a file","calls":[{"tool":"a"},{"tool":"b"}]}`)
	if err := open(t, db, nil).Learn(t.Context(), learnt); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *kv.Tx) error { return put(tx, intentsBucket, "key", "\xff") }); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s := open(t, db, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Learn(t.Context(), learnt); err != nil {
		t.Error(err)
	}
	intents, err := s.Intents()
	if err != nil || len(intents) != 1 || intents[0].Count != 2 {
		t.Errorf("intents %v, %v, want the undamaged one observed twice", intents, err)
	}
	if !strings.Contains(log.String(), errIntent.Error()) {
		t.Errorf("log %q, want a warning", log.String())
	}
}

func put(tx *kv.Tx, bucket, key, value string) error {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), []byte(value))
}

// TestTenThousandTraces learns a large log in linear time.
func TestTenThousandTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("writes ten thousand traces")
	}
	testutil.Linear(t, "traces", 10_000, func(n int) func() {
		traces := make([]Trace, n)
		for i := range traces {
			traces[i] = Trace{Intent: fmt.Sprintf("do the thing number %d with care", i)}
			for k := range 4 {
				traces[i].Calls = append(traces[i].Calls, Call{Tool: fmt.Sprintf("server:tool_%d", (i*7+k*13)%3000)})
			}
		}
		db := openDB(t)
		s := open(t, db, nil)
		return func() {
			if err := s.Learn(t.Context(), traces...); err != nil {
				t.Fatal(err)
			}
			if got, err := open(t, db, nil).Intents(); err != nil || len(got) != n {
				t.Errorf("%v, %d intents, want %d", err, len(got), n)
			}
		}
	})
}

func (s *Store) ForgetNode(id string) (Forgotten, error) {
	return s.Forget(func(nodes []string, _ int64) bool { return slices.Contains(nodes, id) })
}

func (s *Store) ForgetBefore(t time.Time) (Forgotten, error) {
	return s.Forget(func(_ []string, last int64) bool { return last < t.Unix() })
}

func (s *Store) ForgetAll() (Forgotten, error) {
	return s.Forget(func([]string, int64) bool { return true })
}
