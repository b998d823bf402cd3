package web

import (
	"fmt"
	"net/http"
	"strings"

	"cairn/graphrank"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/suggest"
)

type toolsPage struct {
	Intent     string
	Tools      int
	Suggestion *suggest.Suggestion
	Advice     string // what to do with Suggestion
	Steps      []planStep
	Graph      *drawing
	Problem    string
	CoUsage    *coUsage // nil without edges
	Around     string
}

// toolPage draws a plan for an intent, and the co-usage graph.
func (h *Handler) toolPage(w http.ResponseWriter, r *http.Request) {
	if h.site.Toolbox == nil {
		h.unknown(w, r)
		return
	}
	p := &toolsPage{Intent: strings.TrimSpace(r.URL.Query().Get("intent"))}
	stats, err := toolbox.StatsOp.Call(r.Context(), h.site.Toolbox, struct{}{}, nil)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p.Tools = stats.Tools
	p.Around = strings.TrimSpace(r.URL.Query().Get("around"))
	err = new(toolbox.Graph).Read(r.Context(), h.site.Toolbox, func(g *graphrank.Graph) error {
		p.CoUsage = drawCoUsage(g, p.Around, h.site.Prefix(r))
		return nil
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if p.Intent != "" {
		if p.Suggestion, err = toolbox.SuggestOp.Call(r.Context(), h.site.Toolbox, suggest.Request{Intent: p.Intent}, nil); err != nil {
			p.Problem = err.Error()
		} else {
			p.Graph, p.Steps, p.Advice = plan(p.Suggestion), steps(p.Suggestion), advice[p.Suggestion.Mode]
		}
	}
	h.show(w, r, screen{section: "tools", title: "Tools", data: p})
}

// advice is the text for each mode.
var advice = map[suggest.Mode]string{
	suggest.ExplicitRequired: "check every step before you run it",
	suggest.Advised:          "check it before you run it",
	suggest.Speculative:      "you can run it as it is",
}

// planStep is a step of a plan in words.
type planStep struct {
	Tool, Why string
	Takes     []string // inputs from earlier steps, and missing inputs
	Dangerous bool
}

func steps(s *suggest.Suggestion) (list []planStep) {
	numbers := numbered(s)
	for _, t := range s.Tasks {
		step := planStep{Tool: t.Tool, Dangerous: t.Dangerous, Why: "fits " + percent(t.Confidence) + " %"}
		if t.Part != "" {
			step.Why = "fits “" + t.Part + "” to " + percent(t.Confidence) + " %"
		}
		if t.Remembered {
			step.Why += ", and was used for similar tasks"
		}
		if t.Prerequisite {
			step.Why = "included because it " + t.Rationale
		}
		for _, e := range s.DAG.Edges {
			if e.ToTask == t.ID {
				step.Takes = append(step.Takes, inWords(&e, numbers))
			}
		}
		for _, m := range s.Missing {
			if m.Task == t.ID {
				step.Takes = append(step.Takes, "needs a value for "+m.Input)
			}
		}
		list = append(list, step)
	}
	return list
}

// numbered returns the numbers of the steps by the id of their task.
func numbered(s *suggest.Suggestion) map[string]int {
	numbers := map[string]int{}
	for i, t := range s.Tasks {
		numbers[t.ID] = i + 1
	}
	return numbers
}

// inWords describes an edge for the step at its end.
func inWords(e *suggest.Edge, numbers map[string]int) string {
	from, to, ok := strings.Cut(e.DataPath, " → ")
	if !ok {
		return fmt.Sprintf("after step %d: %s", numbers[e.FromTask], e.Reason)
	}
	from, to = strings.TrimPrefix(from, "output."), strings.TrimPrefix(to, "input.")
	if e.Ambiguous {
		return fmt.Sprintf("may take “%s” from “%s” of step %d: %s", to, from, numbers[e.FromTask], e.Reason)
	}
	return fmt.Sprintf("takes “%s” from “%s” of step %d: %s", to, from, numbers[e.FromTask], e.Reason)
}

// plan draws a suggestion.
func plan(s *suggest.Suggestion) *drawing {
	var boxes []box
	numbers := numbered(s)
	for _, t := range s.Tasks {
		class := "waiting"
		if t.Dangerous {
			class = "dangerous"
		}
		boxes = append(boxes, box{ID: t.ID, Label: t.Tool, Note: fmt.Sprintf("step %d · fits %s %%", numbers[t.ID], percent(t.Confidence)), Class: class})
	}
	var arrows []arrow
	for _, e := range s.DAG.Edges {
		arrows = append(arrows, arrow{e.FromTask, e.ToTask, inWords(&e, numbers)})
	}
	if len(boxes) == 0 {
		return nil
	}
	return draw(boxes, arrows)
}
