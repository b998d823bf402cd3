package toolsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
	"cairn/internal/toolbox/catalog"
)

func newTool(t *testing.T, name, description string, dependsOn ...string) catalog.Tool {
	t.Helper()
	made, err := catalog.New(catalog.Tool{Server: "s", Name: name, Description: description, DependsOn: dependsOn})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newIndex(t *testing.T, tools []catalog.Tool, u *Usage) *Index {
	t.Helper()
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	x := New(k, Options{Embedder: &testutil.HashEmbedder{}, Usage: u})
	if err := x.Sync(context.Background(), tools, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

func newUsage(t *testing.T, g *graphrank.Graph, traces ...Trace) *Usage {
	t.Helper()
	u, err := NewUsage(context.Background(), g, traces, &testutil.HashEmbedder{}, nil)
	if err == nil {
		err = u.Embed(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func shop(t *testing.T) []catalog.Tool {
	return []catalog.Tool{
		newTool(t, "search_products", "Find products in the shop by words"),
		newTool(t, "add_to_cart", "Put a product into the shopping cart"),
		newTool(t, "checkout", "Pay for everything in the shopping cart"),
		newTool(t, "track_parcel", "Say where a parcel is", "login"),
		newTool(t, "login", "Open a session of a user"),
		newTool(t, "git_clone", "Copy a repository"),
		newTool(t, "npm_install", "Fetch modules of a package"),
		newTool(t, "deploy", "Put a build online"),
	}
}

func ids(cs []Candidate) (list []string) {
	for _, c := range cs {
		list = append(list, c.ID)
	}
	return list
}

func TestSearch(t *testing.T) {
	ctx := context.Background()
	x := newIndex(t, shop(t), nil)
	a, err := x.Search(ctx, Query{Text: "find products in the shop", Limit: 2})
	if err != nil || len(a.Tools) != 2 || a.Tools[0].ID != "s:search_products" || a.Tools[0].Server != "s" {
		t.Fatalf("%+v, %v", a, err)
	}
	if a.Meta != (Meta{"find products in the shop", 1, 0}) || a.Tools[0].Related == nil {
		t.Errorf("meta %+v, related %v", a.Meta, a.Tools[0].Related)
	}
	if _, err := x.Search(ctx, Query{Text: " "}); !errors.Is(err, ErrNoQuery) || err.Error() != "Missing required parameter: 'query'" {
		t.Errorf("no query: %v", err)
	}
	for _, limit := range []int{-1, MaxLimit + 1} {
		if _, err := x.Search(ctx, Query{Text: "x", Limit: limit}); err == nil {
			t.Errorf("limit %d is accepted", limit)
		}
	}
	a, err = newIndex(t, nil, nil).Search(ctx, Query{Text: "anything"})
	if err != nil || len(a.Tools) != 0 || a.Tools == nil || a.Message == "" {
		t.Errorf("empty catalogue: %+v, %v", a, err)
	}
	b, err := json.Marshal(a)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.Search(done, Query{Text: "cart"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSearchWithoutVectors(t *testing.T) {
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	x := New(k, Options{})
	if err := x.Sync(context.Background(), shop(t), nil); err != nil {
		t.Fatal(err)
	}
	a, err := x.Search(context.Background(), Query{Text: "shopping cart"})
	if err != nil || len(a.Tools) != 3 || a.Tools[0].ID != "s:add_to_cart" || !slices.Equal(a.Degraded, []string{"vectors"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestVectorLegFails: a model that fails costs the vectors, not the answer.
func TestVectorLegFails(t *testing.T) {
	x := newIndex(t, shop(t), nil)
	x.options.Embedder = failing{x.options.Embedder}
	a, err := x.Search(context.Background(), Query{Text: "shopping cart"})
	if err != nil || len(a.Tools) != 3 || a.Tools[0].ID != "s:add_to_cart" || len(a.Degraded) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestSync(t *testing.T) {
	ctx := context.Background()
	e := &testutil.HashEmbedder{}
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	x := New(k, Options{Embedder: e})
	tools := shop(t)
	if err := x.Sync(ctx, tools, nil); err != nil || e.Embedded() != 2*8 {
		t.Fatalf("%d texts embedded, want 16, %v", e.Embedded(), err)
	}
	before := e.Embedded()
	if err := x.Sync(ctx, tools, nil); err != nil || e.Embedded() != before {
		t.Errorf("an unchanged catalogue embeds %d texts, %v", e.Embedded()-before, err)
	}
	tools[0].Description = "Look for wares"
	if err := x.Sync(ctx, tools[:7], nil); err != nil || e.Embedded() != before+2 || x.Len() != 7 {
		t.Errorf("one changed tool embeds %d texts of 2, %d tools, %v", e.Embedded()-before, x.Len(), err)
	}
	for _, text := range []string{"put a build online", "deploy"} {
		r, err := x.Rank(ctx, text, Terms{})
		if err != nil || slices.Contains(ids(r.Candidates), "s:deploy") {
			t.Errorf("a removed tool is found: %v, %v", ids(r.Candidates), err)
		}
	}
	// After an error the rest is made up for.
	broken := errors.New("broken")
	e.Before = func([]string) error { return broken }
	if err := x.Sync(ctx, shop(t), nil); !errors.Is(err, broken) {
		t.Fatalf("error %v, want it passed on", err)
	}
	if a, err := x.Search(ctx, Query{Text: "build online"}); err != nil || a.Tools[0].ID != "s:deploy" || len(a.Degraded) == 0 {
		t.Errorf("before its vectors: %+v, %v", a, err)
	}
	e.Before = nil
	if err := x.Sync(ctx, shop(t), nil); err != nil {
		t.Fatal(err)
	}
	if a, err := x.Search(ctx, Query{Text: "build online", Explain: true}); err != nil || a.Tools[0].ID != "s:deploy" || len(a.Degraded) != 0 || a.Tools[0].Explain.Whole.Imputed {
		t.Errorf("after its vectors: %+v, %v", a, err)
	}
}

// vectorMap is a legs.Cache.
type vectorMap map[[32]byte][]float32

func (m vectorMap) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	for i, k := range keys {
		vectors[i] = m[k]
	}
	return vectors, nil
}

func (m vectorMap) Put(keys [][32]byte, vectors [][]float32) error {
	for i, k := range keys {
		m[k] = vectors[i]
	}
	return nil
}

// TestUpdateAnswersBeforeVectors: Update makes tools findable by keyword and by
// the vectors that are known, Embed makes the others while searches and
// updates go on.
func TestUpdateAnswersBeforeVectors(t *testing.T) {
	ctx := context.Background()
	open := func(e *testutil.HashEmbedder, cache vectorMap) *Index {
		k, err := keyword.Memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		x := New(k, Options{Embedder: e, Cache: cache})
		return x
	}
	cache, e := vectorMap{}, &testutil.HashEmbedder{}
	x := open(e, cache)
	tools := shop(t)
	if err := x.Update(ctx, tools, nil); err != nil || x.Missing() != 8 || e.Embedded() != 0 {
		t.Fatalf("%d of 8 vectors missing, %d texts embedded, %v", x.Missing(), e.Embedded(), err)
	}
	early := x.WithUsage(nil)
	if a, err := early.Search(ctx, Query{Text: "shopping cart"}); err != nil || len(a.Tools) != 3 || !slices.Equal(a.Degraded, []string{"vectors"}) {
		t.Errorf("before the vectors: %+v, %v", a, err)
	}
	// While the batch is embedded one of its tools changes and one leaves.
	changed := slices.Clone(tools[:7])
	changed[0].Description = "Look for wares"
	e.Before = func([]string) error {
		e.Before = nil
		return x.Update(ctx, changed, nil)
	}
	if err := x.Embed(ctx, nil); err != nil || x.Missing() != 0 || e.Embedded() != 2*8+1 { // the name stays
		t.Errorf("%d vectors missing, %d texts embedded of 17, %v", x.Missing(), e.Embedded(), err)
	}
	if a, err := early.Search(ctx, Query{Text: "shopping cart"}); err != nil || len(a.Degraded) != 0 {
		t.Errorf("an index made before the vectors were: %v, %v, want it to see them", a.Degraded, err)
	}
	vector, err := e.EmbedQuery(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	h, err := x.legs.Search(ctx, query.Query{}, vector, 100)
	if err != nil || len(h.Cosines[0]) != 7 || len(h.Cosines[1]) != 7 {
		t.Errorf("%d and %d vectors, %v, want those of the 7 tools there are", len(h.Cosines[0]), len(h.Cosines[1]), err)
	}
	// Another process: what is known costs nothing.
	e2 := &testutil.HashEmbedder{}
	y := open(e2, cache)
	if err := y.Update(ctx, append(slices.Clone(changed), newTool(t, "refund", "Give money back")), nil); err != nil || y.Missing() != 1 {
		t.Errorf("%d vectors missing, %v, want that of the new tool", y.Missing(), err)
	}
	if err := y.Embed(ctx, nil); err != nil || y.Missing() != 0 || e2.Embedded() != 2 {
		t.Errorf("%d missing, %d texts embedded, %v, want 2", y.Missing(), e2.Embedded(), err)
	}
}

// TestFinalScore is golden vector 41: α .8, semantic .6, graph 1 give .68, and
// .60 without context.
func TestFinalScore(t *testing.T) {
	cs := []Candidate{{ID: "a", Hybrid: .6, Alpha: .8, Graph: 1}, {ID: "b", Hybrid: .6, Alpha: 1}}
	rescore(cs)
	if got := [2]float64{cs[0].Final, cs[1].Final}; math.Abs(got[0]-.68) > 1e-12 || got[1] != .6 {
		t.Errorf("final %v, want .68 and .60", got)
	}
}

// TestRankShares: A with final .90 and PageRank .05 ranks .73, B with .75 and
// .80 ranks .76 and before it.
func TestRankShares(t *testing.T) {
	cs := []Candidate{{ID: "a", Hybrid: .9, Alpha: 1, PageRank: .05}, {ID: "b", Hybrid: .75, Alpha: 1, PageRank: .8}}
	rescore(cs)
	if cs[0].ID != "b" || math.Abs(cs[0].Score-.76) > 1e-12 || math.Abs(cs[1].Score-.73) > 1e-12 {
		t.Errorf("%+v", cs)
	}
}

// TestRelatedness is golden vector 40 through a search: one shared neighbour of
// degree 2 gives .7213, a direct edge 1, no context 0.
func TestRelatedness(t *testing.T) {
	g := &graphrank.Graph{}
	g.Set(graphrank.Edge{From: "s:git_clone", To: "s:npm_install", Type: graphrank.Dependency, Source: graphrank.Observed})
	g.Set(graphrank.Edge{From: "s:npm_install", To: "s:deploy", Type: graphrank.Dependency, Source: graphrank.Observed})
	x := newIndex(t, shop(t), newUsage(t, g))
	graph := func(id string, using ...string) float64 {
		t.Helper()
		r, err := x.Rank(context.Background(), "put a build online", Terms{Context: using})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Candidates {
			if c.ID == id {
				return c.Graph
			}
		}
		t.Fatalf("%s is not among %v", id, ids(r.Candidates))
		return 0
	}
	if got := graph("s:deploy", "s:git_clone"); math.Abs(got-.7213475) > 1e-6 {
		t.Errorf("one shared neighbour: %.6f, want .721348", got)
	}
	if got := graph("s:deploy", "s:npm_install"); got != 1 {
		t.Errorf("direct edge: %v, want 1", got)
	}
	if got := graph("s:deploy"); got != 0 {
		t.Errorf("no context: %v, want 0", got)
	}
	if got := graph("s:deploy", "s:unknown"); got != 0 {
		t.Errorf("unknown context: %v, want 0", got)
	}
}

// TestInjection: what lies between the tool in use and the one asked for is
// found although no word of it is, and the context is no result.
func TestInjection(t *testing.T) {
	g := &graphrank.Graph{}
	g.Set(graphrank.Edge{From: "s:git_clone", To: "s:npm_install", Type: graphrank.Dependency, Source: graphrank.Observed})
	g.Set(graphrank.Edge{From: "s:npm_install", To: "s:deploy", Type: graphrank.Dependency, Source: graphrank.Observed})
	x := newIndex(t, shop(t), newUsage(t, g))
	a, err := x.Search(context.Background(), Query{Text: "put a build online", ContextTools: []string{"s:git_clone"}, IncludeRelated: true, Explain: true})
	if err != nil || len(a.Tools) < 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	var found []string
	for _, f := range a.Tools {
		found = append(found, f.ID)
	}
	if slices.Contains(found, "s:git_clone") || !slices.Contains(found[:2], "s:npm_install") || !slices.Contains(found[:2], "s:deploy") {
		t.Errorf("found %v, want deploy and npm_install first and no git_clone", found)
	}
	for _, f := range a.Tools {
		if f.ID == "s:npm_install" {
			if e := f.Explain; e.Injected <= 0 || math.Abs(e.recompute()-f.Score) > 1e-9 {
				t.Errorf("%+v", e)
			}
			want := []Related{{"s:git_clone", "often_before", .8}, {"s:deploy", "often_after", .8}}
			if !cmp.Equal(f.Related, want) {
				t.Errorf("related %v, want %v", f.Related, want)
			}
		}
	}
}

func TestMemoryLifts(t *testing.T) {
	traces := []Trace{
		{Intent: "where did my order go", Tools: []string{"s:checkout", "s:track_parcel"}, Edges: [][2]int{{0, 1}}},
		{Intent: "buy these lovely shoes", Tools: []string{"s:add_to_cart", "s:checkout"}, Edges: [][2]int{{0, 1}}},
	}
	x := newIndex(t, shop(t), newUsage(t, nil, traces...))
	r, err := x.Rank(context.Background(), "buy lovely shoes", Terms{})
	if err != nil {
		t.Fatal(err)
	}
	got := ids(r.Candidates)[:2]
	slices.Sort(got)
	if !slices.Equal(got, []string{"s:add_to_cart", "s:checkout"}) || r.Trust < .5 {
		t.Errorf("%v with trust %v, want cart and checkout with .5 at least", got, r.Trust)
	}
	if r.Neighbours[0].Intent != "buy these lovely shoes" || r.Candidates[0].Memory <= 0 || r.Candidates[0].Memory > memoryWeight*(1+partVote)+1e-9 {
		t.Errorf("%+v", r.Candidates[0])
	}
	// An intent of another world does not vote.
	r, err = x.Rank(context.Background(), "copy a repository", Terms{})
	if err != nil || r.Trust > .2 || r.Candidates[0].ID != "s:git_clone" {
		t.Errorf("trust %v, first %s, %v", r.Trust, r.Candidates[0].ID, err)
	}
}

// TestVotesFollowTheCatalogue: what is kept of how well tools served past intents does
// not outlive a change of the tools.
func TestVotesFollowTheCatalogue(t *testing.T) {
	ctx := context.Background()
	u := newUsage(t, nil, Trace{Intent: "copy the repository of the shop", Tools: []string{"s:git_clone"}})
	vote := func(x *Index) float64 {
		r, err := x.Rank(ctx, "copy the repository of the office", Terms{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Candidates {
			if c.ID == "s:git_clone" {
				return c.Memory
			}
		}
		return 0
	}
	tools := append(shop(t), newTool(t, "copy_repository", "copy the repository of the shop"))
	x := newIndex(t, shop(t), u)
	before := vote(x)
	if err := x.Sync(ctx, tools, nil); err != nil {
		t.Fatal(err)
	}
	if after, fresh := vote(x), vote(newIndex(t, tools, newUsage(t, nil, Trace{Intent: "copy the repository of the shop", Tools: []string{"s:git_clone"}}))); after != fresh {
		t.Errorf("vote %v, then with a tool more %v, want %v", before, after, fresh)
	}
}

func TestClosure(t *testing.T) {
	x := newIndex(t, shop(t), nil)
	r, err := x.Rank(context.Background(), "where is my parcel", Suggesting(nil))
	if err != nil || !slices.Equal(ids(r.Candidates)[:2], []string{"s:track_parcel", "s:login"}) {
		t.Errorf("%v, %v; want the parcel and the login it needs", ids(r.Candidates), err)
	}
	if c := r.Candidates[1]; c.Closure <= 0 || c.Closure > closureWeight {
		t.Errorf("closure %v, want it in (0, %v]", c.Closure, closureWeight)
	}
	x.now.Store(&contents{needs: map[string][]string{"a": {"b", "c"}, "b": {"a", "d"}}})
	got, at := x.Needs("a")
	if !slices.Equal(got, []string{"b", "c", "d"}) || !slices.Equal(at, []int{1, 1, 2}) {
		t.Errorf("closure %v at %v", got, at)
	}
}

func TestUsageOfTraces(t *testing.T) {
	ctx := context.Background()
	u := newUsage(t, nil)
	bad := []Trace{{Intent: "x", Tools: []string{"a"}}, {Intent: "y", Tools: []string{"a"}, Edges: [][2]int{{0, 1}}}}
	if err := u.Add(ctx, nil, bad); err == nil || len(u.memory.traces) != 0 || len(u.uses) != 0 {
		t.Errorf("a bad trace: %v, %d remembered", err, len(u.memory.traces))
	}
	traces := []Trace{{Intent: "one", Tools: []string{"a", "b", "a"}, Edges: [][2]int{{0, 1}}}, {Tools: []string{"a", "b"}}}
	edge := graphrank.Edge{From: "a", To: "b", Type: graphrank.Sequence, Source: graphrank.Observed, Count: 2}
	for range 2 { // the second changes nothing
		if err := u.Add(ctx, []graphrank.Edge{edge}, append(traces, traces[0])); err != nil {
			t.Fatal(err)
		}
	}
	if u.EdgeCount() != 1 || len(u.memory.traces) != 1 || u.Linked("a", "b") != 1 || u.Order("a", "b") != 2./3 || u.Order("b", "a") != -2./3 {
		t.Errorf("%d edges, %d remembered, linked %v, order %v", u.EdgeCount(), len(u.memory.traces), u.Linked("a", "b"), u.Order("a", "b"))
	}
	if got := u.transitions([]string{"a"}, []float64{1})["b"]; got != 2./3 {
		t.Errorf("P(b|a) = %v, want 2/3", got)
	}
}

// TestKeywordWeight holds the bounds of the trust.
func TestKeywordWeight(t *testing.T) {
	for _, c := range []struct{ evidence, want float64 }{{0, .05}, {.75, .05}, {1.5, .25}, {2.25, .45}, {9, .45}} {
		if got := keywordWeight(c.evidence); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("keywordWeight(%v) = %v, want %v", c.evidence, got, c.want)
		}
	}
}

// randomIndex makes tools, a graph and traces of few words, so that there are ties.
func randomIndex(t *testing.T, seed uint64, learnt bool) (*Index, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 7))
	var tools []catalog.Tool
	for i := range 5 + r.IntN(40) {
		tools = append(tools, newTool(t, fmt.Sprintf("tool_%d_%s", i, strings.ToLower(strings.Fields(testutil.Sentence(r, 1))[0])), testutil.Sentence(r, r.IntN(8))))
	}
	if !learnt {
		return newIndex(t, tools, newUsage(t, nil)), r
	}
	var traces []Trace
	for range 10 {
		var calls []string
		for range 1 + r.IntN(4) {
			calls = append(calls, tools[r.IntN(len(tools))].ID)
		}
		traces = append(traces, Trace{Intent: testutil.Sentence(r, 6), Tools: calls})
	}
	g := &graphrank.Graph{}
	for _, trace := range traces {
		for i, id := range trace.Tools {
			if g.AddNode(id); i > 0 {
				g.Observe(trace.Tools[i-1], id, graphrank.Sequence)
			}
		}
	}
	return newIndex(t, tools, newUsage(t, g, traces...)), r
}

// TestColdOrderIsHybrid: with nothing learnt, every term leaves the order, and
// the scores but for their fixed share, as hybrid search has them.
func TestColdOrderIsHybrid(t *testing.T) {
	for seed := range uint64(60) {
		x, r := randomIndex(t, seed, false)
		bare := x.WithUsage(nil)
		text := testutil.Sentence(r, 1+r.IntN(12))
		context_ := []string{x.now.Load().tools[0].ID}
		for _, terms := range []Terms{{}, Suggesting(nil), {OwnContext: true, Transitions: true}, {Context: context_}} {
			got, err := x.Rank(context.Background(), text, terms)
			if err != nil {
				t.Fatal(err)
			}
			want, err := bare.Rank(context.Background(), text, Terms{})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(got.Candidates)
			b, _ := json.Marshal(want.Candidates)
			if string(a) != string(b) {
				t.Fatalf("seed %d %q %+v: order\n%v\nwant\n%v", seed, text, terms, ids(got.Candidates), ids(want.Candidates))
			}
		}
	}
}

// TestExplainAddsUp: the components give the score, whatever has been learnt,
// and the same question the same answer.
func TestExplainAddsUp(t *testing.T) {
	n := 0
	for seed := range uint64(40) {
		x, r := randomIndex(t, seed, true)
		text := testutil.Sentence(r, 1+r.IntN(15))
		for _, terms := range []Terms{{}, {Context: []string{x.now.Load().tools[0].ID, "unknown"}}, Suggesting(nil), {Legs: KeywordOnly}, {Legs: SemanticOnly}} {
			got, err := x.Rank(context.Background(), text, terms)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range got.Candidates {
				n++
				if d := math.Abs(c.recompute() - c.Score); !(d <= 1e-9) || c.Memory > 1.2+1e-9 || c.Transition > .48+1e-9 || c.Graph > 1 {
					t.Fatalf("seed %d: off by %g: %+v", seed, d, c)
				}
				if _, ok := x.Tool(c.ID); !ok || i > 0 && got.Candidates[i-1].Score < c.Score {
					t.Fatalf("seed %d: %s unknown or out of order", seed, c.ID)
				}
			}
			again, _ := x.Rank(context.Background(), text, terms)
			if !cmp.Equal(ids(got.Candidates), ids(again.Candidates)) {
				t.Fatalf("seed %d: two answers to one question", seed)
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d hits, want at least 1000", n)
	}
}

// recompute returns the score computed from the components.
func (c *Candidate) recompute() float64 {
	blend := func(l Leg) float64 { return (1-l.KeywordWeight)*l.Vector + l.KeywordWeight*l.Keyword }
	hybrid := blend(c.Whole)
	if c.Part != nil {
		hybrid = (hybrid + partWeight*blend(*c.Part)) / (1 + partWeight)
	}
	final := max(c.Alpha*hybrid+(1-c.Alpha)*c.Graph, c.Injected)
	return FinalShare*final + pageRankShare*c.PageRank + c.Memory + c.Transition + c.Closure
}

// TestTraceWithoutVector: a past intent whose vector could not be computed votes by its words.
func TestTraceWithoutVector(t *testing.T) {
	broken := &testutil.HashEmbedder{Before: func([]string) error { return errors.New("out of order") }}
	u, err := NewUsage(t.Context(), nil, []Trace{{Intent: "buy these lovely shoes", Tools: []string{"s:checkout"}}}, broken, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newIndex(t, shop(t), u).Rank(t.Context(), "buy lovely shoes", Terms{})
	if err != nil || len(r.Neighbours) != 1 || u.Missing() == 0 {
		t.Errorf("ranking %+v, %d texts without vectors, error %v", r, u.Missing(), err)
	}
}
