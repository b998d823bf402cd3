package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"cairn/graphrank"
	"cairn/internal/base/draw"
	"cairn/internal/face/view"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/plancheck"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// Tool writes one tool with its parameters and the tools used with it.
func (o *Writer) Tool(t *catalog.Tool, related []graphrank.Scored) {
	o.Printf("%s\n", o.paint(bold, Plain(t.ID)))
	for line := range strings.Lines(t.Description) {
		for _, part := range wrap(Cut(line, 1<<20), o.width-2) {
			o.Printf("  %s\n", part)
		}
	}
	o.parameters("takes", t.Takes)
	o.parameters("gives", t.Gives)
	var with []string
	for _, r := range related {
		with = append(with, fmt.Sprintf("%s %.2f", r.ID, r.Score))
	}
	o.Fields(8, "needs", strings.Join(t.DependsOn, ", "), "broken", t.SchemaError, "flagged", Flags(t.Flags), "used with", strings.Join(with, ", "))
}

func (o *Writer) parameters(name string, list []catalog.Parameter) {
	if len(list) == 0 {
		return
	}
	o.Printf("%s\n", name)
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, p := range list {
		kind := cmp.Or(strings.Join(p.Types, "|"), "any")
		if p.Required {
			kind += ", required"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", Plain(p.Path), kind, Cut(OneLine(p.Description), 60))
	}
	table.Flush()
	for line := range strings.Lines(b.String()) {
		o.Printf("%s\n", Cut(strings.TrimRight(line, " \n"), o.width))
	}
}

// Fields writes one line for each name with a value that is not empty. It pads the names to
// width.
func (o *Writer) Fields(width int, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			o.Printf("%-*s  %s\n", width, pair[0], Plain(pair[1]))
		}
	}
}

// Flags returns the suspicious parts of a description with the evidence.
func Flags(flags []catalog.Flag) string {
	var parts []string
	for _, f := range flags {
		parts = append(parts, fmt.Sprintf("%s (%s)", f.Kind, Plain(f.Evidence)))
	}
	return strings.Join(parts, ", ")
}

// EmptyCatalogue notes that no tool was imported.
func (o *Output) EmptyCatalogue() {
	o.Notes.Printf("The catalogue is empty: import tools first, with `cairn tools import`\n")
}

// Tools writes a line per tool. total is the number of tools with those that are not listed.
func (o *Output) Tools(list []toolbox.Listed, total int) {
	for _, t := range list {
		id := Plain(t.ID)
		if len(t.Flags) > 0 {
			id += " (flagged)"
		}
		o.Printf("%s\n", Cut(fmt.Sprintf("%-34s  %s", id, Plain(t.Description)), o.width))
	}
	switch {
	case total == 0:
		o.EmptyCatalogue()
	case total > len(list):
		o.Notes.Printf("%d of %d tools\n", len(list), total)
	}
}

// FoundTools writes the tools that a search found.
func (o *Output) FoundTools(answer *toolsearch.Answer) {
	for _, missing := range answer.Degraded {
		if missing == "owner" {
			missing = "the process that owns the folder, which does not answer: `cairn status` names it"
		}
		o.Notes.Warn("without %s", missing)
	}
	if answer.Message != "" {
		o.Notes.Printf("%s\n", answer.Message)
	}
	for _, t := range answer.Tools {
		o.Printf("%s\n", Cut(fmt.Sprintf("%.3f  %-30s  %s", t.Score, Plain(t.ID), OneLine(t.Description)), o.width))
		if t.Explain != nil {
			for _, line := range wrap(scoreOf(t.Explain), o.width-7) {
				o.Printf("       %s\n", line)
			}
		}
	}
	for _, m := range answer.Remembered {
		o.Printf("%s\n", Cut(fmt.Sprintf("like %q (%.2f)", Plain(m.Intent), m.Similarity), o.width))
	}
}

// scoreOf returns the components of a score that are not 0.
func scoreOf(c *toolsearch.Candidate) string {
	text := fmt.Sprintf("= 0.8·%.3f", c.Final)
	for _, term := range []struct {
		name         string
		share, value float64
	}{{"pagerank", 0.2, c.PageRank}, {"memory", 1, c.Memory}, {"transition", 1, c.Transition}, {"closure", 1, c.Closure}} {
		switch {
		case term.value == 0:
		case term.share == 1:
			text += fmt.Sprintf(" + %.3f %s", term.value, term.name)
		default:
			text += fmt.Sprintf(" + %.1f·%.3f %s", term.share, term.value, term.name)
		}
	}
	text += fmt.Sprintf("; hybrid %.3f", c.Hybrid)
	if c.Alpha < 1 {
		text += fmt.Sprintf(" by %.2f, graph %.3f by %.2f", c.Alpha, c.Graph, 1-c.Alpha)
	}
	if c.Injected > 0 {
		text += fmt.Sprintf(", at least %.3f from the graph", c.Injected)
	}
	return text
}

// Plan writes a plan of tools: what each step does and which values it gets. purpose
// returns the purpose of a tool in a few words.
func (o *Writer) Plan(s *suggest.Suggestion, purpose func(id string) string) {
	long := func(indent, text string) {
		for _, line := range wrap(Plain(text), o.width-len(indent)) {
			o.Printf("%s%s\n", indent, line)
		}
	}
	long("", view.PlanAdvice(s))
	for i, step := range view.PlanSteps(s) {
		o.Printf("%2d. %s", i+1, o.paint(bold, Plain(step.Tool)))
		if does := Plain(purpose(step.Tool)); does != "" {
			o.Printf("  %s", Cut(does, max(o.width-6-len(step.Tool), 8)))
		}
		o.Printf("\n")
		if step.Dangerous {
			long("    ", "can cause harm: confirm it before it runs")
		}
		for _, line := range append([]string{step.Why}, step.Takes...) {
			long("    ", line)
		}
	}
	for _, warning := range view.PlanWarnings(s) { // they name the parts of the intent without a tool
		long("", "warning: "+warning)
	}
}

// PlanReport writes the findings about a plan as text, and the repaired plan.
func (o *Output) PlanReport(r *plancheck.Report) {
	o.Printf("score %.2f, %s\n", r.Score, view.Count(len(r.Findings), "finding"))
	for _, f := range r.Findings {
		line := string(f.Kind)
		for _, at := range []string{f.Call, f.Tool, f.Input} {
			if at != "" {
				line += "  " + Plain(at)
			}
		}
		o.Printf("%s\n   %s\n", line, Plain(f.Evidence))
		if f.Repair != "" {
			o.Printf("   repair: %s\n", Plain(f.Repair))
		} else if len(f.Candidates) > 0 {
			o.Printf("   candidates: %s\n", Plain(strings.Join(f.Candidates, ", ")))
		}
		if len(f.Example) > 0 {
			o.Printf("   example: %s\n", Plain(string(f.Example)))
		}
	}
	if r.Repaired != nil {
		for _, c := range r.Repaired.Calls {
			o.Printf("repaired  %s  %s\n", Plain(c.ID), Plain(c.Tool))
		}
	}
}

// ImportReport is the JSON output of an import.
type ImportReport struct {
	Source string `json:"source"`
	Tools  int    `json:"tools"`
	catalog.Diff
	Refused  int          `json:"refused"`
	Broken   []BrokenTool `json:"broken"`
	Flagged  []BrokenTool `json:"flagged"`
	Warnings []string     `json:"warnings"`
}

// BrokenTool is a tool that was kept with a remark.
type BrokenTool struct {
	ID    string         `json:"id"`
	Error string         `json:"error,omitempty"`
	Flags []catalog.Flag `json:"flags,omitempty"`
}

// maxListed bounds the listed tools per kind of change.
const maxListed = 20

// Import writes what an import changed, and warnings about its tools.
func (o *Output) Import(r *ImportReport) {
	o.Warnings(r.Warnings...)
	for _, b := range r.Broken {
		o.Notes.Warn("%s is kept without its parameters: %s", b.ID, b.Error)
	}
	for _, b := range r.Flagged {
		o.Notes.Warn("the description of %s may contain instructions to a model: %s", b.ID, Flags(b.Flags))
	}
	o.Printf("%s: %s (%d added, %d changed, %d removed, %d unchanged)\n",
		Plain(r.Source), view.Count(r.Tools, "tool"), len(r.Added), len(r.Changed), len(r.Removed), r.Unchanged)
	if len(r.Changed)+len(r.Removed)+r.Unchanged == 0 {
		return // the first import: all tools are new
	}
	for _, kind := range []struct {
		mark string
		ids  []string
	}{{"+", r.Added}, {"~", r.Changed}, {"-", r.Removed}} {
		for _, id := range kind.ids[:min(len(kind.ids), maxListed)] {
			o.Printf("  %s %s\n", kind.mark, Plain(id))
		}
		if more := len(kind.ids) - maxListed; more > 0 {
			o.Printf("  %s and %d more; --json lists them all\n", kind.mark, more)
		}
	}
}

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
