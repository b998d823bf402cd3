package term

import (
	"fmt"
	"slices"

	"cairn/graphrank"
	"cairn/internal/base/draw"
	"cairn/internal/face/view"
	"cairn/internal/toolbox/suggest"
)

// UsageGraph returns the edges as a graph. Its nodes are numbered in order of ID.
func UsageGraph(edges []view.UsageEdge, title func(id string) string) *draw.Graph {
	var ids []string
	for _, e := range edges {
		ids = append(ids, e.From, e.To)
	}
	slices.Sort(ids)
	g := &draw.Graph{Name: "usage"}
	number := map[string]string{}
	for i, id := range slices.Compact(ids) {
		number[id] = fmt.Sprintf("n%d", i)
		g.Nodes = append(g.Nodes, draw.Node{ID: number[id], Label: toolLabel(title, id)})
	}
	for _, e := range edges {
		g.Edges = append(g.Edges, draw.Edge{
			From: number[e.From], To: number[e.To], Label: e.Type, Strong: e.Type == graphrank.Dependency.String(), Width: 1 + 2*e.Weight,
		})
	}
	return g
}

// toolLabel returns the ID of a tool or document, with its title if it has one.
func toolLabel(title func(id string) string, id string) string {
	if t := title(id); t != "" {
		return Plain(id + ": " + t)
	}
	return Plain(id)
}

// PlanGraph returns the plan as a graph of its tasks.
func PlanGraph(s *suggest.Suggestion, title func(id string) string) *draw.Graph {
	g := &draw.Graph{Name: "plan"}
	for _, t := range s.Tasks {
		g.Nodes = append(g.Nodes, draw.Node{ID: t.ID, Label: toolLabel(title, t.Tool)})
	}
	for _, e := range s.DAG.Edges {
		g.Edges = append(g.Edges, draw.Edge{From: e.FromTask, To: e.ToTask, Label: Plain(e.Label())})
	}
	return g
}
