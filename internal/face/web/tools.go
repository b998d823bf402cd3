package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/face/view"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/suggest"
)

type toolsPage struct {
	Intent     string
	Tools      int
	Suggestion *suggest.Suggestion
	Advice     string // how certain Suggestion is, and what to do with it
	Warnings   []string
	Steps      []view.PlanStep
	Graph      *drawing
	Problem    string
	CoUsage    *coUsage // nil without edges
	Around     string
}

// toolPage draws a plan for an intent, and the co-usage graph.
func (h *Handler) toolPage(w http.ResponseWriter, r *http.Request) error {
	p := &toolsPage{Intent: strings.TrimSpace(r.URL.Query().Get("intent"))}
	stats, err := toolbox.StatsOp.Call(r.Context(), h.site.Toolbox, struct{}{}, nil)
	if err != nil {
		return err
	}
	p.Tools = stats.Tools
	p.Around = strings.TrimSpace(r.URL.Query().Get("around"))
	err = new(toolbox.Graph).Read(r.Context(), h.site.Toolbox, func(g *graphrank.Graph) {
		p.CoUsage = drawCoUsage(g, p.Around, h.site.Prefix(r)+"/tools")
	})
	if err != nil {
		return err
	}
	if p.Intent != "" {
		if p.Suggestion, err = toolbox.SuggestOp.Call(r.Context(), h.site.Toolbox, suggest.Request{Intent: p.Intent}, nil); err != nil {
			p.Problem = err.Error()
		} else {
			p.Graph, p.Steps, p.Advice, p.Warnings = plan(p.Suggestion), view.PlanSteps(p.Suggestion), view.PlanAdvice(p.Suggestion), view.PlanWarnings(p.Suggestion)
		}
	}
	return h.show(w, r, page{Section: "tools", Title: "Tools", Data: p})
}

// plan draws a suggestion. An arrow has the names of the inputs that a step takes.
func plan(s *suggest.Suggestion) *drawing {
	var boxes []box
	for i, t := range s.Tasks {
		class := "waiting"
		if t.Dangerous {
			class = "dangerous"
		}
		boxes = append(boxes, box{ID: t.ID, Label: t.Tool, Note: fmt.Sprintf("step %d · fits %s %%", i+1, percent(t.Confidence)), Class: class})
	}
	var arrows []arrow
	for _, e := range s.DAG.Edges {
		_, input, _ := strings.Cut(e.DataPath, " → ")
		a := arrow{e.FromTask, e.ToTask, strings.TrimPrefix(input, "input.")}
		same := slices.IndexFunc(arrows, func(b arrow) bool { return b.From == a.From && b.To == a.To })
		switch {
		case same < 0:
			arrows = append(arrows, a)
		case arrows[same].Label == "":
			arrows[same].Label = a.Label
		case a.Label != "":
			arrows[same].Label += ", " + a.Label
		}
	}
	if len(boxes) == 0 {
		return nil
	}
	return draw(boxes, arrows, false)
}
