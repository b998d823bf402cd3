package benchmarks

import "cairn/internal/suggest"

// F1 is the harmonic mean of precision and recall of what was predicted, as
// GNN4TaskPlan computes it for nodes and links of one plan (Wu et al., "Can
// Graph Learning Improve Planning in LLM-based Agents?", NeurIPS 2024, after
// the node and edge F1 of TaskBench, Shen et al., NeurIPS 2024): precision is
// the number of distinct common elements over the length of predicted, recall
// that over the length of want, so that an element given twice counts once. It
// is 0 when either is empty.
func F1[T comparable](predicted, want []T) float64 {
	if len(predicted) == 0 || len(want) == 0 {
		return 0
	}
	in := make(map[T]bool, len(want))
	for _, w := range want {
		in[w] = true
	}
	common := 0
	for _, p := range predicted {
		if in[p] {
			in[p] = false
			common++
		}
	}
	return 2 * float64(common) / float64(len(predicted)+len(want))
}

// PlanMetrics compare plans with what was really called.
type PlanMetrics struct {
	// NodeF1 is the mean F1 of the tools, LinkF1 that of the links, over the
	// tasks that have links, as in GNN4TaskPlan, which leaves single tools out.
	NodeF1 float64 `json:"node_f1"`
	LinkF1 float64 `json:"link_f1"`
	// Exact is the share of plans whose tools are those called, no more and no less.
	Exact float64 `json:"exact"`
	// Hallucinated is the share of planned tools that the catalogue lacks.
	Hallucinated float64 `json:"hallucinated"`
	// SupportBindings is the share of links for which the schemas say what flows.
	SupportBindings float64 `json:"support_bindings"`
	// Size is the mean number of tools in a plan.
	Size float64 `json:"size"`
}

// planSums adds up what PlanMetrics are the means of.
type planSums struct {
	nodeF1, linkF1, exact       float64
	tasks, linked, nodes, alien int
	links, supported            int
}

// add compares one plan. known says whether the catalogue has a tool.
func (s *planSums) add(plan *suggest.Suggestion, task *toolTask, known func(id string) bool) {
	var nodes []string
	seen := map[string]bool{}
	for _, n := range plan.DAG.Nodes {
		s.nodes++
		if !known(n.ToolID) {
			s.alien++
		}
		if !seen[n.ToolID] {
			seen[n.ToolID] = true
			nodes = append(nodes, n.ToolID)
		}
	}
	flows := map[[2]string]bool{}
	var links [][2]string
	for _, e := range plan.DAG.Edges {
		l := [2]string{e.From, e.To}
		if _, ok := flows[l]; !ok {
			links = append(links, l)
		}
		flows[l] = flows[l] || e.DataPath != ""
	}
	for _, l := range links {
		s.links++
		if flows[l] {
			s.supported++
		}
	}
	s.tasks++
	f := F1(nodes, task.calls)
	s.nodeF1 += f
	if len(nodes) == len(task.relevant) {
		all := 1.0
		for _, n := range nodes {
			if _, ok := task.relevant[n]; !ok {
				all = 0
			}
		}
		s.exact += all
	}
	if len(task.edges) == 0 {
		return
	}
	want := make([][2]string, len(task.edges))
	for i, e := range task.edges {
		want[i] = [2]string{task.calls[e[0]], task.calls[e[1]]}
	}
	s.linked++
	s.linkF1 += F1(links, want)
}

func (s *planSums) metrics() PlanMetrics {
	over := func(v float64, n int) float64 { return v / float64(max(1, n)) }
	return PlanMetrics{NodeF1: over(s.nodeF1, s.tasks), LinkF1: over(s.linkF1, s.linked), Exact: over(s.exact, s.tasks),
		Hallucinated: over(float64(s.alien), s.nodes), SupportBindings: over(float64(s.supported), s.links), Size: over(float64(s.nodes), s.tasks)}
}
