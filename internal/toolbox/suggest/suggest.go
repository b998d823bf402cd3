package suggest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/text/query"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Suggest plans the tools for an intent, their order and the data between them. The mode
// and the warnings of the answer indicate how reliable it is. The plan is acyclic: it has
// the order with the most evidence, and a warning for each edge against it. If req.Tools
// is set, Suggest only arranges these tools, and fails with a *CycleError if they depend on
// each other.
func Suggest(ctx context.Context, x *toolsearch.Index, req Request) (*Suggestion, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	p := &planner{index: x, req: req, values: valuesOf(toolsearch.Unquoted(req.Intent)), links: links{}, picks: map[string]partPick{}, out: &Suggestion{Intent: req.Intent, Layers: [][]string{},
		DAG: DAG{Nodes: []Node{}, Edges: []Edge{}}, Tasks: []Task{}, Paths: []Path{}, Unmatched: []string{}, Merged: []Merged{}, Missing: []Missing{},
		Warnings: []string{}, Remembered: []Remembered{}, Alternative: []Option{}}}
	if len(req.Tools) > 0 {
		if err := p.given(); err != nil {
			return nil, err
		}
	} else if err := p.chosen(ctx); err != nil {
		return nil, err
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	p.judge()
	return p.out, nil
}

// planner makes one suggestion.
type planner struct {
	index   *toolsearch.Index
	req     Request
	values  *values
	ranking *toolsearch.Ranking
	steps   []step // in the order in which they run
	picked  int    // number of chosen or given tools
	unsure  int    // number of required inputs without a sure value
	links   links
	chain   bool                // whether similar plans ran one tool after the other
	picks   map[string]partPick // of chosen tools, by ID
	out     *Suggestion
}

func (p *planner) warn(format string, args ...any) {
	p.out.Warnings = append(p.out.Warnings, fmt.Sprintf(format, args...))
}

// given sets the steps to the tools of the request.
func (p *planner) given() error {
	e := &UnknownToolError{}
	for _, id := range p.req.Tools {
		t, ok := p.index.Tool(id)
		if !ok {
			e.IDs = append(e.IDs, id)
			continue
		}
		p.steps = append(p.steps, p.step(t, 1, "given"))
	}
	if len(e.IDs) > 0 {
		return e
	}
	p.picked = len(p.steps)
	for i := range p.steps {
		for _, n := range p.index.DirectNeeds(p.steps[i].tool.ID) {
			for j := range p.steps {
				if p.steps[j].tool.ID == n {
					p.links.add(j, i, declaredLink)
				}
			}
		}
	}
	p.learntLinks()
	return nil
}

// chosen chooses tools, adds their prerequisites and orders the steps.
func (p *planner) chosen(ctx context.Context) error {
	limit := cmp.Or(p.req.MaxTools, DefaultMaxTools)
	r, err := p.index.Rank(ctx, p.req.Intent, toolsearch.Suggesting(p.req.ContextTools))
	if err != nil {
		return err
	}
	p.ranking = r
	for _, d := range r.Degraded {
		p.warn("made without all %s: they are still being computed or there is no model", d)
	}
	var picks []toolsearch.Candidate
	if r.Trust >= trusted {
		picks = p.choose(r, p.index.Usage(), limit)
	} else {
		picks = p.chooseParts(ctx, r, limit)
	}
	var steps []step
	for i := range picks {
		t, ok := p.index.Tool(picks[i].ID)
		if !ok {
			continue // the catalogue has changed since the ranking
		}
		st := p.step(t, fit(&picks[i]), reason(&picks[i], r))
		st.chosen, st.part = &picks[i], picks[i].PartNumber
		steps = append(steps, st)
	}
	p.picked = len(steps)
	if len(steps) == 0 {
		if p.index.Len() == 0 {
			p.warn("the catalogue is empty: import tools first")
		} else {
			p.warn("no tool fits the intent")
		}
		return nil
	}
	p.order(p.prerequisites(steps))
	return nil
}

// connect binds outputs to inputs and adds the tasks, nodes and edges to the answer.
func (p *planner) connect() error {
	tools := toolsIn(p.steps)
	bindings := detect(tools, p.supplied)
	if len(p.req.Tools) == 0 {
		// The order of the steps is decided, so a link against it would only close a cycle.
		maps.DeleteFunc(p.links, func(pair [2]int, _ link) bool { return pair[0] > pair[1] })
		bindings = p.forward(bindings)
		p.inferLinks(bindings)
		p.textLinks(bindings)
	}
	plan, err := build(tools, bindings, p.links.pairs())
	if err != nil {
		return err
	}
	at := make([]int, len(p.steps)) // places in the plan, by step
	for n, t := range plan.Tasks {
		at[position(t.ID)] = n
	}
	p.edges(plan, tools, at)
	for _, task := range plan.Tasks {
		i := position(task.ID)
		st := &p.steps[i]
		task.Arguments, task.DataPaths, task.Rationale, task.Confidence = st.args, []string{}, st.why, st.fit
		task.Alternatives, task.Dangerous, task.Prerequisite = []Option{}, Dangerous(st.tool.Name), st.needs >= 0
		node := Node{ID: task.ID, ToolID: task.Tool, Inputs: st.args, Dependencies: []string{}}
		for _, d := range task.DependsOn {
			node.Dependencies = append(node.Dependencies, tools[position(d)].ID)
		}
		for _, e := range p.out.DAG.Edges {
			if e.ToTask == task.ID && e.DataPath != "" {
				task.DataPaths = append(task.DataPaths, e.From+": "+e.DataPath)
			}
		}
		node.Dependencies = slices.Compact(node.Dependencies)
		if st.part >= 0 {
			task.Part = p.ranking.Parts[st.part].Text
		}
		if st.chosen != nil {
			task.Remembered = st.chosen.Memory > 0
			task.Alternatives = p.alternatives(st.chosen)
		}
		p.out.Tasks = append(p.out.Tasks, task)
		p.out.DAG.Nodes = append(p.out.DAG.Nodes, node)
		bound := func(input string) bool {
			return slices.ContainsFunc(plan.Bindings, func(b Binding) bool { return b.To == i && b.Input.Path == input }) || p.links.feeds(i, input)
		}
		lacking := func() []catalog.Parameter {
			return slices.DeleteFunc(slices.Clone(st.tool.Takes), func(in catalog.Parameter) bool {
				return !needed(&in) || st.args[in.Path] != nil || bound(in.Path)
			})
		}
		p.unsure += len(lacking())
		p.values.arguments(&st.tool, p.span(st), st.args, false, bound)
		for _, in := range lacking() {
			same := func(s step) bool { return s.args[in.Path] != nil && s.tool.Server == st.tool.Server }
			if k := slices.IndexFunc(p.steps, same); k >= 0 && !plainName(in.Name) && !slices.ContainsFunc(p.values.list, func(l value) bool { return p.span(st).has(&l) }) {
				st.args[in.Path] = p.steps[k].args[in.Path] // "the profile of neal_wu and his ranking"
				continue
			}
			p.out.Missing = append(p.out.Missing, Missing{task.ID, task.Tool, in.Path, p.giver(p.steps, i, toolsearch.EntityOf(&in, st.purpose))})
		}
	}
	p.out.Layers = append(p.out.Layers, plan.Layers...)
	for _, b := range plan.Dropped {
		p.warn("%s is not bound to %s: only the types agree, and it would close a cycle", tools[b.From].ID+"."+b.Output.Path, tools[b.To].ID+"."+b.Input.Path)
	}
	return nil
}

// span returns the part of the intent that a step serves, or else all of it.
func (p *planner) span(st *step) span {
	if st.part >= 0 {
		part := &p.ranking.Parts[st.part]
		return span{part.Start, part.End}
	}
	return span{0, len(p.req.Intent)}
}

// maxAlternatives bounds the alternatives of a task.
const maxAlternatives = 3

// alternatives returns the best tools for the same part of the intent that are not in the
// plan.
func (p *planner) alternatives(c *toolsearch.Candidate) []Option {
	list := []Option{}
	for i := range p.ranking.Candidates {
		o := &p.ranking.Candidates[i]
		if o.PartNumber != c.PartNumber || has(p.steps, o.ID) {
			continue
		}
		if list = append(list, Option{o.ID, o.Score}); len(list) == maxAlternatives {
			break
		}
	}
	return list
}

// fit returns how well a tool fits the intent, in [0, 1]: the larger of its final score and
// its vote by past intents.
func fit(c *toolsearch.Candidate) float64 {
	return min(1, max(c.Final, c.Memory))
}

// leastFit is the least score with which a tool serves a part.
const leastFit = 0.25

// judge computes the confidence, the mode and the warnings.
func (p *planner) judge() {
	s := p.out
	var hybrid, pageRank float64
	var ids []string
	ranked := 0
	for _, st := range p.steps {
		if st.needs >= 0 {
			continue // a prerequisite
		}
		hybrid += st.fit
		ids = append(ids, st.tool.ID)
		if st.chosen != nil && ranked < 3 {
			pageRank += st.chosen.PageRank
			ranked++
		}
	}
	hybrid /= float64(max(1, len(ids)))
	pageRank /= float64(max(1, ranked))
	alpha, strength := 1.0, unknownPath
	if u := p.index.Usage(); u != nil {
		u.Graph(func(g *graphrank.Graph) {
			if g.EdgeCount() > 0 {
				alpha = g.Alpha()
			}
			s.Paths = paths(g, toolsearch.Distinct(ids))
		})
	}
	if len(s.Paths) > 0 {
		strength = 0
		for _, path := range s.Paths {
			strength += path.Confidence
		}
		strength /= float64(len(s.Paths))
	}
	p.unmatched()
	s.Parts = confidence(hybrid, pageRank, strength, alpha)
	s.Parts.weighEvidence(s.DAG.Edges, len(s.Tasks))
	s.Parts.Missing, s.Parts.Unmatched = p.unsure, len(s.Unmatched)
	if p.ranking != nil {
		p.weighFit(&s.Parts)
	}
	s.Parts.estimate()
	if len(p.steps) == 0 {
		s.Parts.Value = 0
	}
	s.Confidence, s.Mode = s.Parts.Value, modeOf(s.Parts.Value)
	var dangerous []string
	for _, t := range s.Tasks {
		if t.Dangerous {
			dangerous = append(dangerous, t.Tool)
		}
	}
	if len(dangerous) > 0 {
		p.warn("dangerous by name, confirm before running: %s", strings.Join(toolsearch.Distinct(dangerous), ", "))
	}
	if n := s.Parts.Edges.TypeOnly; n > 0 {
		p.warn("%d of %d edges stand on the types of values alone", n, len(s.DAG.Edges))
	}
	if s.Mode == Speculative && (len(dangerous) > 0 || s.Parts.Edges.TypeOnly > 0) {
		s.Mode = Advised
	}
	if s.Confidence < warnBelow {
		p.warn("low confidence %.2f: check the tools and their order", s.Confidence)
	}
	if len(s.Unmatched) > 0 {
		p.warn("no tool was found for: %s", strings.Join(s.Unmatched, "; "))
	}
	if len(s.Missing) > 0 {
		p.warn("required inputs without a value yet: %d", len(s.Missing))
	}
	s.Rationale = fmt.Sprintf("tools: %d (%d chosen), hybrid %.0f%%, PageRank %.1f%%, dependencies: %d (%d of data), paths in the co-usage graph: %d",
		len(s.Tasks), p.picked, 100*hybrid, 100*pageRank, len(s.DAG.Edges), s.Parts.Edges.data(), len(s.Paths))
	if p.ranking == nil {
		return
	}
	for _, n := range p.ranking.Neighbours[:min(3, len(p.ranking.Neighbours))] {
		s.Remembered = append(s.Remembered, Remembered{n.Intent, toolsearch.Distinct(n.Trace.Tools), n.Similarity})
	}
	for _, st := range p.steps {
		if st.chosen != nil && st.chosen.ID == ids[0] {
			s.Alternative = p.alternatives(st.chosen)
		}
	}
}

// weighFit computes Steps, Split, Choice, Weakest, Lead and Covered of the chosen tools.
func (p *planner) weighFit(c *Confidence) {
	c.Steps, c.Weakest, c.Lead, c.Choice, c.Split = p.picked, 1, mostLead, 1, 1
	if p.ranking.Trust < trusted {
		c.Split = p.ranking.Split
	}
	var text, requests strings.Builder
	for i := range p.steps {
		st := &p.steps[i]
		if st.chosen == nil {
			continue
		}
		c.Weakest = min(c.Weakest, max(st.chosen.Memory, st.chosen.Fit().Vector))
		pick := p.picks[st.tool.ID]
		c.Lead, c.Choice = min(c.Lead, pick.lead), min(c.Choice, pick.sure)
		text.WriteString(" " + st.tool.Name + " " + st.tool.Description + " " + st.tool.Server)
		for n := range st.tool.Takes {
			text.WriteString(" " + st.tool.Takes[n].Name)
		}
	}
	for _, part := range p.ranking.Parts {
		requests.WriteString(" " + part.Request)
	}
	words, had := wordSet(text.String()), 0
	asked := wordSet(requests.String())
	maps.DeleteFunc(asked, func(w string, _ bool) bool { return len(w) < 3 || query.IsStopWord(w) })
	for w := range asked {
		if words[w] {
			had++
		}
	}
	c.Covered = float64(had) / float64(max(1, len(asked)))
}

// unmatched adds the parts of the intent without a tool of their own to the answer: as Merged those
// whose best tool is in the plan, the others as Unmatched. The tool of a part that begins with
// another verb does not serve a part. If past intents chose the tools, any that fits will do.
func (p *planner) unmatched() {
	if p.ranking == nil {
		return
	}
	remembered := p.ranking.Trust >= trusted
	for n, part := range p.ranking.Parts {
		var best, chosen float64
		own, by := false, (*toolsearch.Candidate)(nil)
		for i := range p.ranking.Candidates {
			best = max(best, p.ranking.Candidates[i].PartLeg(n).Score)
		}
		for _, st := range p.steps {
			if st.chosen == nil {
				continue
			}
			own = own || (st.chosen.PartNumber == n || len(p.ranking.Parts) == 1) && fit(st.chosen) >= leastFit
			if s := st.chosen.PartLeg(n).Score; s > chosen {
				chosen, by = s, st.chosen
			}
		}
		switch {
		case own:
		case chosen < leastFit || chosen < best && !remembered || p.otherVerb(n, by.PartNumber):
			p.out.Unmatched = append(p.out.Unmatched, part.Text)
		default:
			p.out.Merged = append(p.out.Merged, Merged{part.Text, by.ID})
		}
	}
}

// otherVerb reports whether two parts of the intent begin with different verbs.
func (p *planner) otherVerb(n, m int) bool {
	if m < 0 || n == m || p.ranking.Trust >= trusted {
		return false
	}
	a, b := &p.ranking.Parts[n], &p.ranking.Parts[m]
	return !a.Statement && !b.Statement && toolsearch.VerbOf(a.Request) != toolsearch.VerbOf(b.Request)
}

// reason explains why a tool was chosen.
func reason(c *toolsearch.Candidate, r *toolsearch.Ranking) string {
	why := fmt.Sprintf("fits the intent %.2f", c.Hybrid)
	if c.PartNumber >= 0 {
		why += fmt.Sprintf(", best its part %q", r.Parts[c.PartNumber].Text)
	}
	if c.Memory > 0 {
		why += fmt.Sprintf(", used for similar intents (+%.2f)", c.Memory)
	}
	if c.Transition > 0 {
		why += fmt.Sprintf(", used with the other tools (+%.2f)", c.Transition)
	}
	if c.Graph > 0 {
		why += fmt.Sprintf(", related by use %.2f", c.Graph)
	}
	return why
}
