package web

import (
	"net/http"
	"strings"

	"cairn/graphrank"
	"cairn/internal/suggest"
)

type toolsPage struct {
	Intent     string
	Tools      int
	Suggestion *suggest.Suggestion
	Graph      *drawing
	Problem    string
	CoUsage    *coUsage // nil without edges
	Around     string
}

// toolPage draws a plan for an intent, and the co-usage graph.
func (h *Handler) toolPage(w http.ResponseWriter, r *http.Request) {
	if h.sources.Toolbox == nil {
		h.unknown(w, r)
		return
	}
	p := &toolsPage{Intent: strings.TrimSpace(r.URL.Query().Get("intent"))}
	stats, err := h.sources.Toolbox.Stats(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p.Tools = stats.Tools
	p.Around = strings.TrimSpace(r.URL.Query().Get("around"))
	err = h.sources.Toolbox.Read(r.Context(), func(g *graphrank.Graph) error {
		p.CoUsage = drawCoUsage(g, p.Around, h.options.Prefix(r))
		return nil
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if p.Intent != "" {
		if p.Suggestion, err = h.sources.Toolbox.Suggest(r.Context(), suggest.Request{Intent: p.Intent}, nil); err != nil {
			p.Problem = err.Error()
		} else {
			p.Graph = plan(p.Suggestion)
		}
	}
	h.show(w, r, view{section: "tools", title: "Tools", data: p})
}

// plan draws a suggestion.
func plan(s *suggest.Suggestion) *drawing {
	var boxes []box
	for _, t := range s.Tasks {
		class := "waiting"
		if t.Dangerous {
			class = "dangerous"
		}
		boxes = append(boxes, box{ID: t.ID, Label: t.Tool, Note: t.ID + " · fits " + percent(t.Confidence) + " %", Class: class})
	}
	var arrows []arrow
	for _, e := range s.DAG.Edges {
		arrows = append(arrows, arrow{e.FromTask, e.ToTask, e.Label()})
	}
	if len(boxes) == 0 {
		return nil
	}
	return draw(boxes, arrows)
}
