package suggest

import (
	"slices"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/toolsearch"
)

// Weights of the score of a tool for a part of an intent when no past intents tell.
const (
	// agreement is for a tool whose action is the one that the part asks for, and
	// the loss of one with another.
	agreement = 0.10
	// repeated is what a tool loses that is the best for another part, which asks for
	// another action.
	repeated = 0.10
	// mentioned is for each of the first maxMentioned inputs of a tool that the intent
	// names, and given for each of the first maxGiven to which it gives a value.
	mentioned    = 0.03
	maxMentioned = 3
	given        = 0.03
	maxGiven     = 2
	// sameVerb is for a tool whose name has the verb that the part begins with, and
	// sameNumber for one that names its entity in the number that the part does, as
	// list_issues does for "list the issues"; one in the other number loses it.
	sameVerb   = 0.03
	sameNumber = 0.04
	// fed is for a tool with an input that is an output of the tool of an earlier part.
	fed = 0.08
	// sameServer is for a tool of the server that serves another part.
	sameServer = 0.05
	// leastPart is the least score of the best tool for a part, over that of the best
	// tool for any part, at which the part has a tool.
	// leastUnled is that of a part that does not begin with a verb: it may only
	// tell about the others.
	leastPart  = 0.6
	leastUnled = 0.8
	// considered bounds the candidates.
	considered = 25
	// trusted is the trust in past intents from which they choose.
	trusted = 0.4
)

// partChoice chooses a tool for each part of an intent.
type partChoice struct {
	parts      []toolsearch.Part
	asks       []toolsearch.Actions // of parts
	phrases    []toolsearch.Phrase
	candidates []toolsearch.Candidate
	tools      []catalog.Tool // of candidates
	purposes   []toolsearch.Purpose
	base       []float64       // what the scores of a candidate for all parts have in common
	servers    map[string]bool // of candidates
	fed        map[[2]int]bool // known answers of feeds
}

// partPick is the best tool for a part.
type partPick struct {
	candidate int
	score     float64
}

// chooseParts picks the best tool for each part of the intent, at most limit tools, by
//
//	part + whole + 0.1·(1 for the action asked for, −1 for another)
//	+ 0.03·(inputs the intent mentions) + 0.03·(inputs the intent gives a value to)
//	+ 0.03·(1 for the verb of the part) + 0.04·(1 for its entity in the same number, −1 in the other)
//	+ 0.08·(1 for an input that the tool of an earlier part gives) + 0.05·(1 for the server of another part's tool)
//
// and what use says, less 0.1 for a tool of another part with another action.
func (p *planner) chooseParts(r *toolsearch.Ranking, limit int) []toolsearch.Candidate {
	c := p.newPartChoice(r)
	if len(c.candidates) == 0 {
		return nil
	}
	best := c.best(nil)
	if len(c.parts) > 1 && len(c.servers) > 1 {
		best = c.best(best)
	}
	top := 0.0
	for _, b := range best {
		top = max(top, b.score)
	}
	var picks []toolsearch.Candidate
	for n, b := range best {
		pick := c.candidates[b.candidate]
		least := leastPart
		if !c.parts[n].Led {
			least = leastUnled
		}
		if b.score < least*top || len(picks) == limit || slices.ContainsFunc(picks, func(o toolsearch.Candidate) bool { return o.ID == pick.ID }) {
			continue
		}
		if len(best) > 1 {
			pick.PartNumber = n
		}
		picks = append(picks, pick)
	}
	return picks
}

func (p *planner) newPartChoice(r *toolsearch.Ranking) *partChoice {
	cs := ownScores(r)
	cs = cs[:min(considered, len(cs))]
	c := &partChoice{parts: r.Parts, candidates: cs, tools: make([]catalog.Tool, len(cs)), purposes: make([]toolsearch.Purpose, len(cs)),
		base: make([]float64, len(cs)), servers: map[string]bool{}, fed: map[[2]int]bool{}}
	if len(c.parts) == 1 {
		c.parts = []toolsearch.Part{{Text: p.req.Intent, Led: true}}
	}
	for _, part := range c.parts {
		c.asks = append(c.asks, toolsearch.AskedActions(part.Text))
		c.phrases = append(c.phrases, toolsearch.PhraseOf(part.Text))
	}
	words := wordSet(p.req.Intent)
	for i := range cs {
		c.base[i] = cs[i].Whole.Score + own(&cs[i]) - toolsearch.FinalShare*cs[i].Hybrid
		t, ok := p.index.Tool(cs[i].ID)
		if !ok {
			continue // the catalogue changed meanwhile
		}
		c.tools[i], c.purposes[i], c.servers[t.Server] = t, toolsearch.PurposeOf(&t), true
		c.base[i] += mentioned*float64(min(maxMentioned, mentions(&t, words))) + given*float64(min(maxGiven, len(arguments(&t, p.literals))))
	}
	return c
}

// best returns the best candidate for each part. others are the picks of an earlier call,
// nil in the first.
func (c *partChoice) best(others []partPick) []partPick {
	best := make([]partPick, len(c.parts))
	for n := range best {
		for i := range c.candidates {
			if s := c.score(i, n, best[:n], others); i == 0 || s > best[n].score {
				best[n] = partPick{i, s}
			}
		}
	}
	return best
}

// score returns the score of candidate i for part n; earlier are the picks for the parts
// before it.
func (c *partChoice) score(i, n int, earlier, others []partPick) float64 {
	s := c.base[i]
	if scores := c.candidates[i].PartScores(); n < len(scores) {
		s += scores[n]
	} else {
		s += c.candidates[i].Whole.Score
	}
	for m, e := range earlier {
		if e.candidate == i && c.asks[m] != c.asks[n] {
			s -= repeated
		}
	}
	purpose, phrase := c.purposes[i], &c.phrases[n]
	action := agrees(purpose.Actions, c.asks[n])
	if phrase.NamedBy(purpose) {
		action = 1 // create_refund for "refund"
	}
	s += agreement * action
	if phrase.Verb != "" && phrase.Verb == purpose.Verb {
		s += sameVerb
	}
	s += sameNumber * float64(phrase.Number(purpose.Noun))
	if slices.ContainsFunc(earlier, func(e partPick) bool { return e.candidate != i && c.feeds(e.candidate, i) }) {
		s += fed
	}
	for m, o := range others {
		if m != n && c.tools[i].Server != "" && c.tools[o.candidate].Server == c.tools[i].Server {
			return s + sameServer
		}
	}
	return s
}

// feeds reports whether an output of a candidate has the name of an input of another.
func (c *partChoice) feeds(from, to int) bool {
	key := [2]int{from, to}
	found, known := c.fed[key]
	if !known {
		found = slices.ContainsFunc(c.tools[from].Gives, func(out catalog.Parameter) bool {
			return slices.ContainsFunc(c.tools[to].Takes, func(in catalog.Parameter) bool { return Grade(out, in) >= Alias })
		})
		c.fed[key] = found
	}
	return found
}

// wordSet returns the singular words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range toolsearch.Words(text) {
		set[toolsearch.Singular(w)] = true
	}
	return set
}

// mentions counts the inputs of a tool of whose names the words have all but the
// common ones.
func mentions(t *catalog.Tool, words map[string]bool) (n int) {
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
