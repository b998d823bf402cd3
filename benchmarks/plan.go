package benchmarks

import (
	"slices"

	"cairn/internal/toolbox/suggest"
)

// f1 is the harmonic mean of precision and recall of predicted. Precision is the number of
// distinct common elements divided by the length of predicted, recall the same number
// divided by the length of want. It is 0 if either is empty. GNN4TaskPlan computes it so
// for the nodes and the links of one plan (Wu et al., "Can Graph Learning Improve Planning
// in LLM-based Agents?", NeurIPS 2024), after TaskBench (Shen et al., NeurIPS 2024).
func f1[T comparable](predicted, want []T) float64 {
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

// PlanMetrics compares plans with the calls of the tasks.
type PlanMetrics struct {
	// NodeF1 is the mean F1 of the tools. It ignores prerequisites if the set has no links
	// for the task. LinkF1 is the mean F1 of the links over the tasks that have links, as
	// in GNN4TaskPlan, which ignores single tools.
	NodeF1 float64 `json:"node_f1"`
	LinkF1 float64 `json:"link_f1"`
	// LinkF1All is the mean F1 of the links over all tasks whose links are known. For a
	// task without links it is 1 if the plan has none, and 0 otherwise.
	LinkF1All float64 `json:"link_f1_all"`
	// Invented is the mean number of links in the plans of tasks without links. Claimed is
	// the mean number of those with more evidence than the order of the text.
	Invented float64 `json:"invented_links"`
	Claimed  float64 `json:"invented_links_claimed"`
	// Exact is the share of plans with exactly the called tools.
	Exact float64 `json:"exact"`
	// Whole is the share of plans that are exact and run each tool after those it waits for.
	Whole float64 `json:"whole"`
	// Hallucinated is the share of planned tools that are not in the catalogue.
	Hallucinated float64 `json:"hallucinated"`
	// SupportBindings is the share of links whose data the schemas define.
	SupportBindings float64 `json:"support_bindings"`
	// Size is the mean number of tools in a plan.
	Size float64 `json:"size"`
}

// planSums holds the sums for PlanMetrics.
type planSums struct {
	nodeF1, linkF1, linkF1All, exact, whole float64
	tasks, linked, known, nodes, alien      int
	links, supported                        int
	single, invented, claimed               int // tasks without links, and links of their plans
	judged                                  []judgement
}

// judgement is a plan's confidence, and whether its tools were right.
type judgement struct {
	confidence float64
	right      bool
}

// add compares one plan. known reports whether the catalogue has a tool. An alternative to a
// tool is treated as that tool.
func (s *planSums) add(plan *suggest.Suggestion, task *toolTask, known func(id string) bool) {
	name := task.accepted(plan)
	needed := map[string]bool{}
	for _, t := range plan.Tasks {
		// A set without links lists only the requested tools.
		needed[t.Tool] = t.Prerequisite && task.unlinked
	}
	var nodes []string
	layers := map[string]int{} // of the first use
	for _, n := range plan.DAG.Nodes {
		s.nodes++
		if !known(n.ToolID) {
			s.alien++
		}
		if id := name(n.ToolID); !needed[n.ToolID] && !slices.Contains(nodes, id) {
			nodes = append(nodes, id)
		}
	}
	for _, t := range plan.Tasks {
		if _, ok := layers[name(t.Tool)]; !ok {
			layers[name(t.Tool)] = t.Layer
		}
	}
	flows := map[[2]string]bool{}
	claimed := map[[2]string]bool{}
	var links [][2]string
	for _, e := range plan.DAG.Edges {
		l := [2]string{name(e.From), name(e.To)}
		if _, ok := flows[l]; !ok {
			links = append(links, l)
		}
		flows[l] = flows[l] || e.DataPath != "" && e.Kind != "inferred"
		claimed[l] = claimed[l] || e.Kind != "text"
	}
	for _, l := range links {
		s.links++
		if flows[l] {
			s.supported++
		}
	}
	s.tasks++
	s.nodeF1 += f1(nodes, task.required(nodes))
	exact := task.exact(nodes)
	s.judged = append(s.judged, judgement{plan.Confidence, exact})
	want := make([][2]string, len(task.edges))
	ordered := true
	for i, e := range task.edges {
		want[i] = [2]string{task.calls[e[0]], task.calls[e[1]]}
		ordered = ordered && (want[i][0] == want[i][1] || layers[want[i][0]] < layers[want[i][1]])
	}
	if exact {
		s.exact++
		if ordered {
			s.whole++
		}
	}
	if task.unlinked {
		return
	}
	s.known++
	f := f1(links, want)
	if len(want) == 0 {
		if s.single++; len(links) == 0 {
			f = 1
		}
		for _, l := range links {
			if s.invented++; claimed[l] {
				s.claimed++
			}
		}
	} else {
		s.linked++
		s.linkF1 += f
	}
	s.linkF1All += f
}

func (s *planSums) metrics() PlanMetrics {
	over := func(v float64, n int) float64 { return v / float64(max(1, n)) }
	return PlanMetrics{NodeF1: over(s.nodeF1, s.tasks), LinkF1: over(s.linkF1, s.linked), LinkF1All: over(s.linkF1All, s.known),
		Invented: over(float64(s.invented), s.single), Claimed: over(float64(s.claimed), s.single),
		Exact: over(s.exact, s.tasks), Whole: over(s.whole, s.tasks),
		Hallucinated: over(float64(s.alien), s.nodes), SupportBindings: over(float64(s.supported), s.links), Size: over(float64(s.nodes), s.tasks)}
}
