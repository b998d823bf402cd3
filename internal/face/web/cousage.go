package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/face/view"
)

// coUsage draws the co-usage graph of tools: nodes on a circle, grouped by
// community, and for each edge a curve whose width is proportional to its weight.
type coUsage struct {
	Width, Height int
	Nodes         []node
	Curves        []curve
	Rows          []view.UsageEdge // as Curves
	Omitted       int              // edges that are not drawn
}

type node struct {
	X, Y, R   int
	LX, LY    int // of the label
	Anchor    string
	Label, ID string
	Link      string
	Edges     int
}

type curve struct{ D, Width, Title string }

const (
	maxNodes     = 32  // with more, labels would overlap
	maxCurves    = 128 // edges
	labelWidth   = 220 // pixels left and right of the circle
	labelHeight  = 28
	leastRadius  = 120
	pixelsApart  = 40 // between neighbours on the circle
	dotRadius    = 5
	curveWidth   = 2.5 // of an edge of weight 1
	curveBend    = 0.55
	labelsAround = 12
)

// drawCoUsage draws the heaviest edges between tools or documents, or only those of around if
// that is not "": a name, or else a part of names. Links go to page.
func drawCoUsage(g *graphrank.Graph, around, page string) *coUsage {
	part := strings.ToLower(around)
	if len(view.UsageEdges(g, around)) > 0 {
		part = "" // around is a name
	} else if around != "" {
		around = ""
	}
	edges := slices.DeleteFunc(view.UsageEdges(g, around), func(e view.UsageEdge) bool {
		return strings.HasPrefix(e.From, graphrank.DocumentPrefix) || strings.HasPrefix(e.To, graphrank.DocumentPrefix) || e.From == e.To ||
			!strings.Contains(strings.ToLower(e.From), part) && !strings.Contains(strings.ToLower(e.To), part)
	})
	t := &coUsage{}
	degree := map[string]int{}
	for _, e := range edges {
		fresh := 0
		for _, id := range []string{e.From, e.To} {
			if degree[id] == 0 {
				fresh++
			}
		}
		if len(t.Rows) == maxCurves || len(degree)+fresh > maxNodes {
			t.Omitted++
			continue
		}
		degree[e.From]++
		degree[e.To]++
		t.Rows = append(t.Rows, e)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	at := t.circle(g, degree, page)
	for _, e := range t.Rows {
		a, b := t.Nodes[at[e.From]], t.Nodes[at[e.To]]
		cx, cy := float64(t.Width)/2, float64(t.Height)/2
		mx, my := float64(a.X+b.X)/2, float64(a.Y+b.Y)/2
		t.Curves = append(t.Curves, curve{
			D:     fmt.Sprintf("M%d %d Q%.0f %.0f %d %d", a.X, a.Y, mx+(cx-mx)*curveBend, my+(cy-my)*curveBend, b.X, b.Y),
			Width: fmt.Sprintf("%.1f", curveWidth*e.Weight),
			Title: fmt.Sprintf("%s → %s: %s, %s, weight %.2f, seen %.3g", e.From, e.To, e.Type, e.Source, e.Weight, e.Count),
		})
	}
	return t
}

// circle places the nodes and returns the index of each in Nodes.
func (t *coUsage) circle(g *graphrank.Graph, degree map[string]int, page string) map[string]int {
	var order []string
	for _, group := range g.Communities() {
		for _, id := range group {
			if degree[id] > 0 {
				order = append(order, id)
			}
		}
	}
	radius := max(leastRadius, float64(len(order)*pixelsApart)/(2*math.Pi))
	t.Width, t.Height = int(2*(radius+labelWidth)), int(2*(radius+labelHeight))
	at := map[string]int{}
	for i, id := range order {
		sin, cos := math.Sincos(2*math.Pi*(float64(i)+0.5)/float64(len(order)) - math.Pi/2)
		x, y := float64(t.Width)/2, float64(t.Height)/2
		n := node{
			X: int(x + radius*cos), Y: int(y + radius*sin), R: dotRadius + min(degree[id], dotRadius)/2,
			LX: int(x + (radius+labelsAround)*cos), LY: int(y+(radius+labelsAround)*sin) + 4, Anchor: "start",
			ID: id, Label: cut(id, 30), Edges: degree[id], Link: page + "?around=" + url.QueryEscape(id),
		}
		if cos < 0 {
			n.Anchor = "end"
		}
		at[id] = len(t.Nodes)
		t.Nodes = append(t.Nodes, n)
	}
	return at
}
