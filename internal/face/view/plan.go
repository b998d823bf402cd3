package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/toolbox/suggest"
)

// PlanStep is a step of a plan in words.
type PlanStep struct {
	ID, Tool, Why string
	Takes         []string // inputs from the intent and from earlier steps, and missing inputs
	Dangerous     bool
}

// PlanSteps describes the steps of a plan, which are numbered from 1.
func PlanSteps(s *suggest.Suggestion) (steps []PlanStep) {
	for _, t := range s.Tasks {
		step := PlanStep{ID: t.ID, Tool: t.Tool, Dangerous: t.Dangerous, Why: "fits " + percent(t.Confidence)}
		if t.Part != "" {
			step.Why = "fits “" + t.Part + "” to " + percent(t.Confidence)
		}
		if t.Remembered {
			step.Why += ", and was used for similar tasks"
		}
		if t.Prerequisite {
			step.Why = "included because it " + t.Rationale
		}
		for _, name := range slices.Sorted(maps.Keys(t.Arguments)) {
			value, err := json.Marshal(t.Arguments[name])
			if err == nil {
				step.Takes = append(step.Takes, fmt.Sprintf("with “%s” %s", name, value))
			}
		}
		for _, e := range s.DAG.Edges {
			if e.ToTask == t.ID {
				from := 1 + slices.IndexFunc(s.Tasks, func(t suggest.Task) bool { return t.ID == e.FromTask })
				takes := map[bool]string{false: "takes", true: "may take"}[e.Ambiguous]
				if output, input, ok := strings.Cut(e.DataPath, " → "); ok {
					step.Takes = append(step.Takes, fmt.Sprintf("%s “%s” from “%s” of step %d: %s", takes, strings.TrimPrefix(input, "input."), strings.TrimPrefix(output, "output."), from, e.Reason))
				} else {
					step.Takes = append(step.Takes, fmt.Sprintf("after step %d: %s", from, e.Reason))
				}
			}
		}
		for _, m := range s.Missing {
			if m.Task == t.ID {
				need := "needs a value for “" + m.Input + "”"
				if m.Supplier != "" {
					need += ", which " + m.Supplier + " may return"
				}
				step.Takes = append(step.Takes, need)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// PlanAdvice states how certain a plan is, and what to do with it.
func PlanAdvice(s *suggest.Suggestion) string {
	if len(s.Tasks) == 0 {
		return "no steps"
	}
	advice := map[suggest.Mode]string{
		suggest.ExplicitRequired: "check every step before you run it",
		suggest.Advised:          "check it before you run it",
		suggest.Speculative:      "you can run it as it is",
	}
	if n := len(s.Missing); n > 0 {
		advice[suggest.Speculative] = "you can run it when it has " + Count(n, "missing value")
	}
	return fmt.Sprintf("%s, %s sure: %s", Count(len(s.Tasks), "step"), percent(s.Confidence), advice[s.Mode])
}

// stated matches the warnings that PlanSteps and PlanAdvice express in other words.
var stated = regexp.MustCompile(`^(low confidence |required inputs |dangerous by name|\d+ of \d+ edges )`)

// PlanWarnings returns the warnings of a plan that its steps do not express.
func PlanWarnings(s *suggest.Suggestion) []string {
	return slices.DeleteFunc(slices.Clone(s.Warnings), stated.MatchString)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
