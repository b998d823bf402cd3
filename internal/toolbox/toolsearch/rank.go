package toolsearch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"cairn/graphrank"
	"cairn/models"
)

// Bounds and weights of the terms added to the hybrid search.
const (
	// FinalShare and pageRankShare are the weights of the final score and of PageRank.
	FinalShare    = 0.8
	pageRankShare = 0.2
	// memoryWeight is the weight of the vote of past intents, which is at most 1.5.
	memoryWeight = 0.8
	// transitionWeight is the weight of the transitions.
	transitionWeight = 0.1
	// Each of the best closureRoots tools is the intended one with the probability
	// softmax(score/closureSharpness). The term of a tool, times closureWeight, is the
	// probability that it is the intended tool or declared to be needed by it.
	closureWeight    = 1.6
	closureSharpness = 0.045
	closureRoots     = 10
	closureDecay     = 0.02 // for each step of distance
	// ownContext is the number of best tools that Terms.OwnContext uses as context and
	// that Terms.Transitions starts from.
	ownContext = 3
	// maxInjected bounds the neighbours of the context that become candidates.
	maxInjected = 50
)

// Legs selects the legs of the hybrid search.
type Legs uint8

// The legs. Both is the default.
const (
	Both Legs = iota
	KeywordOnly
	SemanticOnly
)

// Terms selects the terms that Rank adds to the hybrid search. The zero value adds PageRank
// and the memory, and graph relatedness if there are context tools.
type Terms struct {
	// Context lists the IDs of tools in use. Unknown IDs are ignored.
	Context []string
	// OwnContext uses the best three tools of the search as context if no tool of
	// Context is in the graph.
	OwnContext bool
	// Transitions adds the tools used in the same traces as the best three.
	Transitions bool
	// Closure adds the tools that the best tools are declared to need.
	Closure bool
	// NoGraph, NoPageRank and NoMemory disable a term.
	NoGraph, NoPageRank, NoMemory bool
	// Legs restricts the hybrid search.
	Legs Legs
}

// Suggesting returns the terms that package suggest uses.
func Suggesting(context []string) Terms {
	return Terms{Context: context, OwnContext: true, Transitions: true, Closure: true}
}

// Candidate is a tool with every component of its score:
//
//	Hybrid = (Whole.Score + 0.5·Part.Score) / 1.5, or Whole.Score without parts
//	Final  = max(Alpha·Hybrid + (1−Alpha)·Graph, Injected)
//	Score  = 0.8·Final + 0.2·PageRank + Memory + Transition + Closure
type Candidate struct {
	ID string `json:"id"`
	// Whole is the fit to the whole intent, Part the fit to the part that it fits best.
	Whole Leg  `json:"whole"`
	Part  *Leg `json:"part,omitempty"`
	// PartNumber is the position of that part in Ranking.Parts; −1 without parts.
	PartNumber int     `json:"part_number"`
	Hybrid     float64 `json:"hybrid"`
	Alpha      float64 `json:"alpha"`
	Graph      float64 `json:"graph"` // relatedness to the context, in [0, 1]
	// Injected is the score of a tool on a path in the graph between two others: the
	// smaller of their scores times the confidence in the path.
	Injected   float64 `json:"injected,omitempty"`
	Final      float64 `json:"final"`
	PageRank   float64 `json:"pagerank"`
	Memory     float64 `json:"memory"`     // in [0, 1.2]
	Transition float64 `json:"transition"` // in [0, 0.3]
	Closure    float64 `json:"closure"`    // in [0, 1.6]
	Score      float64 `json:"score"`

	partLegs []Leg
}

// PartScores returns the scores for the parts of the intent, in their order. It is empty if
// the intent is one part without values and content of its own.
func (c *Candidate) PartScores() []float64 {
	scores := make([]float64, len(c.partLegs))
	for n := range scores {
		scores[n] = c.partLegs[n].Score
	}
	return scores
}

// PartLeg returns the fit to part n, which is that to the whole intent if PartScores is empty.
func (c *Candidate) PartLeg(n int) *Leg {
	if n < len(c.partLegs) {
		return &c.partLegs[n]
	}
	return &c.Whole
}

// Fit returns the fit to the part that the tool fits best, or to the whole intent without
// parts.
func (c *Candidate) Fit() *Leg {
	if c.Part != nil {
		return c.Part
	}
	return &c.Whole
}

// logitShare is the similarity that one logit of the reader is worth in Unlike.
const logitShare = 0.09

// Unlike reports whether a tool that past intents did not use is too different from part n of the
// intent to serve it. The sum of its similarity to the part, of its keyword score for the whole
// intent times the weight of keywords, and of the logit of both times logitShare is then below the
// model's MinSimilarity. It is false without vectors.
func (r *Ranking) Unlike(c *Candidate, n int, logit float64) bool {
	l := c.PartLeg(n)
	return c.Memory == 0 && c.Transition == 0 && !l.Imputed && len(r.Degraded) == 0 &&
		l.Vector+c.Whole.KeywordWeight*c.Whole.Keyword+logitShare*logit < r.model.NearEnough()
}

// Ranking is the result of Rank.
type Ranking struct {
	Candidates []Candidate // best first, ties by hybrid score, then ID
	Parts      []Part      // of the intent
	// Split is the probability of the parts, in [0, 1].
	Split float64
	// Neighbours holds the past intents that voted. Trust, in [0, 1], is the trust in
	// their votes.
	Neighbours []Neighbour
	Trust      float64
	// Alpha is the share of the hybrid search in the blend with graph relatedness. It is
	// 1 without a known context tool.
	Alpha float64
	// Degraded lists the legs that are missing or incomplete: "vectors".
	Degraded []string

	model models.Description // zero without an embedder
}

// Rank ranks the tools for an intent, at least the best 100 of each leg. The ranking of an
// intent without words is empty.
func (x *Index) Rank(ctx context.Context, intent string, t Terms) (*Ranking, error) {
	r := &Ranking{Alpha: 1}
	if x.Len() == 0 {
		var err error
		r.Parts, r.Split, err = x.Parts(ctx, intent)
		return r, err
	}
	q, err := x.searchIntent(ctx, intent, r, t.Legs)
	if err != nil || len(r.Parts) == 0 {
		return r, err
	}
	if q.degraded {
		r.Degraded = []string{"vectors"}
	}
	if x.options.Embedder != nil {
		r.model = x.options.Embedder.Description()
	}
	u := x.options.Usage
	var memory recall
	if u != nil && !t.NoMemory {
		u.mu.RLock()
		memory, err = u.memory.recall(ctx, intent, q.units[0].vector, q.partVectors(), x)
		u.mu.RUnlock()
		if err != nil {
			return nil, fmt.Errorf("searching past intents: %w", err)
		}
		r.Neighbours, r.Trust = memory.neighbours, memory.trust
		for id := range memory.votes {
			q.ids[id] = true
		}
	}
	using := x.known(t.Context)
	if u != nil && !t.NoGraph && len(using) > 0 {
		for _, id := range u.injections(using) {
			q.ids[id] = true
		}
	}
	// A store can have tools that the catalogue does not have yet.
	candidates, err := x.score(ctx, q, x.known(slices.Sorted(maps.Keys(q.ids))), true)
	if err != nil {
		return nil, err
	}
	if u != nil {
		if !t.NoGraph {
			candidates, err = x.relate(ctx, q, candidates, using, t.OwnContext, r)
			if err != nil {
				return nil, err
			}
		}
		var ranks map[string]float64
		if !t.NoPageRank {
			ranks = u.pageRank()
		}
		mature := u.maturity()
		for i := range candidates {
			c := &candidates[i]
			c.PageRank, c.Memory = mature*ranks[c.ID], memoryWeight*memory.votes[c.ID]
		}
	}
	rescore(candidates)
	if u != nil && t.Transitions {
		if candidates, err = x.addTransitions(ctx, q, candidates); err != nil {
			return nil, err
		}
	}
	if t.Closure {
		if candidates, err = x.addClosure(ctx, q, candidates); err != nil {
			return nil, err
		}
	}
	r.Candidates = candidates
	return r, nil
}

// rescore computes the scores and sorts the candidates.
func rescore(cs []Candidate) {
	for i := range cs {
		c := &cs[i]
		c.Final = max(c.Alpha*c.Hybrid+(1-c.Alpha)*c.Graph, c.Injected)
		c.Score = FinalShare*c.Final + pageRankShare*c.PageRank + c.Memory + c.Transition + c.Closure
	}
	slices.SortFunc(cs, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Hybrid, a.Hybrid), cmp.Compare(a.ID, b.ID))
	})
}

// known returns the IDs that are in the catalogue, each once, in their order.
func (x *Index) known(ids []string) []string {
	at := x.now.Load().at
	return slices.DeleteFunc(Distinct(ids), func(id string) bool {
		_, ok := at[id]
		return !ok
	})
}

// injections returns the neighbours of the context in the graph, the nearest first.
func (u *Usage) injections(using []string) []string {
	u.mu.RLock()
	defer u.mu.RUnlock()
	var ids []string
	for _, c := range using {
		for _, s := range u.graph.Related(c, maxInjected/len(using)+1) {
			ids = append(ids, s.ID)
		}
	}
	return Distinct(ids)
}

// pathHead bounds the candidates, and pathHops the edges of a path, in interiors.
const (
	pathHead = 5
	pathHops = 3
)

// relate adds the relatedness to the context, and the tools on the paths between the
// context and the best candidates. It removes the context tools.
func (x *Index) relate(ctx context.Context, q *intentQuery, cs []Candidate, using []string, own bool, r *Ranking) ([]Candidate, error) {
	u := x.options.Usage
	mature := u.maturity()
	u.mu.RLock()
	defer u.mu.RUnlock()
	resolving := slices.DeleteFunc(slices.Clone(using), func(id string) bool { return !u.graph.Has(id) })
	if len(resolving) == 0 && !own || u.graph.EdgeCount() == 0 {
		return cs, nil
	}
	rescore(cs)
	r.Alpha = u.graph.Alpha()
	if len(resolving) > 0 {
		var err error
		if cs, err = x.interiors(ctx, q, cs, resolving); err != nil {
			return nil, err
		}
		cs = slices.DeleteFunc(cs, func(c Candidate) bool { return slices.Contains(using, c.ID) })
	} else { // the best tools of the search are a less reliable context
		for i := range cs[:min(ownContext, len(cs))] {
			resolving = append(resolving, cs[i].ID)
		}
		r.Alpha = 1 - (1-r.Alpha)*mature
	}
	for i := range cs {
		c := &cs[i]
		c.Alpha = r.Alpha
		others := slices.DeleteFunc(slices.Clone(resolving), func(id string) bool { return id == c.ID })
		c.Graph = u.graph.Relatedness(c.ID, others)
	}
	return cs, nil
}

// interiors adds the tools on the shortest paths between the context and the best
// candidates. The caller holds Usage.mu.
func (x *Index) interiors(ctx context.Context, q *intentQuery, cs []Candidate, using []string) ([]Candidate, error) {
	g := x.options.Usage.graph
	injected := map[string]float64{}
	try := func(from, to string, score float64) {
		p, ok := g.ShortestPath(from, to, pathHops)
		if !ok {
			return
		}
		for _, id := range p.Nodes[1 : len(p.Nodes)-1] {
			if !slices.Contains(using, id) {
				injected[id] = max(injected[id], score*graphrank.HopConfidence(p.Hops()))
			}
		}
	}
	for _, c := range using {
		for _, head := range cs[:min(pathHead, len(cs))] {
			if head.ID == c {
				continue
			}
			// The score of a context tool is 1.
			score := min(1, head.Final)
			try(c, head.ID, score)
			try(head.ID, c, score)
		}
	}
	cs, err := x.extendBy(ctx, q, cs, injected)
	for i := range cs {
		cs[i].Injected = injected[cs[i].ID]
	}
	return cs, err
}

// addTransitions adds the tools used in the same traces as the best three.
func (x *Index) addTransitions(ctx context.Context, q *intentQuery, cs []Candidate) ([]Candidate, error) {
	n := min(ownContext, len(cs))
	if n == 0 || cs[0].Score <= 0 {
		return cs, nil
	}
	seeds, weights := make([]string, n), make([]float64, n)
	for i := range n {
		seeds[i], weights[i] = cs[i].ID, cs[i].Score/cs[0].Score
	}
	sums := x.options.Usage.transitions(seeds, weights)
	cs, err := x.extendBy(ctx, q, cs, sums)
	if err != nil {
		return nil, err
	}
	w := transitionWeight * x.options.Usage.maturity()
	for i := range cs {
		cs[i].Transition = w * sums[cs[i].ID]
	}
	rescore(cs)
	return cs, nil
}

// addClosure adds the tools that the best tools are declared to need. It changes nothing if
// they need none.
func (x *Index) addClosure(ctx context.Context, q *intentQuery, cs []Candidate) ([]Candidate, error) {
	sums := map[string]float64{}
	roots := cs[:min(closureRoots, len(cs))]
	any := false
	var total float64
	for i := range roots {
		total += math.Exp((roots[i].Score - roots[0].Score) / closureSharpness)
	}
	for i := range roots {
		p := math.Exp((roots[i].Score-roots[0].Score)/closureSharpness) / total
		sums[roots[i].ID] += p
		ids, distances := x.Needs(roots[i].ID)
		any = any || len(ids) > 0
		for n, id := range ids {
			sums[id] += p * (1 - closureDecay*float64(min(distances[n], 10)))
		}
	}
	if !any {
		return cs, nil
	}
	cs, err := x.extendBy(ctx, q, cs, sums)
	if err != nil {
		return nil, err
	}
	for i := range cs {
		cs[i].Closure = closureWeight * min(1, sums[cs[i].ID])
	}
	rescore(cs)
	return cs, nil
}

// extendBy adds the tools of sums that are in the catalogue and not yet candidates.
func (x *Index) extendBy(ctx context.Context, q *intentQuery, cs []Candidate, sums map[string]float64) ([]Candidate, error) {
	have := make(map[string]bool, len(cs))
	for i := range cs {
		have[cs[i].ID] = true
	}
	missing := x.known(slices.Sorted(maps.Keys(sums)))
	missing = slices.DeleteFunc(missing, func(id string) bool { return have[id] })
	if len(missing) == 0 {
		return cs, nil
	}
	alpha := 1.0
	if len(cs) > 0 {
		alpha = cs[0].Alpha
	}
	more, err := x.score(ctx, q, missing, false)
	if err != nil {
		return nil, err
	}
	for i := range more {
		more[i].Alpha = alpha
	}
	return append(cs, more...), nil
}
