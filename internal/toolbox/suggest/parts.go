package suggest

import (
	"cmp"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Terms of the score of a tool for a part of an intent without trusted past intents.
const (
	// agreement is added if the tool has the action that the part requests, and
	// subtracted if it has another.
	agreement = 0.10
	// repeated is subtracted if the tool is the best for an earlier part that requests
	// another action or begins with another verb.
	repeated = 0.10
	// mentioned is added for each input that the intent names, at most maxMentioned.
	mentioned    = 0.03
	maxMentioned = 3
	// namedServer is added if the part has a word of the server's name that no other server
	// uses, and subtracted if it has one of another server's.
	namedServer = 0.09
	// sameServer is added if the best tool for the part before has the same server, and the part
	// names none.
	sameServer = 0.04
	// A part has a tool if its best score and lead are at least leastPart of the best score of
	// any part, or leastUnled if it has no verb, because it may only describe the others.
	leastPart  = 0.65
	leastUnled = 0.8
	// considered and perPart bound the candidates for the whole intent and for a part.
	considered = 25
	perPart    = 12
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
	base       []float64            // the terms of a candidate's score that are equal for all parts
}

// partPick is the best tool for a part.
type partPick struct {
	candidate   int
	score, lead float64 // lead over the next candidate
}

// chooseParts chooses the best tool for each part of the intent, at most limit tools, by the fit
// to the part and to the whole intent plus the terms above and those of past use.
func (p *planner) chooseParts(r *toolsearch.Ranking, limit int) []toolsearch.Candidate {
	c := p.newPartChoice(r)
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
		if !c.parts[n].Led {
			least = leastUnled
		}
		if r.Unlike(&pick, b.score) || b.score < top && b.score+b.lead < least*top || len(picks) == limit || slices.ContainsFunc(picks, func(o toolsearch.Candidate) bool { return o.ID == pick.ID }) {
			continue
		}
		if len(best) > 1 {
			pick.PartNumber = n
		}
		picks = append(picks, pick)
		p.leads[pick.ID] = b.lead
	}
	return picks
}

func (p *planner) newPartChoice(r *toolsearch.Ranking) *partChoice {
	cs := shortlist(r)
	c := &partChoice{parts: r.Parts, candidates: cs, tools: make([]catalog.Tool, len(cs)), purposes: make([]toolsearch.Purpose, len(cs)),
		base: make([]float64, len(cs))}
	if len(c.parts) == 1 {
		c.parts = []toolsearch.Part{{Text: p.req.Intent, Request: r.Parts[0].Request, Led: true}}
	}
	for _, part := range c.parts {
		c.requests = append(c.requests, toolsearch.RequestedActions(part.Request))
		c.verbs = append(c.verbs, toolsearch.VerbOf(part.Request))
	}
	words := wordSet(p.req.Intent)
	users := map[string]map[string]bool{} // servers by word of their names, and of their tools' names and descriptions
	for i := range cs {
		c.base[i] = cs[i].Whole.Score + own(&cs[i]) - toolsearch.FinalShare*cs[i].Hybrid
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
		c.base[i] += mentioned * float64(min(maxMentioned, mentionedInputs(&t, words)))
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

// shortlist returns the best candidates for the whole intent and for each part.
func shortlist(r *toolsearch.Ranking) []toolsearch.Candidate {
	cs := ownScores(r)
	keep := map[string]bool{}
	for i := range min(considered, len(cs)) {
		keep[cs[i].ID] = true
	}
	for n := range r.Parts {
		order := slices.Clone(cs)
		slices.SortStableFunc(order, func(a, b toolsearch.Candidate) int { return cmp.Compare(b.PartScore(n), a.PartScore(n)) })
		for i := range min(perPart, len(order)) {
			keep[order[i].ID] = true
		}
	}
	return slices.DeleteFunc(cs, func(c toolsearch.Candidate) bool { return !keep[c.ID] })
}

// best returns the best candidate for each part.
func (c *partChoice) best() []partPick {
	best := make([]partPick, len(c.parts))
	for n := range best {
		for i := range c.candidates {
			s := c.score(i, n, best[:n])
			switch b := &best[n]; {
			case i == 0:
				*b = partPick{0, s, s}
			case s > b.score:
				*b = partPick{i, s, s - b.score}
			default:
				b.lead = min(b.lead, b.score-s)
			}
		}
	}
	return best
}

// score returns the score of candidate i for part n; earlier are the picks for the parts
// before it.
func (c *partChoice) score(i, n int, earlier []partPick) float64 {
	s := c.base[i] + c.candidates[i].PartScore(n)
	for m, e := range earlier {
		if e.candidate == i && (c.requests[m] != c.requests[n] || c.parts[m].Led && c.parts[n].Led && c.verbs[m] != c.verbs[n]) {
			s -= repeated
		}
	}
	s += agreement * agrees(c.purposes[i].Actions, c.requests[n])
	if slices.Contains(c.named[n], c.tools[i].Server) {
		s += namedServer
	} else if len(c.named[n]) > 0 {
		s -= namedServer
	} else if server := c.tools[i].Server; n > 0 && server != "" && server == c.tools[earlier[n-1].candidate].Server {
		s += sameServer
	}
	return s
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
