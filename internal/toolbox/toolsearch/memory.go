package toolsearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/store/legs"
	"cairn/internal/text/query"
	"cairn/models"
)

// Constants of the vote. The nearest past intents vote, weighted by a power of their
// similarity, which blends cosine and keywords. Trust in the vote is 1 if the similarity of
// the nearest is at least sureSimilarity, and 0 at strangeSimilarity.
const (
	voters            = 15
	voteSharpness     = 8
	cosineShare       = 0.6
	strangeSimilarity = 0.4
	sureSimilarity    = 0.7
	// partVote is the weight of the vote of the parts, relative to that of the whole.
	partVote = 0.5
	// A vote has full weight if 1/enoughSupport of the other votes name the same tool, or if
	// the remembered intent is sameSimilarity above sureSimilarity, and else leastShare of it.
	// The weight falls by the factor e for each aloneTolerance (up to supportTolerance more
	// with support or similarity) by which the tool fits the new intent worse than the
	// remembered one, because sibling tools are near each other's intents.
	leastShare       = 0.10
	enoughSupport    = 4
	sameSimilarity   = 0.25
	aloneTolerance   = 0.01
	supportTolerance = 0.50
)

// Trace is an intent and the tools that served it, in order.
type Trace struct {
	Intent string `json:"intent"`
	// Tools holds an ID for each call. A tool may be called more than once.
	Tools []string `json:"tools"`
	// Edges holds pairs of positions in Tools. The second waited for the first.
	Edges [][2]int `json:"edges,omitempty"`
}

// Neighbour is a past intent similar to the query.
type Neighbour struct {
	Trace      *Trace  `json:"-"`
	Intent     string  `json:"intent"`
	Similarity float64 `json:"similarity"`
	// Weight is its share of the vote. The weights of all neighbours sum to 1.
	Weight float64 `json:"weight"`

	number int // position of the trace in the memory
}

// memory finds traces by similarity. It is not safe for concurrent mutation.
type memory struct {
	traces  []remembered
	at      map[string]int // positions in traces, by id
	keyword *keyword.Index // of intents
	intents *legs.Legs
	parts   *legs.Legs // vectors of the parts, by partID
	vectors bool       // whether there is an embedder

	shortfalls *lru.Cache[shortfallKey, []float64] // results of shortfall
}

// remembered is a trace in the memory.
type remembered struct {
	*Trace
	id    string // depends on the content alone, because it breaks ties
	parts int    // number of parts of the intent
}

// recall is the result of a vote for an intent.
type recall struct {
	neighbours []Neighbour // best first
	trust      float64     // in [0, 1]
	votes      map[string]float64
}

func newMemory(e models.Embedder, cache legs.Cache) (*memory, error) {
	k, err := keyword.Memory()
	if err != nil {
		return nil, err
	}
	m := &memory{keyword: k, at: map[string]int{}, vectors: e != nil}
	m.intents, m.parts = legs.New(1, legs.Options{Keyword: k, Embedder: e, Cache: cache}), legs.New(1, legs.Options{Embedder: e, Cache: cache})
	m.shortfalls, err = lru.New[shortfallKey, []float64](knownShortfalls)
	return m, err
}

// missing returns the number of texts without vectors.
func (m *memory) missing() int { return m.intents.Missing() + m.parts.Missing() }

// index adds traces to the indexes. recall ignores them until the caller has called learn.
func (m *memory) index(ctx context.Context, traces []*Trace) ([]remembered, error) {
	list := make([]remembered, len(traces))
	var intents, parts []legs.Entry
	for n := range list {
		t := &list[n]
		sum := sha256.Sum256([]byte(traces[n].key()))
		t.Trace, t.id = traces[n], hex.EncodeToString(sum[:12])
		intents = append(intents, legs.Entry{ID: t.id, Words: store.KeywordEntry{Body: plain(t.Intent)}, Texts: []string{t.Intent}})
		for _, text := range clauses(t.Intent) {
			parts = append(parts, legs.Entry{ID: partID(t.id, t.parts), Texts: []string{text}})
			t.parts++
		}
	}
	err := m.intents.Add(ctx, intents)
	if err == nil {
		err = m.parts.Add(ctx, parts)
	}
	if err != nil {
		return nil, fmt.Errorf("indexing past intents: %w", err)
	}
	return list, nil
}

// learn adds traces that are in the indexes.
func (m *memory) learn(list []remembered) {
	for _, t := range list {
		m.at[t.id] = len(m.traces)
		m.traces = append(m.traces, t)
	}
}

// partID returns the id of part i of a trace.
func partID(trace string, i int) string { return trace + "/" + strconv.Itoa(i) }

// recall computes the vote for an intent. vector and parts are the vectors of the intent
// and of its parts, nil without an embedder. The weight of a vote depends on how well the
// tool fits the intent, compared with the remembered one, by the vectors of tools in x.
func (m *memory) recall(ctx context.Context, intent string, vector []float32, parts [][]float32, x *Index) (recall, error) {
	r := recall{votes: map[string]float64{}}
	if len(m.traces) == 0 {
		return r, ctx.Err()
	}
	if !m.vectors || m.missing() > inlineTexts {
		vector, parts = nil, nil
	}
	var err error
	if r.neighbours, err = m.similar(ctx, query.Query{Words: plain(intent)}, vector); err != nil {
		return r, err
	}
	r.neighbours = r.neighbours[:min(len(r.neighbours), voters)]
	if !weigh(r.neighbours) {
		r.neighbours = nil
		return r, nil
	}
	e := &election{memory: m, index: x, known: map[int]map[string]float64{}}
	if vector != nil {
		if e.units = [][]float32{vector}; len(parts) > 1 {
			e.units = append(e.units, parts...)
		}
	}
	r.trust = clip((r.neighbours[0].Similarity - strangeSimilarity) / (sureSimilarity - strangeSimilarity))
	kept, err := e.votes(ctx, r.neighbours, r.votes)
	if err != nil {
		return r, err
	}
	r.trust *= kept
	if len(parts) > 0 {
		if err := m.voteParts(ctx, parts, r.votes, e); err != nil {
			return r, err
		}
	}
	for t := range r.votes {
		r.votes[t] *= r.trust
	}
	return r, nil
}

// weigh sets the weights of the votes of past intents, whose sum is 1. It reports whether one has a
// similarity.
func weigh(list []Neighbour) bool {
	var sum float64
	for i := range list {
		list[i].Weight = math.Pow(clip(list[i].Similarity), voteSharpness)
		sum += list[i].Weight
	}
	for i := range list {
		list[i].Weight /= max(sum, math.SmallestNonzeroFloat64)
	}
	return sum > 0
}

// ideal approximates the BM25 score of the query for its own text: every term occurs once,
// in a text of average length.
func (m *memory) ideal(q query.Query) (float64, error) {
	stats, n, err := m.keyword.Stats(q)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, s := range stats {
		df := float64(max(1, s.Chunks))
		sum += math.Log1p((float64(n) - df + 0.5) / (df + 0.5))
	}
	return max(0.4*sum, 1e-9), nil // 0.4 = 1/(1+k1)
}

// similar returns the most similar past intents, the best first.
func (m *memory) similar(ctx context.Context, q query.Query, vector []float32) (list []Neighbour, err error) {
	const depth = 4 * voters
	h, err := m.intents.Search(ctx, q, vector, depth)
	if err != nil {
		return nil, err
	}
	ideal, err := m.ideal(q)
	if err != nil {
		return nil, err
	}
	found := h.Words
	if vector != nil {
		if err := m.intents.Complete(ctx, &h, vector, slices.Collect(maps.Keys(h.Words))); err != nil {
			return nil, err
		}
		found = h.Cosines[0]
	}
	for id := range found {
		n, known := m.at[id]
		if !known {
			continue // it is being added
		}
		s := min(1, h.Words[id]/ideal)
		if vector != nil {
			s = cosineShare*clip(h.Cosines[0][id]) + (1-cosineShare)*s
		}
		list = append(list, Neighbour{Trace: m.traces[n].Trace, Intent: m.traces[n].Intent, Similarity: s, number: n})
	}
	// Break ties by content, because numbers depend on the order of learning.
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), strings.Compare(a.Intent, b.Intent), slices.Compare(a.Trace.Tools, b.Trace.Tools))
	})
	return list, nil
}

// voteParts adds the votes of the parts of past intents for the parts of this one. Each
// tool gets its best vote of any part.
func (m *memory) voteParts(ctx context.Context, parts [][]float32, votes map[string]float64, e *election) error {
	best := map[string]float64{}
	for _, v := range parts {
		h, err := m.parts.Search(ctx, query.Query{}, v, 4*voters)
		if err != nil {
			return err
		}
		near := h.Cosines[0]
		seen := map[int]bool{}
		var raw []Neighbour
		for _, part := range slices.SortedFunc(maps.Keys(near), func(a, b string) int { return cmp.Or(cmp.Compare(near[b], near[a]), cmp.Compare(a, b)) }) {
			id, _, _ := strings.Cut(part, "/")
			n, known := m.at[id]
			if !known || seen[n] || len(seen) == voters {
				continue
			}
			seen[n] = true
			raw = append(raw, Neighbour{Trace: m.traces[n].Trace, Similarity: near[part], number: n})
		}
		if !weigh(raw) {
			continue
		}
		own := map[string]float64{}
		if _, err := e.votes(ctx, raw, own); err != nil {
			return err
		}
		for t, w := range own {
			best[t] = max(best[t], w)
		}
	}
	for t, w := range best {
		votes[t] += partVote * w
	}
	return nil
}
