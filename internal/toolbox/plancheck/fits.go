package plancheck

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Signs are the features of a score, each in [0, 1]; 0 is no sign of a fault.
type Signs struct {
	// Schema is 1 if the plan contradicts the schemas or the catalogue.
	Schema float64 `json:"schema"`
	// Reversed and Unordered are the strongest evidence from use for an order that the plan
	// contradicts or lacks.
	Reversed  float64 `json:"reversed"`
	Unordered float64 `json:"unordered"`
	// Lacking is how much better another tool fits a part of the intent than the tools of
	// the plan. Misfit is how much worse the worst call fits every part than the best tools.
	Lacking float64 `json:"lacking"`
	Misfit  float64 `json:"misfit"`
	// Unused is the share of the values in the intent that are neither in an argument nor
	// in the text of a planned tool, 1 if they show that a call is missing.
	Unused float64 `json:"unused"`
}

// memoryShare is the share of the votes of past intents in the fit of a tool.
const memoryShare = .5

// part is a part of the intent with the fit of the tools.
type part struct {
	fit  map[string]float64
	best []string // IDs, the best first
	gap  float64  // the best fit less that of the best planned tool
}

// parts returns the parts of the intent, or the whole if it has one.
func (c *checker) parts() []part {
	r := c.ranking
	list := make([]part, max(1, len(r.Candidates[0].PartScores())))
	for p := range list {
		q := &list[p]
		q.fit = map[string]float64{}
		for i := range r.Candidates {
			k := &r.Candidates[i]
			q.fit[k.ID] = k.PartLeg(p).Score + memoryShare*k.Memory
			q.best = append(q.best, k.ID)
		}
		slices.SortStableFunc(q.best, func(a, b string) int { return cmp.Compare(q.fit[b], q.fit[a]) })
		q.best = q.best[:min(len(q.best), maxCandidates)]
		have := 0.0
		for _, k := range c.plan.Calls {
			have = max(have, q.fit[k.Tool])
		}
		q.gap = q.fit[q.best[0]] - have
	}
	return list
}

// fits compares the calls with the intent. A step is missing for values that no call has. Else the
// call of the part that the plan serves worst is wrong, or a step for that part is missing.
func (c *checker) fits() {
	at := c.unused()
	if c.ranking == nil || len(c.ranking.Candidates) == 0 {
		return
	}
	parts := c.parts()
	need := &parts[0]
	for p := range parts {
		if parts[p].gap > need.gap {
			need = &parts[p]
		}
	}
	worst, misfit := -1, 0.0
	c.miss = make([]float64, len(c.plan.Calls))
	for i, k := range c.plan.Calls {
		miss, own := 1.0, &parts[0]
		for p := range parts {
			if s, ok := parts[p].fit[k.Tool]; ok {
				miss = min(miss, parts[p].fit[parts[p].best[0]]-s)
				if s > own.fit[k.Tool] {
					own = &parts[p]
				}
			}
		}
		c.miss[i] = miss
		if c.tools[i] == nil || slices.ContainsFunc(c.plan.Calls, func(other Call) bool { return c.needs(other.Tool, k.Tool) }) {
			continue
		}
		misfit = max(misfit, miss)
		if own == need && (worst < 0 || miss > c.miss[worst]) {
			worst = i
		}
	}
	s := &c.out.Signs
	s.Lacking, s.Misfit = min(1, max(0, need.gap)), min(1, misfit)
	if s.Schema > 0 {
		return
	}
	if at >= 0 {
		s.Unused = 1
		for p, in := range c.ranking.Parts[:min(len(parts), len(c.ranking.Parts))] {
			if in.Start <= at && at < in.End {
				need = &parts[p]
			}
		}
	} else if need.gap <= 0 {
		return
	}
	to := need.best[0]
	evidence := fmt.Sprintf("%s fits the intent better by %.2f than the tools of the plan", to, need.gap)
	if at >= 0 {
		evidence = fmt.Sprintf("no argument has the values in %.60q", toolsearch.Unquoted(c.plan.Intent)[at:])
	}
	switch {
	case at < 0 && worst >= 0 && c.miss[worst] > limits.Misfit:
		call := &c.plan.Calls[worst]
		c.find(Finding{Kind: WrongTool, Call: call.ID, Candidates: need.best, Confidence: s.wrongTool(), Repair: "call " + to, repair: swap(call.ID, to),
			Evidence: fmt.Sprintf("%s fits no part of the intent; %s", call.Tool, evidence)})
	case at >= 0 || s.Lacking > limits.Lacking:
		c.find(Finding{Kind: MissingStep, Candidates: need.best, Confidence: min(.99, s.missingStep()), Repair: "add a call of " + to, repair: insert(to, nil, nil), Evidence: evidence})
	}
}

// unused finds the values of the intent that the plan does not use. It returns the offset of the
// first of several values that only a lacking call can have: two in a row, or one of a list with
// a value in use. It returns -1 if there is none.
func (c *checker) unused() (at int) {
	intent, given := toolsearch.Unquoted(c.plan.Intent), map[string]bool{}
	stated, open := false, false // whether a call states its arguments, and whether one does not
	for i, k := range c.plan.Calls {
		t := cmp.Or(c.tools[i], &catalog.Tool{})
		stated, open = stated || k.Arguments != nil, open || k.Arguments == nil && len(t.Takes) > 0
		maps.Copy(given, tokens(textOf(k.Arguments)+" "+t.ID+" "+t.Description))
	}
	values := slices.DeleteFunc(toolsearch.Literals(intent), func(l toolsearch.Literal) bool {
		line := strings.TrimSpace(intent[strings.LastIndexByte(intent[:l.Start], '\n')+1 : l.Start])
		m := counter.FindStringSubmatch(intent[l.Start+len(l.Text):])
		return l.Kind == toolsearch.Number && m != nil && (m[1] != "" || line == "")
	})
	at = -1
	if !stated {
		return at
	}
	run, lacked := []int{}, false
	for i, l := range values {
		words, before := tokens(l.Text), &values[max(0, i-1)]
		n := len(words)
		maps.DeleteFunc(words, func(w string, _ bool) bool { return given[w] })
		lacks := 2*len(words) >= max(1, n) && !given[strings.ReplaceAll(l.Text, ",", "")]
		switch {
		case i > 0 && lacks != lacked && l.Kind == before.Kind && listed.MatchString(intent[before.Start+len(before.Text):l.Start]):
			run = []int{l.Start, l.Start}
			if lacked {
				run[0] = before.Start
			}
		case l.Kind == toolsearch.Phrase: // often a unit or the name of something else
		case lacks:
			run = append(run, l.Start)
		default:
			run = nil
		}
		lacked = lacks
		if lacks {
			c.out.Signs.Unused += 1 / float64(len(values))
		}
		if len(run) > 1 && at < 0 && !open {
			at = run[0]
		}
	}
	return at
}

var (
	token = regexp.MustCompile(`\pL+|\d+(?:\.\d+)?`)
	// listed matches the text between two values of a list, the first maybe with its unit.
	listed = regexp.MustCompile("^[\"'”’`]?(?: ?[\\pL°/]{1,12})?(?:,| and| or| &|, and) (?:the |in |for |at |on |[$€£])?[\"'“‘`]?$")
	// counter matches what follows the numbers of "1st" and, at the start of a line, of an item.
	counter = regexp.MustCompile(`^(?:(st|nd|rd|th)\b|(?:\.\d+)*[.)]?\s)`)
)

// tokens returns the words and numbers of a text, the numbers in one form.
func tokens(text string) map[string]bool {
	found := map[string]bool{}
	for _, w := range token.FindAllString(strings.ToLower(text), -1) {
		if n, err := strconv.ParseFloat(w, 64); err == nil {
			w = strconv.FormatFloat(n, 'f', -1, 64)
		}
		found[w] = true
	}
	return found
}

// requested is the misfit below which the intent requests a call.
const requested = .1

// negations come before what an intent does not request.
var negations = []string{"not", "never", "without", "no", "don", "cannot"}

// guards reports irreversible calls that the intent does not request, and before which no
// call reads.
func (c *checker) guards() {
	var asked toolsearch.Actions
	words := toolsearch.Words(c.plan.Intent)
	for i, w := range words {
		if !slices.ContainsFunc(words[max(0, i-3):i], func(w string) bool { return slices.Contains(negations, w) }) {
			asked |= toolsearch.ActionsOf(w)
		}
	}
	for j, t := range c.tools {
		if t == nil || len(c.miss) > j && c.miss[j] < requested || toolsearch.ActionsOf(t.Name)&asked != 0 || toolsearch.ActionsOf(t.Name) != toolsearch.Removing && !t.Destructive() {
			continue
		}
		guarded := false
		for i, g := range c.tools {
			guarded = guarded || g != nil && toolsearch.PurposeOf(g).Reads() && c.reaches(i, j)
		}
		if !guarded {
			call := c.plan.Calls[j].ID
			c.find(Finding{Kind: Unguarded, Call: call, Confidence: .5, Candidates: c.index.Givers(toolsearch.PurposeOf(t).Entity),
				Evidence: fmt.Sprintf("%s cannot be undone, the intent does not request it, and no call reads before it; ask the user", t.ID)})
		}
	}
}

// limits are the signs above which a plan gets a finding. Three right plans in a hundred exceed
// them on the catalogues of the fit, see benchmarks/plans.md.
var limits = Signs{Reversed: .88, Unordered: .3, Lacking: .5, Misfit: .17}

// The probabilities of the faults that the schemas do not show. Their weights are fitted, see
// benchmarks/plans.md.
func (s *Signs) missingStep() float64 { return sigmoid(12*s.Lacking + 8*s.Unused - 7) }
func (s *Signs) wrongTool() float64   { return sigmoid(10*min(s.Misfit, s.Lacking) + s.Misfit/2 - 3) }
func (s *Signs) wrongOrder() float64  { return sigmoid(4*s.Reversed + 20*s.Unordered - 3) }

// schemaTrust is the probability of a fault in a plan that contradicts the schemas.
const schemaTrust = .99

// score is the probability of a plan without faults, if the faults are independent.
func (s *Signs) score() float64 {
	return (1 - schemaTrust*s.Schema) * (1 - s.missingStep()) * (1 - s.wrongTool()) * (1 - s.wrongOrder())
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
