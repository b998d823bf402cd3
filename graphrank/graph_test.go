package graphrank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// build makes a graph of observed dependency edges (weight 1) from pairs.
func build(pairs ...[2]string) *Graph {
	g := new(Graph)
	for _, p := range pairs {
		g.Set(Edge{From: p[0], To: p[1], Type: Dependency, Source: Observed, Count: ObservedAfter})
	}
	return g
}

// random makes a graph of n nodes and up to e edges of all types and sources.
func random(seed uint64, n, e int) *Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := new(Graph)
	for i := range n {
		g.AddNode(fmt.Sprintf("n%06d", i))
	}
	for range e {
		g.Set(Edge{
			From: fmt.Sprintf("n%06d", r.IntN(n)), To: fmt.Sprintf("n%06d", r.IntN(n)),
			Type: Type(r.IntN(4)), Source: Source(r.IntN(3)), Count: float64(1 + r.IntN(5)),
		})
	}
	return g
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol }

func TestWeight(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		source Source
		want   float64
	}{
		{Dependency, Observed, 1.0}, {Contains, Observed, 0.8}, {Provides, Observed, 0.7}, {Sequence, Observed, 0.5},
		{Dependency, Inferred, 0.7}, {Dependency, Template, 0.5}, {Sequence, Inferred, 0.35}, {Contains, Template, 0.4},
	} {
		if got := (Edge{Type: c.typ, Source: c.source}).Weight(); !near(got, c.want, 1e-15) {
			t.Errorf("weight of %v/%v = %v, want %v", c.typ, c.source, got, c.want)
		}
	}
}

func TestObserve(t *testing.T) {
	var g Graph
	for sight, want := range []Source{Inferred, Inferred, Observed, Observed} {
		if e := g.Observe("a", "b", Sequence); e.Source != want || e.Count != float64(sight+1) {
			t.Errorf("sight %d: %v, count %v; want %v, %d", sight+1, e.Source, e.Count, want, sight+1)
		}
	}
	if e := g.Observe("a", "b", Dependency); e.Type != Dependency {
		t.Errorf("after a dependency the type is %v", e.Type)
	}
	if e := g.Observe("a", "a", Sequence); e != (Edge{}) || g.EdgeCount() != 1 {
		t.Errorf("self-loop: %v, %d edges; want none and 1", e, g.EdgeCount())
	}
	g.Set(Edge{From: "x", To: "y", Type: Provides, Source: Template})
	if e := g.Observe("x", "y", Sequence); e.Source != Inferred || e.Count != 1 {
		t.Errorf("a template seen once is %v with count %v, want inferred with 1", e.Source, e.Count)
	}
}

// TestAgainstMap compares the adjacency with a plain map under random changes.
func TestAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	g, model := new(Graph), map[[2]string]Edge{}
	for range 5000 {
		a, b := string(rune('a'+r.IntN(12))), string(rune('a'+r.IntN(12)))
		if e := g.Observe(a, b, Type(r.IntN(4))); a != b {
			model[[2]string{a, b}] = e
		}
	}
	if g.EdgeCount() != len(model) {
		t.Fatalf("EdgeCount = %d, want %d", g.EdgeCount(), len(model))
	}
	for e := range g.Edges() {
		if model[[2]string{e.From, e.To}] != e {
			t.Errorf("edge %v, want %v", e, model[[2]string{e.From, e.To}])
		}
	}
	var in int
	for _, id := range g.Nodes() {
		for e := range g.In(id) {
			if model[[2]string{e.From, e.To}] != e {
				t.Errorf("in-edge %v, want %v", e, model[[2]string{e.From, e.To}])
			}
			in++
		}
	}
	if in != len(model) {
		t.Errorf("%d in-edges, want %d", in, len(model))
	}
}

// TestAlpha holds the table N, E -> alpha of the specification.
func TestAlpha(t *testing.T) {
	for _, c := range []struct {
		n, e  int
		alpha float64
	}{
		{0, 0, 1}, {1, 0, 1}, {2, 1, 0.5}, {3, 1, 0.667}, {10, 9, 0.80}, {10, 20, 0.556},
		{50, 0, 1}, {50, 50, 0.959}, {50, 250, 0.796}, {50, 500, 0.592}, {50, 613, 0.5}, {50, 2000, 0.5}, {200, 1000, 0.950},
	} {
		var g Graph
		for i := range c.n {
			g.AddNode(fmt.Sprint(i))
		}
		for i := 0; g.EdgeCount() < c.e; i++ {
			g.Observe(fmt.Sprint(i%c.n), fmt.Sprint((i%c.n+1+i/c.n)%c.n), Sequence)
		}
		if got := g.Alpha(); !near(got, c.alpha, 0.0006) {
			t.Errorf("N=%d E=%d: alpha = %.4f, want %.3f", c.n, c.e, got, c.alpha)
		}
	}
}

// TestScale measures the promises about size as ratios of the work itself. The large graph
// is built in full, and each update and look-up must cost less than a thousandth of a
// PageRank over it, which is promised within a second.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("builds 100,000 nodes and a million edges")
	}
	g := random(3, 100_000, 1_000_000)
	began := time.Now()
	g.PageRank()
	rank := time.Since(began)
	const rounds = 1000
	began = time.Now()
	for i := range rounds {
		g.Observe(fmt.Sprintf("n%06d", i), fmt.Sprintf("n%06d", 99_999-i), Sequence)
	}
	update := time.Since(began) / rounds
	began = time.Now()
	for i := range rounds {
		g.Related(fmt.Sprintf("n%06d", i), 10)
	}
	related := time.Since(began) / rounds
	t.Logf("PageRank %v, update %v, related %v", rank, update, related)
	if update > rank/100 || related > rank/100 {
		t.Errorf("update %v and related %v, want below a hundredth of PageRank's %v", update, related, rank)
	}
}
