package usage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
)

func intentsOf(t testing.TB, s *Store) []Intent {
	t.Helper()
	list, err := s.Intents()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(list)
}

func uncounted(edges []string) (list []string) {
	for _, e := range edges {
		list = append(list, e[:strings.LastIndexByte(e, ' ')])
	}
	return list
}

// TestTwoStoresOfOneFile does the same random work through two stores that share a
// file, and through one alone: after every step all have the same contents, and so
// does a store that opens then.
func TestTwoStoresOfOneFile(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := &clock{start}
		o := Options{Now: c.now, MaxIntents: 40}
		db, alone := openDB(t), openDB(t)
		plain := open(t, alone, &o)
		both := [2]*Store{open(t, db, &o), open(t, db, &o)}
		id := func() string { return fmt.Sprint("tool", random.IntN(12)) }
		var copied copyOf
		for step := range 80 {
			c.t = c.t.Add(time.Duration(random.IntN(40)) * time.Hour)
			s := both[random.IntN(2)]
			var work func(*Store) error
			what := ""
			switch k := random.IntN(40); {
			case k < 16:
				observation := Observation{From: id(), To: id(), Type: graphrank.Type(random.IntN(4)), Weak: random.IntN(3) == 0}
				what = fmt.Sprint(observation)
				work = func(s *Store) error { return s.Observe(t.Context(), observation, observation) }
			case k < 20:
				m := Intent{Text: fmt.Sprint("Intent ", random.IntN(6)), Tools: []string{id()}, Weak: true}
				what = fmt.Sprint(m)
				work = func(s *Store) error { return s.Add(t.Context(), Change{Intents: []Intent{m}}) }
			case k < 30:
				tr := Trace{Intent: fmt.Sprint("Intent ", random.IntN(60)), Calls: []Call{{Tool: id()}, {Tool: id()}, {Tool: id()}}}
				what = fmt.Sprint(tr)
				work = func(s *Store) error { return s.Learn(t.Context(), tr) }
			case k < 32:
				what, work = "many", func(s *Store) error {
					var many []Trace
					for i := range 1000 {
						many = append(many, Trace{Calls: []Call{{Tool: "tool1"}, {Tool: fmt.Sprint("many", i%9)}}})
					}
					return s.Learn(t.Context(), many...)
				}
			case k == 32:
				node := id()
				what = "forget " + node
				work = func(s *Store) error { _, err := s.ForgetNode(node); return err }
			case k == 33:
				before := c.t.Add(-30 * day)
				what = "forget before"
				work = func(s *Store) error { _, err := s.ForgetBefore(before); return err }
			case k < 39:
				what = "reopen"
				both[slices.Index(both[:], s)] = open(t, db, &o)
			default:
				what = "read"
				edges(t, s)
			}
			if work != nil {
				if err := work(plain); err != nil {
					t.Fatal(err)
				}
				if err := work(s); err != nil {
					t.Fatal(err)
				}
			}
			fresh := open(t, db, &o)
			if diff := cmp.Diff(edges(t, open(t, alone, &o)), edges(t, fresh)); diff != "" {
				t.Fatalf("seed %d, step %d (%s): (- alone, + shared)\n%s", seed, step, what, diff)
			}
			// Counts in memory age when they are read, once a day.
			if diff := cmp.Diff(uncounted(edges(t, both[0])), uncounted(edges(t, both[1]))); diff != "" {
				t.Fatalf("seed %d, step %d (%s): two stores of one file differ:\n%s", seed, step, what, diff)
			}
			for i := range both {
				if diff := cmp.Diff(intentsOf(t, fresh), intentsOf(t, both[i])); diff != "" {
					t.Fatalf("seed %d, step %d (%s): intents differ:\n%s", seed, step, what, diff)
				}
			}
			copied.bring(t, both[0])
			if diff := cmp.Diff(uncounted(edges(t, both[0])), copied.edges()); diff != "" {
				t.Fatalf("seed %d, step %d (%s): a copy differs:\n%s", seed, step, what, diff)
			}
			if diff := cmp.Diff(keysOf(intentsOf(t, both[0])), keysOf(copied.intents)); diff != "" {
				t.Fatalf("seed %d, step %d (%s): a copy's intents differ:\n%s", seed, step, what, diff)
			}
		}
		if copied.kept == 0 || copied.made == 0 {
			t.Errorf("a copy was made %d times anew and brought up to date %d times, want both", copied.made, copied.kept)
		}
	}
}

// copyOf is a copy of a store that follows it by Since.
type copyOf struct {
	generation uint64
	graph      *graphrank.Graph
	intents    []Intent
	made, kept int
}

func (c *copyOf) bring(t *testing.T, s *Store) {
	t.Helper()
	news, ok, err := s.Since(c.generation)
	if err != nil {
		t.Fatal(err)
	}
	if ok && c.graph != nil {
		c.kept++
		c.intents = append(c.intents, news.Intents...)
	} else {
		c.made++
		c.graph, c.intents = &graphrank.Graph{}, intentsOf(t, s)
		if err := s.Read(func(g *graphrank.Graph) {
			news.Edges = slices.Collect(g.Edges())
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range news.Edges {
		c.graph.Set(e)
	}
	c.generation = news.Generation
}

func (c *copyOf) edges() (list []string) {
	for e := range c.graph.Edges() {
		list = append(list, fmt.Sprintf("%s>%s %v %v", e.From, e.To, e.Type, e.Source))
	}
	return list
}

// keysOf are intents without when and how often.
func keysOf(list []Intent) (keys []string) {
	for _, m := range list {
		keys = append(keys, fmt.Sprint(m.Text, m.Tools, m.Edges))
	}
	slices.Sort(keys)
	return keys
}
