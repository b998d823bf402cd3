package suggest

import (
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"cairn/graphrank"
)

// Mode is what a client may do with a suggestion.
type Mode string

// The modes, by confidence.
const (
	ExplicitRequired Mode = "explicit_required" // below 0.50: ask the user before running any tool
	Advised          Mode = "suggestion"        // below 0.70, or with a dangerous tool
	Speculative      Mode = "speculative"
)

// Thresholds of the modes, and the confidence below which Suggest warns.
const (
	suggestFrom   = 0.50
	warnBelow     = 0.65
	speculateFrom = 0.70
)

// unknownPath is the value of Confidence.Path without a path.
const unknownPath = 0.5

// Confidence estimates the probability that a plan has exactly the tools that the intent
// needs. Its base is a weighted sum. The weights depend on Alpha and sum to 1:
//
//	f = (clamp(Alpha, 0.5, 1) − 0.5)·2
//	HybridWeight = 0.55 + 0.30f, PageRankWeight = 0.30 − 0.25f, PathWeight = 0.15 − 0.05f
//	Base = HybridWeight·Hybrid + PageRankWeight·PageRank + PathWeight·Path
//
// Value is a logistic function of Features with fitted weights. Evidence does not lower it, and
// parts without a tool do not raise it.
type Confidence struct {
	Value          float64 `json:"value"`
	Base           float64 `json:"base"`
	Hybrid         float64 `json:"hybrid"`   // mean fit of the chosen tools, in [0, 1]
	PageRank       float64 `json:"pagerank"` // mean PageRank of the first three chosen tools
	Path           float64 `json:"path"`     // mean confidence of the paths between the tools
	Alpha          float64 `json:"alpha"`
	HybridWeight   float64 `json:"hybrid_weight"`
	PageRankWeight float64 `json:"pagerank_weight"`
	PathWeight     float64 `json:"path_weight"`
	// Weakest is the smallest fit by meaning or memory of a chosen tool. Lead is the
	// smallest lead of one over the next tool for its part, at most mostLead. Covered is the
	// share of the words of the intent that the chosen tools have. Split is the probability of the
	// parts of the intent, and Choice the smallest one of a chosen tool among the candidates for its
	// part; both are 1 if past intents chose the tools. All of them are 0 for given tools.
	Weakest float64 `json:"weakest"`
	Lead    float64 `json:"lead"`
	Covered float64 `json:"covered"`
	Split   float64 `json:"split"`
	Choice  float64 `json:"choice"`
	// Evidence is the mean, over all steps except the first, of the best grade of an
	// edge into the step, 0 for a step without one. It is 1 for a plan of one step.
	// Edges counts the edges by grade.
	Evidence float64    `json:"evidence"`
	Edges    EdgeCounts `json:"edges"`
	// Steps counts the chosen tools, and is 0 for given ones. Missing counts the required
	// inputs without a sure value, and Unmatched the parts of the intent without a tool.
	Steps     int `json:"steps"`
	Missing   int `json:"missing"`
	Unmatched int `json:"unmatched"`
}

// EdgeCounts counts the edges of a plan by their evidence.
type EdgeCounts struct {
	Exact    int `json:"exact"`
	Alias    int `json:"alias"`
	Partial  int `json:"partial"`
	TypeOnly int `json:"type_only"`
	Declared int `json:"declared"`
	Sequence int `json:"sequence"`
	Stated   int `json:"stated"`
	Inferred int `json:"inferred"`
	Text     int `json:"text"`
}

// data returns the number of edges by schema.
func (n *EdgeCounts) data() int { return n.Exact + n.Alias + n.Partial + n.TypeOnly }

// confidence returns a Confidence with its Base computed from its parts.
func confidence(hybrid, pageRank, path, alpha float64) Confidence {
	f := (min(max(alpha, 0.5), 1) - 0.5) * 2
	c := Confidence{Hybrid: hybrid, PageRank: pageRank, Path: path, Alpha: alpha,
		HybridWeight: 0.55 + 0.30*f, PageRankWeight: 0.30 - 0.25*f, PathWeight: 0.15 - 0.05*f, Evidence: 1}
	c.Base = c.HybridWeight*hybrid + c.PageRankWeight*pageRank + c.PathWeight*path
	return c
}

// weighEvidence counts the edges of a plan and computes Evidence.
func (c *Confidence) weighEvidence(edges []Edge, steps int) {
	best := map[string]float64{} // of an edge into the task
	n := &c.Edges
	counts := map[string]*int{DeclaredEdge: &n.Declared, LearntEdge: &n.Sequence, StatedEdge: &n.Stated, InferredEdge: &n.Inferred, TextEdge: &n.Text}
	for _, e := range edges {
		best[e.ToTask] = max(best[e.ToTask], e.Grade)
		switch count := counts[e.Kind]; {
		case count != nil:
			*count++
		case e.Grade >= Exact:
			n.Exact++
		case e.Grade >= Alias:
			n.Alias++
		case e.Grade >= Partial:
			n.Partial++
		default:
			n.TypeOnly++
		}
	}
	if steps < 2 {
		return
	}
	c.Evidence = 0
	for _, id := range slices.Sorted(maps.Keys(best)) {
		c.Evidence += best[id] / float64(steps-1)
	}
	c.Evidence = min(1, c.Evidence)
}

// mostLead bounds Lead.
const mostLead = 0.4

// Weights of tools that the caller chose, set by hand because no set has such plans. Each of the
// first maxMissing missing inputs subtracts givenMissing.
const (
	givenBias, givenEvidence, givenMissing = 0.25, 0.88, 0.18
	maxMissing                             = 5
)

// Features lists what Value depends on. "unmatched" is 1 if a part of the intent has no tool,
// and "choice" the logarithm of Choice.
var Features = []string{"bias", "weakest", "lead", "covered", "evidence", "unmatched", "choice", "split"}

// Features returns the values of Features.
func (c *Confidence) Features() []float64 {
	return []float64{1, c.Weakest, c.Lead, c.Covered, c.Evidence, float64(min(1, c.Unmatched)), math.Log(max(c.Choice, 1e-9)), c.Split}
}

// fitted is a benchmarks.FitReport, which cairn bench fit writes.
//
//go:embed weights.json
var fitted []byte

// weights and choiceWeights hold the weights of Features and of ChoiceFeatures. The probability that
// a candidate is the right one for its part is proportional to the exponential of sharpness times its
// score.
var weights, choiceWeights, sharpness = func() (confidence, choice []float64, sharpness float64) {
	var file struct {
		Weights, Choice map[string]float64
		Sharpness       float64
	}
	if err := json.Unmarshal(fitted, &file); err != nil {
		panic("suggest: weights.json: " + err.Error())
	}
	for _, f := range Features {
		confidence = append(confidence, file.Weights[f])
	}
	for _, f := range ChoiceFeatures {
		choice = append(choice, file.Choice[f])
	}
	return confidence, choice, file.Sharpness
}()

// estimate computes Value.
func (c *Confidence) estimate() {
	z := givenBias + givenEvidence*c.Evidence - givenMissing*float64(min(maxMissing, c.Missing))
	if c.Steps > 0 {
		z = 0
		for i, f := range c.Features() {
			z += weights[i] * f
		}
	}
	c.Value = 1 / (1 + math.Exp(-z))
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

// paths returns the shortest path between every two tools, in the shorter direction. If
// both are equally long, the path follows the order of tools.
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
			list = append(list, Path{From: p.Nodes[0], To: p.Nodes[len(p.Nodes)-1], Path: p.Nodes, Hops: p.Hops(), Explanation: text + strings.Join(p.Nodes, " → "),
				Confidence: graphrank.HopConfidence(p.Hops())})
		}
	}
	return list
}
