package toolsearch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cairn/graphrank"
	"cairn/internal/base/job"
	"cairn/internal/store/legs"
	"cairn/models"
)

// Usage holds the co-usage graph, and past intents with the tools that served them, in
// memory. The caller stores the graph and the traces, and passes them to NewUsage. It is
// safe for concurrent use.
type Usage struct {
	adding  sync.Mutex // held by Add; guards known
	ranking sync.Mutex // held by pageRank, which writes ranks and changes under mu.RLock

	mu      sync.RWMutex
	graph   *graphrank.Graph
	memory  *memory
	uses    map[string]float64            // number of traces with a tool
	allUses float64                       // their sum
	coUses  map[string]map[string]float64 // number of traces with both tools
	before  map[[2]string]float64         // traces in which the first comes before the second
	linked  map[[2]string]float64         // traces in which the second waits for the first
	sizes   []float64                     // number of remembered intents by number of tools
	known   map[string]bool               // keys of the traces added by Add
	ranks   map[string]float64            // PageRank; nil until it is computed
	changes int                           // number of edges observed since then
}

// rerankShare is the share of new edges above which PageRank is recomputed. PageRank
// changes slowly, and its computation takes a second for a large graph.
const rerankShare = 0.01

// inlineTexts bounds the texts of past intents that Add embeds, which takes some tens of
// milliseconds. With more texts without vectors, past intents are found by words alone.
const inlineTexts = 32

// NewUsage returns a Usage with a graph, which the caller must not use afterwards, and
// traces, which the graph already includes; see Add. A nil graph is empty. Without an
// embedder, past intents are found by words alone. The caller closes the embedder and the
// cache.
func NewUsage(ctx context.Context, graph *graphrank.Graph, traces []Trace, e models.Embedder, cache legs.Cache) (*Usage, error) {
	graph = cmp.Or(graph, &graphrank.Graph{})
	m, err := newMemory(e, cache)
	if err != nil {
		return nil, err
	}
	u := &Usage{graph: graph, memory: m, uses: map[string]float64{}, coUses: map[string]map[string]float64{},
		before: map[[2]string]float64{}, linked: map[[2]string]float64{}, known: map[string]bool{}}
	if err := u.Add(ctx, nil, traces); err != nil {
		return nil, err
	}
	return u, nil
}

// Missing returns the number of texts of past intents without vectors.
func (u *Usage) Missing() int { return u.memory.missing() }

// Embed computes the missing vectors, see Index.Embed.
func (u *Usage) Embed(ctx context.Context, progress func(job.Progress)) error {
	done, total := 0, u.Missing()
	for _, l := range []*legs.Legs{u.memory.intents, u.memory.parts} {
		before := done
		err := l.Embed(ctx, func(n, _ int) {
			if done = before + n; progress != nil {
				progress(job.Progress{Phase: "tools intents", Done: done, Total: total})
			}
		})
		if err != nil {
			return fmt.Errorf("embedding past intents: %w", err)
		}
	}
	return nil
}

// key identifies a trace.
func (t *Trace) key() string { return t.Intent + "\x00" + strings.Join(t.Tools, "\x00") }

// CheckTrace returns an error for a trace without tools, or with an edge out of range.
func CheckTrace(t Trace) error {
	if len(t.Tools) == 0 || slices.Contains(t.Tools, "") {
		return fmt.Errorf("a trace of intent %.40q without a tool's id", t.Intent)
	}
	for _, e := range t.Edges {
		if e[0] < 0 || e[1] < 0 || e[0] >= len(t.Tools) || e[1] >= len(t.Tools) {
			return fmt.Errorf("edge %v of intent %.40q leads out of its %d tools", e, t.Intent, len(t.Tools))
		}
	}
	return nil
}

// Add adds edges with their new counts and traces that the caller has stored since NewUsage.
// It ignores traces that it has added before. The result is that of NewUsage with all edges
// and traces, except that PageRank may lack one edge in a hundred. The cost depends only on
// the arguments. Add embeds few texts; Embed computes the other vectors.
func (u *Usage) Add(ctx context.Context, edges []graphrank.Edge, traces []Trace) error {
	u.adding.Lock()
	defer u.adding.Unlock()
	var fresh []Trace
	keys := map[string]bool{}
	for _, t := range traces {
		if k := t.key(); !u.known[k] && !keys[k] {
			keys[k] = true
			fresh = append(fresh, t)
		}
	}
	if err := u.remember(ctx, fresh); err != nil {
		return err
	}
	maps.Copy(u.known, keys)
	if u.Missing() <= inlineTexts {
		_ = u.Embed(ctx, nil) // after an error, a later Embed tries again
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range edges {
		u.graph.Set(e)
	}
	u.changes += len(edges)
	return ctx.Err()
}

// remember adds traces to the memory and to the counts. Traces without an intent are only
// counted. The caller holds adding.
func (u *Usage) remember(ctx context.Context, traces []Trace) error {
	var known []*Trace
	for i := range traces {
		if err := CheckTrace(traces[i]); err != nil {
			return err
		}
		if t := traces[i]; strings.TrimSpace(plain(t.Intent)) != "" {
			t.Tools, t.Edges = slices.Clone(t.Tools), slices.Clone(t.Edges)
			known = append(known, &t)
		}
	}
	indexed, err := u.memory.index(ctx, known)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.memory.learn(indexed)
	for _, t := range traces {
		u.count(t)
	}
	for _, t := range known {
		n := len(Distinct(t.Tools))
		for len(u.sizes) <= n {
			u.sizes = append(u.sizes, 0)
		}
		u.sizes[n]++
	}
	return nil
}

func (u *Usage) count(t Trace) {
	tools := Distinct(t.Tools)
	for i, a := range tools {
		u.uses[a]++
		u.allUses++
		for _, b := range tools[i+1:] {
			u.before[[2]string{a, b}]++
			for _, pair := range [2][2]string{{a, b}, {b, a}} {
				if u.coUses[pair[0]] == nil {
					u.coUses[pair[0]] = map[string]float64{}
				}
				u.coUses[pair[0]][pair[1]]++
			}
		}
	}
	for _, e := range t.Edges {
		u.linked[[2]string{t.Tools[e[0]], t.Tools[e[1]]}]++
	}
}

// Graph calls fn with the co-usage graph. fn must not keep the graph.
func (u *Usage) Graph(fn func(*graphrank.Graph)) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	fn(u.graph)
}

// Order returns (ab − ba) / (ab + ba + 1), where ab is the number of traces in which a
// came before b, and ba the reverse.
func (u *Usage) Order(a, b string) float64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	f, r := u.before[[2]string{a, b}], u.before[[2]string{b, a}]
	return (f - r) / (f + r + 1)
}

// Linked returns the number of traces in which b waited for a.
func (u *Usage) Linked(a, b string) float64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.linked[[2]string{a, b}]
}

// Sizes returns the numbers of remembered intents with 0, 1, 2, … different tools.
func (u *Usage) Sizes() []float64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return slices.Clone(u.sizes)
}

// fewUses is the weight, in uses of a tool, of the prior that all tools are used equally.
const fewUses = 5

// maturity returns how much usage there is, in [0, 1): m / (m + fewUses) for the mean number
// m of uses of a used tool.
func (u *Usage) maturity() float64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	mean := u.allUses / float64(max(1, len(u.uses)))
	return mean / (mean + fewUses)
}

// pageRank returns the ranks. It recomputes them if the graph has changed enough.
func (u *Usage) pageRank() map[string]float64 {
	u.ranking.Lock()
	defer u.ranking.Unlock()
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.ranks == nil || float64(u.changes) > rerankShare*float64(u.graph.EdgeCount()) {
		u.ranks, u.changes = u.graph.PageRank(), 0
	}
	return u.ranks
}

// transitions returns the tools used in the same traces as the seeds, each with the sum
// over the seeds of weight·P(tool | seed). P is the number of traces with both divided by
// the number of traces with the seed plus one.
func (u *Usage) transitions(seeds []string, weights []float64) map[string]float64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	sums := map[string]float64{}
	for i, s := range seeds {
		for t, n := range u.coUses[s] {
			sums[t] += weights[i] * n / (u.uses[s] + 1)
		}
	}
	return sums
}
