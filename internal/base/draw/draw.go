// Package draw writes a directed graph as text for Graphviz, Mermaid or a terminal. It
// computes no properties of the graph.
package draw

import (
	"cmp"
	"fmt"
	"strings"
)

// Graph is a graph to draw. The slices determine the order of the drawing.
type Graph struct {
	Name  string // of the graph in DOT
	Nodes []Node
	Edges []Edge
	// Inline selects the layout of task graphs: Mermaid labels the nodes of each edge
	// instead of declaring them first, and DOT quotes all names.
	Inline bool
}

// Node is a labelled node. Its ID is unique in the graph.
type Node struct {
	ID string
	// Label is the text of the node. In ASCII it follows the mark.
	Label string
	// Mark precedes the label in ASCII, such as "[x]".
	Mark string
}

// Edge leads from one node to another, both named by ID.
type Edge struct {
	From, To string
	Label    string  // "" for none
	Strong   bool    // drawn thick in Mermaid
	Width    float64 // of the line in DOT; 0 for the default
}

var dotText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")

// DOT returns the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	indent, style, name := "  ", "", func(id string) string { return id }
	if g.Inline {
		indent, style = "    ", ", style=rounded"
		name = func(id string) string { return `"` + dotText.Replace(id) + `"` }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n%srankdir=LR;\n%snode [shape=box%s];\n", g.Name, indent, indent, style)
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%s%s [label=\"%s\"];\n", indent, name(n.ID), dotText.Replace(n.Label))
	}
	for _, e := range g.Edges {
		var attributes []string
		if e.Label != "" {
			attributes = append(attributes, `label="`+dotText.Replace(e.Label)+`"`)
		}
		if e.Width > 0 {
			attributes = append(attributes, fmt.Sprintf("penwidth=%.1f", e.Width))
		}
		fmt.Fprintf(&b, "%s%s -> %s", indent, name(e.From), name(e.To))
		if len(attributes) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(attributes, ", "))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// mermaidText escapes a quoted label, in which Mermaid interprets markup and entities.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\n", " ")

// Mermaid returns the graph as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	nodes := make(map[string]string, len(g.Nodes)) // ID to declaration, such as a["A"]
	names := mermaidNames(g.Nodes)
	for _, n := range g.Nodes {
		nodes[n.ID] = fmt.Sprintf(`%s["%s"]`, names[n.ID], mermaidText.Replace(n.Label))
	}
	var b strings.Builder
	if !g.Inline {
		b.WriteString("flowchart LR\n")
		for _, n := range g.Nodes {
			fmt.Fprintf(&b, "  %s\n", nodes[n.ID])
		}
		for _, e := range g.Edges {
			fmt.Fprintf(&b, "  %s %s %s\n", names[e.From], e.arrow(), names[e.To])
		}
		return b.String()
	}
	b.WriteString("graph LR\n")
	linked := map[string]bool{}
	for _, e := range g.Edges {
		linked[e.From], linked[e.To] = true, true
		fmt.Fprintf(&b, "    %s %s %s\n", nodes[e.From], e.arrow(), nodes[e.To])
	}
	for _, n := range g.Nodes {
		if !linked[n.ID] {
			fmt.Fprintf(&b, "    %s\n", nodes[n.ID])
		}
	}
	return b.String()
}

// arrow returns the edge in Mermaid.
func (e Edge) arrow() string {
	arrow := "-->"
	if e.Strong {
		arrow = "==>"
	}
	switch {
	case e.Label == "":
		return arrow
	case strings.ContainsFunc(e.Label, func(r rune) bool { return !alphanumeric(r) }):
		return arrow + `|"` + mermaidText.Replace(e.Label) + `"|`
	}
	return arrow + "|" + e.Label + "|"
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

// mermaidNames maps IDs to unique names of letters, digits and underscores. A number
// distinguishes a name from equal names and from the keywords of Mermaid.
func mermaidNames(nodes []Node) map[string]string {
	names := make(map[string]string, len(nodes))
	taken := map[string]bool{"end": true, "graph": true, "subgraph": true, "style": true, "class": true, "click": true, "default": true}
	for _, n := range nodes {
		name := strings.Map(func(r rune) rune {
			if alphanumeric(r) {
				return r
			}
			return '_'
		}, n.ID)
		unique := name
		for i := 2; taken[unique]; i++ {
			unique = fmt.Sprintf("%s_%d", name, i)
		}
		taken[unique] = true
		names[n.ID] = unique
	}
	return names
}

// ASCII returns a tree in which the children of a node are the ends of its edges. It draws the
// children of a node once, so the drawing is finite for cycles, and has at most one line per
// node and edge.
func (g *Graph) ASCII() string {
	nodes := make(map[string]Node, len(g.Nodes))
	below, reached := map[string][]string{}, map[string]bool{}
	for _, n := range g.Nodes {
		nodes[n.ID] = n
	}
	for _, e := range g.Edges {
		below[e.From] = append(below[e.From], e.To)
		reached[e.To] = true
	}
	var b strings.Builder
	drawn := map[string]bool{}
	type line struct{ id, lead, rest string } // rest leads the lines below it
	tree := func(root string) {
		stack := []line{{id: root}}
		for len(stack) > 0 {
			l := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			children := below[l.id]
			fmt.Fprintf(&b, "%s%s %s", l.lead, cmp.Or(nodes[l.id].Mark, "[ ]"), nodes[l.id].Label)
			if drawn[l.id] && len(children) > 0 {
				b.WriteString(" (see above)\n")
				continue
			}
			drawn[l.id] = true
			b.WriteByte('\n')
			for i := len(children) - 1; i >= 0; i-- {
				lead, rest := "|-- ", "|   "
				if i == len(children)-1 {
					lead, rest = "`-- ", "    "
				}
				stack = append(stack, line{children[i], l.rest + lead, l.rest + rest})
			}
		}
	}
	for _, n := range g.Nodes {
		if !reached[n.ID] {
			tree(n.ID)
		}
	}
	for _, n := range g.Nodes { // nodes that only cycles reach
		if !drawn[n.ID] {
			tree(n.ID)
		}
	}
	return b.String()
}
