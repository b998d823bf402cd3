package toolsearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
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
	strangeSimilarity = 0.35
	sureSimilarity    = 0.65
	// partVote is the weight of the vote of the parts, relative to that of the whole.
	partVote = 0.5
	// A vote has full weight if 1/enoughSupport of the other votes name the same tool, or
	// if the similarity of the remembered intent is sameSimilarity above sureSimilarity.
	// Without either it has leastShare of its weight. The weight falls by the factor e for
	// each aloneTolerance (and up to supportTolerance more with support or similarity) by
	// which the tool fits the new intent worse than the remembered one. The reason is that
	// sibling tools of a catalogue are near each other's intents. benchmarks/toolquality.md
	// compares other values.
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
	traces  []*Trace
	ids     []string       // IDs of the traces in the indexes
	sizes   []int          // numbers of their parts in the store parts
	at      map[string]int // positions in traces, by ID
	keyword *keyword.Index
	intents *flat.Store
	parts   *flat.Store // chunk "trace/part"

	shortfalls shortfalls
}

// recall is the result of a vote for an intent.
type recall struct {
	neighbours []Neighbour // best first
	trust      float64     // in [0, 1]
	votes      map[string]float64
}

func newMemory(dimension int) (*memory, error) {
	k, err := keyword.Memory()
	if err != nil {
		return nil, err
	}
	m := &memory{keyword: k, at: map[string]int{}}
	if dimension > 0 {
		m.intents, m.parts = flat.Memory(dimension), flat.Memory(dimension)
	}
	return m, nil
}

// learn adds traces. e is nil without an embedder.
func (m *memory) learn(ctx context.Context, traces []*Trace, e models.Embedder, cache VectorCache) error {
	entries := make([]store.KeywordEntry, len(traces))
	var texts, ids []string // texts as Texts lists them
	var isPart []bool
	names := m.name(traces)
	sizes := make([]int, len(traces))
	for n, t := range traces {
		id := names[n]
		entries[n] = store.KeywordEntry{Chunk: id, Body: plain(t.Intent)}
		texts, ids, isPart = append(texts, t.Intent), append(ids, id), append(isPart, false)
		for i, p := range Parts(t.Intent) {
			texts, ids, isPart = append(texts, p.Text), append(ids, id+"/"+strconv.Itoa(i)), append(isPart, true)
			sizes[n] = i + 1
		}
	}
	var whole, parts []store.VectorEntry
	if e != nil {
		for done := 0; done < len(texts); done += vectorBatch {
			end := min(done+vectorBatch, len(texts))
			vectors, err := embedAll(ctx, e, cache, texts[done:end])
			if err != nil {
				return fmt.Errorf("embedding past intents: %w", err)
			}
			for n, v := range vectors {
				entry := store.VectorEntry{Chunk: ids[done+n], Path: ids[done+n], Vector: v}
				if isPart[done+n] {
					parts = append(parts, entry)
				} else {
					whole = append(whole, entry)
				}
			}
		}
	}
	if err := m.keyword.Update(ctx, entries, nil); err != nil {
		return err
	}
	if e != nil {
		if err := m.intents.Update(ctx, whole, nil); err != nil {
			return err
		}
		if err := m.parts.Update(ctx, parts, nil); err != nil {
			return err
		}
	}
	for n, id := range names {
		m.at[id] = len(m.traces) + n
	}
	m.traces, m.ids, m.sizes = append(m.traces, traces...), append(m.ids, names...), append(m.sizes, sizes...)
	return nil
}

// name returns new IDs for traces. IDs break ties, so they depend on the content of a trace
// and not on the time when it was learnt.
func (m *memory) name(traces []*Trace) []string {
	ids := make([]string, len(traces))
	taken := map[string]bool{}
	for n, t := range traces {
		sum := sha256.Sum256([]byte(t.key()))
		base := hex.EncodeToString(sum[:12])
		ids[n] = base
		for i := 1; taken[ids[n]] || m.knows(ids[n]); i++ {
			ids[n] = base + "." + strconv.Itoa(i)
		}
		taken[ids[n]] = true
	}
	return ids
}

func (m *memory) knows(id string) bool { _, ok := m.at[id]; return ok }

// recall computes the vote for an intent. vector and parts are the vectors of the intent
// and of its parts, nil without an embedder. The weight of a vote depends on how well the
// tool fits the intent, compared with the remembered one, by the vectors of tools in x.
func (m *memory) recall(ctx context.Context, intent string, vector []float32, parts [][]float32, x *Index) (recall, error) {
	r := recall{votes: map[string]float64{}}
	if len(m.traces) == 0 {
		return r, ctx.Err()
	}
	if m.intents == nil { // the memory has no vectors, even if the index has
		vector, parts = nil, nil
	}
	const depth = 4 * voters
	cosines := map[int]float64{}
	ratios := map[int]float64{}
	if vector != nil {
		hits, err := m.intents.Search(ctx, vector, depth, store.Filter{})
		if err != nil {
			return r, err
		}
		for _, h := range hits {
			cosines[m.number(h.Chunk)] = clip(h.Score)
		}
	}
	asked := query.Query{Words: plain(intent)}
	hits, err := m.keyword.Search(ctx, asked, depth, store.Filter{})
	if err != nil {
		return r, err
	}
	ideal, err := m.ideal(asked)
	if err != nil {
		return r, err
	}
	for _, h := range hits {
		n := m.number(h.Chunk)
		ratios[n] = min(1, h.Score/ideal)
		if _, ok := cosines[n]; !ok {
			cosines[n] = math.NaN()
		}
	}
	if vector != nil {
		if err := m.complete(ctx, vector, cosines); err != nil {
			return r, err
		}
	}
	for n, c := range cosines {
		s := ratios[n]
		if vector != nil {
			s = cosineShare*c + (1-cosineShare)*ratios[n]
		}
		r.neighbours = append(r.neighbours, Neighbour{Trace: m.traces[n], Intent: m.traces[n].Intent, Similarity: s, number: n})
	}
	// Break ties by content, because numbers depend on the order of learning.
	slices.SortFunc(r.neighbours, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), strings.Compare(a.Intent, b.Intent), slices.Compare(a.Trace.Tools, b.Trace.Tools))
	})
	r.neighbours = r.neighbours[:min(len(r.neighbours), voters)]
	if len(r.neighbours) == 0 {
		return r, nil
	}
	var sum float64
	for i := range r.neighbours {
		n := &r.neighbours[i]
		n.Weight = math.Pow(n.Similarity, voteSharpness)
		sum += n.Weight
	}
	if sum == 0 {
		r.neighbours = nil
		return r, nil
	}
	e := &election{memory: m, index: x, known: map[int]map[string]float64{}}
	if vector != nil && x.stores.Names != nil {
		if e.units = [][]float32{vector}; len(parts) > 1 {
			e.units = append(e.units, parts...)
		}
	}
	r.trust = clip((r.neighbours[0].Similarity - strangeSimilarity) / (sureSimilarity - strangeSimilarity))
	var raw []vote
	for i := range r.neighbours {
		n := &r.neighbours[i]
		n.Weight /= sum
		raw = append(raw, vote{n.number, n.Similarity, n.Weight})
	}
	kept, err := e.votes(ctx, raw, r.votes)
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

// ideal approximates the BM25 score of the query for its own text: every term occurs once,
// in a text of average length.
func (m *memory) ideal(q query.Query) (float64, error) {
	stats, n, err := m.keyword.Stats(q)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, s := range stats {
		df := float64(max(1, s.DocFreq))
		sum += math.Log1p((float64(n) - df + 0.5) / (df + 0.5))
	}
	return max(0.4*sum, 1e-9), nil // 0.4 = 1/(1+k1)
}

// complete replaces the cosines that are NaN.
func (m *memory) complete(ctx context.Context, vector []float32, cosines map[int]float64) error {
	var ids []string
	for n, c := range cosines {
		if math.IsNaN(c) {
			ids = append(ids, m.ids[n])
		}
	}
	scores, err := m.intents.Scores(ctx, vector, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		cosines[m.at[id]] = clip(scores[i])
	}
	return nil
}

// voteParts adds the votes of the parts of past intents for the parts of this one. Each
// tool gets its best vote of any part.
func (m *memory) voteParts(ctx context.Context, parts [][]float32, votes map[string]float64, e *election) error {
	best := map[string]float64{}
	for _, v := range parts {
		hits, err := m.parts.Search(ctx, v, 4*voters, store.Filter{})
		if err != nil {
			return err
		}
		seen := map[int]bool{}
		var raw []vote
		var sum float64
		for _, h := range hits {
			n := m.number(h.Chunk)
			if seen[n] || len(seen) == voters {
				continue
			}
			seen[n] = true
			w := math.Pow(clip(h.Score), voteSharpness)
			sum += w
			raw = append(raw, vote{n, h.Score, w})
		}
		if sum == 0 {
			continue
		}
		for i := range raw {
			raw[i].weight /= sum
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

// number returns the position of the trace of a chunk.
func (m *memory) number(chunk string) int {
	id, _, _ := strings.Cut(chunk, "/")
	return m.at[id]
}
