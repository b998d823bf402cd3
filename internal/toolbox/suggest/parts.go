package suggest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// ChoiceFeatures names what the score of a tool for a part of an intent depends on, without
// trusted past intents.
//
//   - text, name: the cosines of the part to the tool's text and to its name
//   - whole_text, whole_name: those of the whole intent
//   - keywords, whole_keywords: the keyword scores of both times the weight of keywords
//   - action: 1 if the tool has the action that the part requests, −1 if it has another
//   - server: 1 if the part has a word of the server's name that no other server uses, −1 if it
//     has one of another server's
//   - same_server: 1 if the part names no server and the tool for the part before it, or another
//     tool for one after it, has the same
//   - inputs: the number of inputs that the intent names, at most maxMentioned
//   - repeated: the number of earlier parts with another action or verb that have the tool
//   - pair: the logit of the part and the tool by the reader, less the largest of the part
//
// The weights are fitted, see weights.json. Those of the first six sum to 2, so that the score is
// about that of the part plus that of the whole intent.
var ChoiceFeatures = []string{"text", "name", "whole_text", "whole_name", "keywords", "whole_keywords", "action", "server", "same_server", "inputs", "repeated", "pair"}

const (
	maxMentioned = 3
	// A part has a tool if its best score and lead are at least leastPart of the best score of any
	// part, or leastStatement if it is a statement, because it may only describe the others.
	leastPart      = 0.65
	leastStatement = 0.85
	// considered and perPart bound the candidates for the whole intent and for a part.
	considered = 25
	perPart    = 12
	// The reader reads the best readFirst to readPerPart candidates for a part. mostLogit is
	// a logit that few pairs exceed.
	readFirst   = 2
	readPerPart = 8
	mostLogit   = 8
	// trusted is the trust in past intents from which they choose the tools.
	trusted = 0.4
)

// partChoice chooses a tool for each part of an intent.
type partChoice struct {
	parts      []toolsearch.Part
	requests   []toolsearch.Actions // requested actions, by part
	verbs      []string             // with which the parts begin
	named      [][]string           // servers whose name a part has a word of
	candidates []toolsearch.Candidate
	tools      []catalog.Tool       // by candidate
	purposes   []toolsearch.Purpose // by candidate
	usage      []float64            // the terms of past use in a candidate's score
	inputs     []float64            // mentioned inputs of a candidate
	weights    []float64            // of ChoiceFeatures
	pairs      [][]float64          // the feature, by part and candidate
	first      []partPick           // the picks without those for later parts, or nil
	// read returns the logits of candidates for a part, or none.
	read func(n int, candidates []int) []float64
}

// partPick is the best tool for a part.
type partPick struct {
	candidate   int
	score, lead float64 // lead over the next candidate
	sure        float64 // probability among all candidates by their scores
	logit       float64 // of the pair; 0 without a reader
}

// chooseParts chooses the best tool for each part of the intent, at most limit tools.
func (p *planner) chooseParts(ctx context.Context, r *toolsearch.Ranking, limit int) []toolsearch.Candidate {
	c := p.newPartChoice(ctx, r)
	if len(c.candidates) == 0 {
		return nil
	}
	best := c.best()
	top := 0.0
	for _, b := range best {
		top = max(top, b.score)
	}
	var picks []toolsearch.Candidate
	for n, b := range best {
		pick := c.candidates[b.candidate]
		least := leastPart
		if c.parts[n].Statement {
			least = leastStatement
		}
		if r.Unlike(&pick, n, b.logit) || b.score < top && b.score+b.lead < least*top || len(picks) == limit || slices.ContainsFunc(picks, func(o toolsearch.Candidate) bool { return o.ID == pick.ID }) {
			continue
		}
		if len(best) > 1 {
			pick.PartNumber = n
		}
		picks = append(picks, pick)
		p.picks[pick.ID] = b
	}
	return picks
}

func (p *planner) newPartChoice(ctx context.Context, r *toolsearch.Ranking) *partChoice {
	cs := shortlist(r)
	c := &partChoice{parts: r.Parts, candidates: cs, tools: make([]catalog.Tool, len(cs)), purposes: make([]toolsearch.Purpose, len(cs)),
		usage: make([]float64, len(cs)), inputs: make([]float64, len(cs)), weights: choiceWeights}
	for _, part := range c.parts {
		c.requests = append(c.requests, toolsearch.RequestedActions(part.Request))
		c.verbs = append(c.verbs, toolsearch.VerbOf(part.Request))
	}
	c.read = func(n int, candidates []int) []float64 {
		ids := make([]string, len(candidates))
		for k, i := range candidates {
			ids[k] = cs[i].ID
		}
		whole := ""
		if len(c.parts) > 1 {
			whole = p.req.Intent
		}
		return p.index.Pairs(ctx, c.parts[n].Request, whole, ids)
	}
	words := wordSet(p.req.Intent)
	users := map[string]map[string]bool{} // servers by word of their names, and of their tools' names and descriptions
	for i := range cs {
		c.usage[i] = own(&cs[i]) - toolsearch.FinalShare*cs[i].Hybrid
		t, ok := p.index.Tool(cs[i].ID)
		if !ok {
			continue // the catalogue has changed since the ranking
		}
		c.tools[i], c.purposes[i] = t, toolsearch.PurposeOf(&t)
		for w := range wordSet(t.Server + " " + t.Name + " " + t.Description) {
			if users[w] == nil {
				users[w] = map[string]bool{}
			}
			users[w][t.Server] = true
		}
		c.inputs[i] = float64(min(maxMentioned, mentionedInputs(&t, words)))
	}
	for _, part := range c.parts {
		var named []string
		for w := range wordSet(part.Request) {
			for server := range users[w] {
				if len(users[w]) == 1 && wordSet(server)[w] {
					named = append(named, server)
				}
			}
		}
		c.named = append(c.named, named)
	}
	return c
}

// Choice holds the candidates for a part of an intent, and the values of ChoiceFeatures of each.
type Choice struct {
	Tools    []string
	Features [][]float64
}

// Choices returns the candidates among which Suggest chooses for each part of an intent, with
// nothing learnt.
func Choices(ctx context.Context, x *toolsearch.Index, intent string) ([]Choice, error) {
	r, err := x.Rank(ctx, intent, toolsearch.Suggesting(nil))
	if err != nil || len(r.Candidates) == 0 {
		return nil, err
	}
	p := &planner{index: x, req: Request{Intent: intent}}
	c := p.newPartChoice(ctx, r)
	if len(c.candidates) == 0 {
		return nil, nil
	}
	best := c.best()
	choices := make([]Choice, len(best))
	for n := range choices {
		for i := range c.candidates {
			f := c.features(i, n, best[:n])
			choices[n].Tools, choices[n].Features = append(choices[n].Tools, c.candidates[i].ID), append(choices[n].Features, f[:])
		}
	}
	return choices, nil
}

// shortlist returns the best candidates for the whole intent and for each part.
func shortlist(r *toolsearch.Ranking) []toolsearch.Candidate {
	cs := ownScores(r)
	keep := map[string]bool{}
	for i := range min(considered, len(cs)) {
		keep[cs[i].ID] = true
	}
	for n := range r.Parts {
		order := slices.Clone(cs)
		slices.SortStableFunc(order, func(a, b toolsearch.Candidate) int { return cmp.Compare(b.PartLeg(n).Score, a.PartLeg(n).Score) })
		for i := range min(perPart, len(order)) {
			keep[order[i].ID] = true
		}
	}
	return slices.DeleteFunc(cs, func(c toolsearch.Candidate) bool { return !keep[c.ID] })
}

// best returns the best candidate for each part. It chooses twice, because the tool for a later
// part tells about the server of an earlier one.
func (c *partChoice) best() []partPick {
	best := c.pass()
	if len(best) > 1 {
		c.first = best
		best = c.pass()
	}
	return best
}

// pass returns the best candidate for each part, given those for the parts before it and first.
func (c *partChoice) pass() []partPick {
	best := make([]partPick, len(c.parts))
	c.pairs = make([][]float64, len(c.parts))
	for n := range best {
		scores, top := c.scores(n, best[:n])
		b, all := &best[n], 0.0 // the sum of the probabilities over that of the best
		for i, s := range scores {
			switch {
			case i == 0:
				*b, all = partPick{candidate: 0, score: s, lead: s}, 1
			case s > b.score:
				all = 1 + all*math.Exp(sharpness*(b.score-s))
				*b = partPick{candidate: i, score: s, lead: s - b.score}
			default:
				all += math.Exp(sharpness * (s - b.score))
				b.lead = min(b.lead, b.score-s)
			}
		}
		b.sure, b.logit = 1/all, top+c.pairs[n][b.candidate]
	}
	return best
}

// scores returns the scores of the candidates for part n and the largest logit of a pair, and
// sets the pairs of the part. earlier are the picks for the parts before it. The reader reads the
// best readFirst candidates, and then those that are better than these if their logit is
// mostLogit. The others have the smallest logit that it returned.
func (c *partChoice) scores(n int, earlier []partPick) (scores []float64, top float64) {
	scores, c.pairs[n] = make([]float64, len(c.candidates)), make([]float64, len(c.candidates))
	order := make([]int, len(scores))
	for i := range scores {
		order[i], scores[i] = i, c.usage[i]
		for k, f := range c.features(i, n, earlier) {
			scores[i] += c.weights[k] * f
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	weight := c.weights[len(c.weights)-1]
	read := order[:min(readFirst, len(order))]
	logits := c.read(n, read)
	if len(logits) < max(1, len(read)) {
		return scores, 0
	}
	best := math.Inf(-1)
	for k, i := range read {
		best = max(best, scores[i]+weight*logits[k])
	}
	rest := order[len(read):min(readPerPart, len(order))]
	if end := slices.IndexFunc(rest, func(i int) bool { return scores[i]+weight*mostLogit <= best }); end >= 0 {
		rest = rest[:end]
	}
	if more := c.read(n, rest); len(more) == len(rest) {
		read, logits = order[:len(read)+len(rest)], slices.Concat(logits, more)
	}
	top = slices.Max(logits)
	least := slices.Min(logits)
	for i := range c.pairs[n] {
		c.pairs[n][i] = least - top
	}
	for k, i := range read {
		c.pairs[n][i] = logits[k] - top
	}
	for i, f := range c.pairs[n] {
		scores[i] += weight * f
	}
	return scores, top
}

// features returns the values of ChoiceFeatures.
func (c *partChoice) features(i, n int, earlier []partPick) [12]float64 {
	part, whole := c.candidates[i].PartLeg(n), &c.candidates[i].Whole
	f := [12]float64{4: part.KeywordWeight * part.Keyword, 5: whole.KeywordWeight * whole.Keyword,
		6: agrees(c.purposes[i].Actions, c.requests[n]), 9: c.inputs[i], 11: c.pairs[n][i]}
	f[0], f[1] = part.Cosines()
	f[2], f[3] = whole.Cosines()
	server := c.tools[i].Server
	serves := func(p partPick) bool { return c.tools[p.candidate].Server == server }
	later := func(p partPick) bool { return p.candidate != i && serves(p) }
	switch {
	case slices.Contains(c.named[n], server):
		f[7] = 1
	case len(c.named[n]) > 0:
		f[7] = -1
	case server == "":
	case n > 0 && serves(earlier[n-1]), len(c.first) > 0 && slices.ContainsFunc(c.first[n+1:], later):
		f[8] = 1
	}
	for m, e := range earlier {
		if e.candidate == i && (c.requests[m] != c.requests[n] || !c.parts[m].Statement && !c.parts[n].Statement && c.verbs[m] != c.verbs[n]) {
			f[10]++
		}
	}
	return f
}

// wordSet returns the singular words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range toolsearch.Words(text) {
		set[toolsearch.Singular(w)] = true
	}
	return set
}

// mentionedInputs counts the inputs of a tool whose names are mentioned: words has all words of
// the name that are not common.
func mentionedInputs(t *catalog.Tool, words map[string]bool) (n int) {
	for i := range t.Takes {
		if strings.Contains(t.Takes[i].Path, ".") {
			continue
		}
		distinct, all := false, true
		for _, w := range toolsearch.Words(t.Takes[i].Name) {
			if slices.Contains(common, w) {
				continue
			}
			distinct, all = true, all && words[toolsearch.Singular(w)]
		}
		if distinct && all {
			n++
		}
	}
	return n
}
