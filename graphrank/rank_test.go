package graphrank

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/community"
	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
)

func TestAdamicAdar(t *testing.T) {
	// u and v share w of degree 2: 1/ln 2 = 1.4427.
	g := build([2]string{"u", "w"}, [2]string{"w", "v"})
	if got, want := g.AdamicAdar("u", "v"), 1/math.Ln2; !near(got, want, 1e-12) {
		t.Errorf("one shared neighbour of degree 2: %v, want %v", got, want)
	}
	if got := g.Relatedness("u", []string{"v"}); !near(got, 0.7213, 5e-5) {
		t.Errorf("relatedness = %v, want .7213", got)
	}
	// A second one of degree 3: 1/ln 2 + 1/ln 3 = 1.4427 + 0.9102 = 2.3529, halved and capped 1.
	for _, p := range [][2]string{{"u", "x"}, {"v", "x"}, {"x", "y"}} {
		g.Observe(p[0], p[1], Sequence)
	}
	if got, want := g.AdamicAdar("v", "u"), 1/math.Ln2+1/math.Log(3); !near(got, want, 1e-12) {
		t.Errorf("two shared neighbours: %v, want %v", got, want)
	}
	if got := g.Relatedness("u", []string{"v"}); got != 1 {
		t.Errorf("relatedness over 2 is %v, want the cap 1", got)
	}
	for degree, want := range map[int]float64{3: .455, 4: .361, 5: .311, 10: .217, 20: .167, 50: .128, 100: .109} {
		h := build([2]string{"u", "w"}, [2]string{"w", "v"})
		for i := 2; i < degree; i++ {
			h.Observe("w", string(rune('A'+i)), Sequence)
		}
		if got := h.Relatedness("u", []string{"v"}); !near(got, want, 6e-4) {
			t.Errorf("shared neighbour of degree %d: %v, want %v", degree, got, want)
		}
	}
	for name, c := range map[string]struct {
		id      string
		context []string
		want    float64
	}{
		"direct edge":    {"u", []string{"w"}, 1},
		"other way":      {"w", []string{"u"}, 1},
		"no context":     {"u", nil, 0},
		"unknown node":   {"unknown", []string{"u"}, 0},
		"unknown other":  {"u", []string{"unknown"}, 0},
		"in the context": {"u", []string{"u", "w"}, 0},
	} {
		if got := g.Relatedness(c.id, c.context); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRelated(t *testing.T) {
	g := new(Graph)
	g.Set(Edge{From: "a", To: "light", Type: Sequence, Source: Inferred, Count: 1})
	g.Set(Edge{From: "heavy", To: "a", Type: Dependency, Source: Observed, Count: 3})
	g.Set(Edge{From: "heavy", To: "far", Type: Sequence, Source: Inferred, Count: 1})
	got := g.Related("a", 5)
	want := []Scored{{"heavy", 1}, {"light", 1}, {"far", 1 / math.Ln2 / 2}}
	if !cmp.Equal(got, want) {
		t.Errorf("Related(a) = %v, want %v", got, want)
	}
	if got := g.Related("a", 1); len(got) != 1 || got[0].ID != "heavy" {
		t.Errorf("Related(a, 1) = %v, want heavy", got)
	}
	if got := g.Related("unknown", 3); got != nil {
		t.Errorf("Related(nobody) = %v, want none", got)
	}
	// Related agrees with Relatedness on every pair of a random graph.
	r := random(11, 60, 150)
	for _, id := range r.Nodes() {
		for _, s := range r.Related(id, 60) {
			if want := r.Relatedness(s.ID, []string{id}); !near(s.Score, want, 1e-12) {
				t.Errorf("Related(%s) gives %s %v, Relatedness %v", id, s.ID, s.Score, want)
			}
		}
	}
}

func TestPageRank(t *testing.T) {
	// a -> b, b -> a and c -> a. By symmetry of the equations with d = .85:
	// c = .15/3 = .05, a = .05 + .85(b + c), b = .05 + .85 a
	// => a(1-.7225) = .05 + .0425 + .0425 => a = .135/.2775.
	g := build([2]string{"a", "b"}, [2]string{"b", "a"}, [2]string{"c", "a"})
	got := g.PageRank()
	a := .135 / .2775
	for id, want := range map[string]float64{"a": a, "b": .05 + .85*a, "c": .05} {
		if !near(got[id], want, 1e-8) {
			t.Errorf("rank(%s) = %v, want %v", id, got[id], want)
		}
	}
	if r := new(Graph).PageRank(); len(r) != 0 {
		t.Errorf("empty graph: %v, want no ranks", r)
	}
}

func TestPageRankAgainstGonum(t *testing.T) {
	for seed := range uint64(5) {
		g := random(seed, 50, 200)
		ids := g.Nodes()
		other := simple.NewWeightedDirectedGraph(0, 0)
		for i := range ids {
			other.AddNode(simple.Node(i))
		}
		for e := range g.Edges() {
			f, _ := slices.BinarySearch(ids, e.From)
			to, _ := slices.BinarySearch(ids, e.To)
			other.SetWeightedEdge(other.NewWeightedEdge(simple.Node(f), simple.Node(to), e.Weight()))
		}
		want := network.PageRankSparse(other, 0.85, 1e-12)
		got := g.PageRank()
		var sum float64
		for i, id := range ids {
			sum += got[id]
			if !near(got[id], want[int64(i)], 1e-6) {
				t.Errorf("seed %d: rank(%s) = %v, gonum %v", seed, id, got[id], want[int64(i)])
			}
		}
		if !near(sum, 1, 1e-9) {
			t.Errorf("seed %d: ranks sum to %v", seed, sum)
		}
	}
}

func TestDeterministic(t *testing.T) {
	// The same edges in another order give the same bits.
	g := random(5, 300, 2000)
	h := new(Graph)
	edges := slices.Collect(g.Edges())
	slices.Reverse(edges)
	for _, e := range edges {
		h.Set(e)
	}
	for _, id := range g.Nodes() {
		h.AddNode(id)
	}
	if !cmp.Equal(g.PageRank(), h.PageRank()) {
		t.Error("PageRank depends on the order of insertion")
	}
	if !cmp.Equal(g.personalized([]string{"n000001", "n000007"}, damping), h.personalized([]string{"n000007", "n000001"}, damping)) {
		t.Error("personalized depends on the order of insertion")
	}
	if !cmp.Equal(g.Communities(), h.Communities()) {
		t.Error("Communities depends on the order of insertion")
	}
	if !cmp.Equal(g.Related("n000003", 40), h.Related("n000003", 40)) {
		t.Error("Related depends on the order of insertion")
	}
}

func TestPersonalized(t *testing.T) {
	// s -> m -> s: by hand p(s) = .15/(1-.85²) = .5405, p(m) = .85·p(s).
	g := build([2]string{"s", "m"}, [2]string{"m", "s"}, [2]string{"x", "y"})
	got := g.personalized([]string{"s"}, damping)
	if len(got) != 2 || !near(got["s"], .15/(1-.7225), 1e-3) || !near(got["m"], .85*.15/(1-.7225), 1e-3) {
		t.Errorf("got %v, want s .5405 and m .4595", got)
	}
	if got := g.personalized([]string{"unknown"}, damping); len(got) != 0 {
		t.Errorf("unknown seed: %v, want none", got)
	}
	// Against the exact power iteration on random graphs: never above, and near.
	for seed := range uint64(4) {
		r := random(seed+20, 40, 160)
		exact := personalizedExact(r, "n000003")
		for id, rank := range r.personalized([]string{"n000003"}, damping) {
			if rank > exact[id]+1e-9 || exact[id]-rank > 0.02 {
				t.Errorf("seed %d: %s %v, exact %v", seed, id, rank, exact[id])
			}
		}
	}
}

// personalizedExact is the slow obvious version.
func personalizedExact(g *Graph, seed string) map[string]float64 {
	rank := map[string]float64{seed: 1}
	for range 500 {
		next := map[string]float64{seed: 0.15}
		for _, id := range g.Nodes() {
			var total float64
			for e := range g.Out(id) {
				total += e.Weight()
			}
			if total == 0 {
				next[seed] += 0.85 * rank[id]
			}
			for e := range g.Out(id) {
				next[e.To] += 0.85 * rank[id] * e.Weight() / total
			}
		}
		rank = next
	}
	return rank
}

func TestShortestPath(t *testing.T) {
	g := new(Graph)
	set := func(a, b string, typ Type, s Source) { g.Set(Edge{From: a, To: b, Type: typ, Source: s}) }
	set("a", "b", Dependency, Observed) // cost 1
	set("b", "c", Dependency, Observed) // cost 1
	set("a", "c", Sequence, Inferred)   // cost 1/.35 = 2.857
	p, ok := g.ShortestPath("a", "c", 3)
	if !ok || !cmp.Equal(p.Nodes, []string{"a", "b", "c"}) || p.Cost != 2 || p.Hops() != 2 {
		t.Errorf("a to c: %v, want over b at cost 2", p)
	}
	if p, ok := g.ShortestPath("a", "c", 1); !ok || p.Hops() != 1 || !near(p.Cost, 1/.35, 1e-12) {
		t.Errorf("a to c in one hop: %v", p)
	}
	for _, c := range [][2]string{{"c", "a"}, {"a", "a"}, {"a", "unknown"}} {
		if p, ok := g.ShortestPath(c[0], c[1], 3); ok {
			t.Errorf("%v: %v, want none", c, p)
		}
	}
	for hops, want := range map[int]float64{0: 0, 1: .95, 2: .80, 3: .65, 4: .50, 9: .50} {
		if got := HopConfidence(hops); got != want {
			t.Errorf("HopConfidence(%d) = %v, want %v", hops, got, want)
		}
	}
}

func TestShortestPathAgainstGonum(t *testing.T) {
	g := random(9, 40, 120)
	ids := g.Nodes()
	other := simple.NewWeightedDirectedGraph(0, math.Inf(1))
	for i := range ids {
		other.AddNode(simple.Node(i))
	}
	for e := range g.Edges() {
		f, _ := slices.BinarySearch(ids, e.From)
		to, _ := slices.BinarySearch(ids, e.To)
		other.SetWeightedEdge(other.NewWeightedEdge(simple.Node(f), simple.Node(to), 1/max(e.Weight(), .1)))
	}
	for i, from := range ids {
		tree := path.DijkstraFrom(simple.Node(i), other)
		for j, to := range ids {
			want := tree.WeightTo(int64(j))
			p, ok := g.ShortestPath(from, to, 40)
			if i != j && (ok != !math.IsInf(want, 1) || ok && !near(p.Cost, want, 1e-9)) {
				t.Errorf("%s to %s: %v %v, gonum %v", from, to, p.Cost, ok, want)
			}
		}
	}
}

func TestCommunities(t *testing.T) {
	// Two triangles joined by one edge.
	g := build([2]string{"a", "b"}, [2]string{"b", "c"}, [2]string{"c", "a"},
		[2]string{"x", "y"}, [2]string{"y", "z"}, [2]string{"z", "x"}, [2]string{"c", "x"})
	g.AddNode("alone")
	want := [][]string{{"a", "b", "c"}, {"x", "y", "z"}, {"alone"}}
	got := g.Communities()
	if !cmp.Equal(got, want) {
		t.Fatalf("Communities = %v, want %v", got, want)
	}
	if got := new(Graph).Communities(); len(got) != 0 {
		t.Errorf("empty graph: %v", got)
	}
}

func TestCommunitiesAgainstGonum(t *testing.T) {
	for seed := range uint64(5) {
		g := random(seed+40, 80, 160)
		ids := g.Nodes()
		other := simple.NewWeightedUndirectedGraph(0, 0)
		for i := range ids {
			other.AddNode(simple.Node(i))
		}
		for e := range g.Edges() {
			f, _ := slices.BinarySearch(ids, e.From)
			to, _ := slices.BinarySearch(ids, e.To)
			w, _ := other.Weight(int64(f), int64(to))
			other.SetWeightedEdge(other.NewWeightedEdge(simple.Node(f), simple.Node(to), w+e.Weight()))
		}
		theirs := community.Q(other, community.Modularize(other, 1, nil).Communities(), 1)
		var groups [][]graph.Node
		for _, members := range g.Communities() {
			var group []graph.Node
			for _, id := range members {
				i, _ := slices.BinarySearch(ids, id)
				group = append(group, simple.Node(i))
			}
			groups = append(groups, group)
		}
		ours := community.Q(other, groups, 1)
		if ours < 0.95*theirs {
			t.Errorf("seed %d: modularity %v, gonum reaches %v", seed, ours, theirs)
		}
	}
}
