package suggest

import "cairn/graphrank"

// Mode is what a client may do with a suggestion.
type Mode string

// The modes, by confidence.
const (
	ExplicitRequired Mode = "explicit_required" // below 0.50: ask before anything is done
	Advised          Mode = "suggestion"        // below 0.70, or with a dangerous tool
	Speculative      Mode = "speculative"
)

// Thresholds of the modes, and the confidence below which Suggest warns.
const (
	suggestFrom   = 0.50
	warnBelow     = 0.65
	speculateFrom = 0.70
)

// unknownPath is the path strength without a path.
const unknownPath = 0.5

// Confidence is a weighted sum times the evidence of the edges; the weights
// follow from Alpha and sum to 1:
//
//	f = (clamp(Alpha, 0.5, 1) − 0.5)·2
//	HybridWeight = 0.55 + 0.30f, PageRankWeight = 0.30 − 0.25f, PathWeight = 0.15 − 0.05f
//	Value = Evidence · (HybridWeight·Hybrid + PageRankWeight·PageRank + PathWeight·Path)
type Confidence struct {
	Value          float64 `json:"value"`
	Hybrid         float64 `json:"hybrid"`   // mean fit of the chosen tools, in [0, 1]
	PageRank       float64 `json:"pagerank"` // mean of the first three
	Path           float64 `json:"path"`     // mean confidence of the paths between them
	Alpha          float64 `json:"alpha"`
	HybridWeight   float64 `json:"hybrid_weight"`
	PageRankWeight float64 `json:"pagerank_weight"`
	PathWeight     float64 `json:"path_weight"`
	// Evidence is the mean grade of the edges, 1 without edges. Edges counts them by
	// grade.
	Evidence float64    `json:"evidence"`
	Edges    EdgeCounts `json:"edges"`
}

// EdgeCounts counts the edges of a plan by their evidence.
type EdgeCounts struct {
	Exact    int `json:"exact"`
	Alias    int `json:"alias"`
	Partial  int `json:"partial"`
	TypeOnly int `json:"type_only"`
	Declared int `json:"declared"`
	Sequence int `json:"sequence"`
}

// confidence computes a confidence from its parts, for a plan without edges.
func confidence(hybrid, pageRank, path, alpha float64) Confidence {
	f := (min(max(alpha, 0.5), 1) - 0.5) * 2
	c := Confidence{Hybrid: hybrid, PageRank: pageRank, Path: path, Alpha: alpha,
		HybridWeight: 0.55 + 0.30*f, PageRankWeight: 0.30 - 0.25*f, PathWeight: 0.15 - 0.05*f, Evidence: 1}
	c.Value = c.HybridWeight*hybrid + c.PageRankWeight*pageRank + c.PathWeight*path
	return c
}

// weighEvidence multiplies the confidence by the mean grade of the edges. Each of
// several bindings between two tools counts.
func (c *Confidence) weighEvidence(edges []Edge) {
	var sum float64
	for _, e := range edges {
		sum += e.Grade
		switch {
		case e.Kind == "declared":
			c.Edges.Declared++
		case e.Kind == "sequence":
			c.Edges.Sequence++
		case e.Grade >= Exact:
			c.Edges.Exact++
		case e.Grade >= Alias:
			c.Edges.Alias++
		case e.Grade >= Partial:
			c.Edges.Partial++
		default:
			c.Edges.TypeOnly++
		}
	}
	if len(edges) > 0 {
		c.Evidence = sum / float64(len(edges))
	}
	c.Value *= c.Evidence
}

func modeOf(confidence float64) Mode {
	switch {
	case confidence < suggestFrom:
		return ExplicitRequired
	case confidence < speculateFrom:
		return Advised
	}
	return Speculative
}

// Path is a path in the co-usage graph from one chosen tool to another.
type Path struct {
	From        string   `json:"from"`
	To          string   `json:"to"`
	Path        []string `json:"path"`
	Hops        int      `json:"hops"`
	Explanation string   `json:"explanation"`
	Confidence  float64  `json:"confidence"`
}

// maxHops bounds the length of a Path.
const maxHops = 3

// paths returns the shortest path between every two tools in its shorter direction.
// Ties go to the given order.
func paths(g *graphrank.Graph, tools []string) []Path {
	list := []Path{}
	for i, to := range tools {
		for _, from := range tools[:i] {
			p, ok := g.ShortestPath(from, to, maxHops)
			if back, found := g.ShortestPath(to, from, maxHops); found && (!ok || back.Hops() < p.Hops()) {
				p, ok = back, true
			}
			if !ok {
				continue
			}
			text := "Direct dependency: "
			if p.Hops() > 1 {
				text = "Transitive: "
			}
			for n, id := range p.Nodes {
				if n > 0 {
					text += " → "
				}
				text += id
			}
			list = append(list, Path{From: p.Nodes[0], To: p.Nodes[len(p.Nodes)-1], Path: p.Nodes, Hops: p.Hops(), Explanation: text,
				Confidence: graphrank.HopConfidence(p.Hops())})
		}
	}
	return list
}
