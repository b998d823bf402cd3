package plancheck

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	// in the text of a planned tool.
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

// fits compares the calls with the intent. The call of the part that the plan serves worst is
// wrong, if another tool fits that part better; else a step for it is missing.
func (c *checker) fits() {
	c.unused()
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
		if c.miss[i] = miss; c.tools[i] == nil || slices.ContainsFunc(c.plan.Calls, func(other Call) bool { return c.needs(other.Tool, k.Tool) }) {
			continue
		}
		if misfit = max(misfit, miss); own == need && (worst < 0 || miss > c.miss[worst]) {
			worst = i
		}
	}
	s := &c.out.Signs
	s.Lacking, s.Misfit = min(1, max(0, need.gap)), min(1, misfit)
	if s.Schema > 0 || need.gap <= 0 {
		return
	}
	to := need.best[0]
	evidence := fmt.Sprintf("%s fits the intent better by %.2f than the tools of the plan", to, need.gap)
	switch {
	case worst >= 0 && c.miss[worst] > limits.Misfit:
		call := &c.plan.Calls[worst]
		c.find(Finding{Kind: WrongTool, Call: call.ID, Candidates: need.best, Confidence: s.wrongTool(), Repair: "call " + to, repair: swap(call.ID, to),
			Evidence: fmt.Sprintf("%s fits no part of the intent; %s", call.Tool, evidence)})
	case s.Lacking > limits.Lacking:
		c.find(Finding{Kind: MissingStep, Candidates: need.best, Confidence: s.missingStep(), Repair: "add a call of " + to, repair: insert(to, nil, nil), Evidence: evidence})
	}
}

// unused finds the values of the intent that the plan does not use.
func (c *checker) unused() {
	var given strings.Builder
	stated := false
	for i, k := range c.plan.Calls {
		stated = stated || k.Arguments != nil
		flatten(&given, map[string]any(k.Arguments))
		if t := c.tools[i]; t != nil {
			given.WriteString(t.ID + "\n" + t.Description + "\n")
		}
	}
	all, unused := values(c.plan.Intent), 0
	if !stated || len(all) == 0 {
		return
	}
	have := strings.ToLower(given.String())
	for _, v := range all {
		if !strings.Contains(have, v) {
			unused++
		}
	}
	c.out.Signs.Unused = float64(unused) / float64(len(all))
}

func flatten(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			flatten(b, e)
		}
	case []any:
		for _, e := range v {
			flatten(b, e)
		}
	case string:
		b.WriteString(v + "\n")
	case bool:
		b.WriteString(strconv.FormatBool(v) + "\n")
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'f', -1, 64) + "\n")
	}
}

// values returns the words of a text that look like values, in lower case: those with a
// digit, and those with a capital letter that do not begin a sentence.
func values(text string) []string {
	var list []string
	start := true
	for _, w := range strings.Fields(text) {
		word := strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if word != "" && word != "I" && (strings.ContainsFunc(word, unicode.IsDigit) || !start && strings.ContainsFunc(word, unicode.IsUpper)) {
			list = append(list, strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(word, "'s"), ",", "")))
		}
		start = strings.ContainsAny(w[len(w)-1:], ".?!:")
	}
	return list
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
func (s *Signs) missingStep() float64 { return sigmoid(12*s.Lacking + 5*s.Unused - 7) }
func (s *Signs) wrongTool() float64   { return sigmoid(10*min(s.Misfit, s.Lacking) + s.Misfit/2 - 3) }
func (s *Signs) wrongOrder() float64  { return sigmoid(4*s.Reversed + 20*s.Unordered - 3) }

// schemaTrust is the probability of a fault in a plan that contradicts the schemas.
const schemaTrust = .99

// score is the probability of a plan without faults, if the faults are independent.
func (s *Signs) score() float64 {
	return (1 - schemaTrust*s.Schema) * (1 - s.missingStep()) * (1 - s.wrongTool()) * (1 - s.wrongOrder())
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
