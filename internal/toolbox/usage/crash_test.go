package usage

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"cairn/graphrank"
	"cairn/internal/store/kv"
)

const crashVariable = "GRAPH_CRASH_FILE"

// crashingWriter learns traces from several goroutines and says on standard
// output which are on disk, until it is killed.
func crashingWriter(path string) {
	db, err := kv.Open(path, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := Open(file(db), &Options{HalfLife: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	round := os.Getenv("GRAPH_CRASH_ROUND")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%s.%d.%d", round, g, i)
				trace := Trace{Intent: name, Calls: []Call{{Tool: "from " + name}, {Tool: "to " + name}}}
				err := s.Learn(context.Background(), trace)
				if err == nil {
					err = s.Observe(context.Background(), Observation{From: "all", To: "rounds", Type: graphrank.Sequence})
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(name) // one write each: lines do not mix
			}
		})
	}
	wg.Wait()
}

// TestKilledAtAnyMoment kills a writing process at random moments. Whatever
// it acknowledged is there afterwards, whole, and the file opens.
func TestKilledAtAnyMoment(t *testing.T) {
	if path := os.Getenv(crashVariable); path != "" {
		crashingWriter(path)
		return
	}
	path := filepath.Join(t.TempDir(), "usage.db")
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	random := rand.New(rand.NewPCG(1, 2))
	acknowledged := []string{}
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledAtAnyMoment$")
		cmd.Env = append(os.Environ(), crashVariable+"="+path, fmt.Sprintf("GRAPH_CRASH_ROUND=%d", round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is counted in acknowledgements and, from there, in time:
		// it falls anywhere within a transaction.
		after := 1 + random.IntN(60)
		pause := time.Duration(random.IntN(3000)) * time.Microsecond
		lines := bufio.NewScanner(out)
		n := 0
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
			if n++; n == after {
				time.AfterFunc(pause, func() { cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatalf("round %d: the writer ended by itself", round)
		}
		verify(t, path, acknowledged)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d acknowledged traces over %d kills", len(acknowledged), rounds)
}

func verify(t *testing.T, path string, acknowledged []string) {
	t.Helper()
	db, err := kv.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := open(t, db, &Options{HalfLife: -1})
	intents, err := s.Intents()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range intents {
		known[m.Text] = true
	}
	if err := s.Read(func(g *graphrank.Graph) {
		for _, name := range acknowledged {
			if _, ok := g.Edge("from "+name, "to "+name); !ok || !known[name] {
				t.Errorf("%s was acknowledged; edge there: %v, intent there: %v", name, ok, known[name])
			}
		}
		if g.EdgeCount()-1 != len(intents) {
			t.Errorf("%d edges of traces and %d intents: a trace is there by half", g.EdgeCount()-1, len(intents))
		}
		all, _ := g.Edge("all", "rounds")
		// At most four observations were under way at each kill.
		if all.Count < float64(len(acknowledged)) || all.Count > float64(len(intents)) {
			t.Errorf("the shared edge counts %v, want %d to %d", all.Count, len(acknowledged), len(intents))
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMillion loads and updates a graph of 100,000 nodes and a million edges.
func BenchmarkMillion(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	observations := make([]Observation, 1_000_000)
	for i := range observations {
		observations[i] = Observation{From: fmt.Sprintf("server:tool_%05d", random.IntN(100_000)), To: fmt.Sprintf("server:tool_%05d", random.IntN(100_000)), Type: graphrank.Sequence}
	}
	db := openDB(b)
	reopen := func() *Store { return open(b, db, nil) }
	if err := reopen().Observe(b.Context(), observations...); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	s := reopen()
	loaded := time.Since(begin)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := s.Observe(b.Context(), observations[random.IntN(len(observations))]); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(loaded.Seconds(), "load-s")
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100].Microseconds()), fmt.Sprintf("p%d-us", p))
	}
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-us")
	related := make([]time.Duration, 200)
	for i := range related {
		begin := time.Now()
		if err := s.Read(func(g *graphrank.Graph) { g.Related(observations[i].From, 10) }); err != nil {
			b.Fatal(err)
		}
		related[i] = time.Since(begin)
	}
	slices.Sort(related)
	b.ReportMetric(float64(related[100].Microseconds()), "related-p50-us")
	b.ReportMetric(float64(related[198].Microseconds()), "related-p99-us")
	begin = time.Now()
	if err := s.Read(func(g *graphrank.Graph) { g.PageRank() }); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(begin).Seconds(), "pagerank-s")
}
