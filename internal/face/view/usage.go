package view

import (
	"cmp"
	"slices"

	"cairn/graphrank"
)

// UsageEdge is an edge between two tools or documents that are used together.
type UsageEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Source string  `json:"source"`
	Weight float64 `json:"weight"`
	Count  float64 `json:"count"`
}

// UsageEdges returns the edges of a co-usage graph, the heaviest and then the most often seen
// first. around selects the edges of one node; "" means all.
func UsageEdges(g *graphrank.Graph, around string) []UsageEdge {
	edges := []UsageEdge{}
	for e := range g.Edges() {
		if around == "" || e.From == around || e.To == around {
			edges = append(edges, UsageEdge{From: e.From, To: e.To, Type: e.Type.String(), Source: e.Source.String(), Weight: e.Weight(), Count: e.Count})
		}
	}
	slices.SortStableFunc(edges, func(x, y UsageEdge) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Count, x.Count))
	})
	return edges
}
