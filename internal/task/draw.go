package task

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Graph formats. ASCII is for people at a terminal.
const (
	FormatJSON    = "json"
	FormatMermaid = "mermaid"
	FormatDOT     = "dot"
	FormatASCII   = "ascii"
)

// Formats are the formats Draw knows.
func Formats() []string { return []string{FormatJSON, FormatMermaid, FormatDOT, FormatASCII} }

// drawing is the JSON form of a graph.
type drawing struct {
	Nodes []drawnNode `json:"nodes"`
	Edges []drawnEdge `json:"edges"`
}

type drawnNode struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// drawnEdge says that From depends on To.
type drawnEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Draw writes the graph of the tasks in one of Formats, in their order. An edge runs
// from the dependent to its dependency. Dependencies that are no task are
// drawn as nodes of status "missing". word names a status.
func Draw(tasks []Task, format string, word func(Task) string) (string, error) {
	d := drawing{Nodes: []drawnNode{}, Edges: []drawnEdge{}}
	known := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		known[t.ID] = true
		d.Nodes = append(d.Nodes, drawnNode{t.ID, t.Title, word(t)})
	}
	for _, t := range tasks {
		seen := make(map[string]bool, len(t.DependsOn))
		for _, to := range t.DependsOn {
			if seen[to] {
				continue
			}
			seen[to] = true
			if !known[to] {
				known[to] = true
				d.Nodes = append(d.Nodes, drawnNode{to, "(missing)", "missing"})
			}
			d.Edges = append(d.Edges, drawnEdge{t.ID, to})
		}
	}
	switch format {
	case FormatJSON:
		text, err := json.Marshal(d)
		return string(text), err
	case FormatMermaid:
		return d.mermaid(), nil
	case FormatDOT:
		return d.dot(), nil
	case FormatASCII:
		return d.ascii(), nil
	}
	return "", fmt.Errorf("unknown format %q, want {%s}", format, strings.Join(Formats(), ","))
}

// mermaid writes "a["a"] --> b["b"]" lines. A node's name holds only letters
// and digits; names that become the same are told apart by a number.
func (d drawing) mermaid() string {
	names := make(map[string]string, len(d.Nodes))
	taken := map[string]bool{"end": true, "graph": true, "subgraph": true, "style": true, "class": true, "click": true, "default": true}
	for _, n := range d.Nodes {
		name := strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
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
	label := func(id string) string {
		return names[id] + `["` + strings.ReplaceAll(id, `"`, "#quot;") + `"]`
	}
	var b strings.Builder
	b.WriteString("graph LR\n")
	linked := map[string]bool{}
	for _, e := range d.Edges {
		linked[e.From], linked[e.To] = true, true
		fmt.Fprintf(&b, "    %s --> %s\n", label(e.From), label(e.To))
	}
	for _, n := range d.Nodes {
		if !linked[n.ID] {
			fmt.Fprintf(&b, "    %s\n", label(n.ID))
		}
	}
	return b.String()
}

func (d drawing) dot() string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
	}
	var b strings.Builder
	b.WriteString("digraph TaskGraph {\n    rankdir=LR;\n    node [shape=box, style=rounded];\n")
	for _, n := range d.Nodes {
		fmt.Fprintf(&b, "    %s;\n", quote(n.ID))
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&b, "    %s -> %s;\n", quote(e.From), quote(e.To))
	}
	b.WriteString("}\n")
	return b.String()
}

// marks stand before a task in the ASCII drawing.
var marks = map[string]string{"todo": "[ ]", "pending": "[ ]", "assigned": "[ ]", "active": "[~]", "in_progress": "[~]",
	"done": "[x]", "completed": "[x]", "blocked": "[!]", "failed": "[!]", "missing": "[?]", "archived": "[-]", "cancelled": "[-]"}

// ascii draws what each task needs below it, as a tree. A task that was drawn
// with its dependencies before is only named again, so the drawing is as long as
// there are edges and nodes, and cycles end.
func (d drawing) ascii() string {
	nodes := make(map[string]drawnNode, len(d.Nodes))
	needs, needed := map[string][]string{}, map[string]bool{}
	for _, n := range d.Nodes {
		nodes[n.ID] = n
	}
	for _, e := range d.Edges {
		needs[e.From] = append(needs[e.From], e.To)
		needed[e.To] = true
	}
	var b strings.Builder
	drawn := map[string]bool{}
	type line struct{ id, lead, below string }
	draw := func(root string) {
		stack := []line{{id: root}}
		for len(stack) > 0 {
			l := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			n := nodes[l.id]
			mark := marks[n.Status]
			if mark == "" {
				mark = "[ ]"
			}
			fmt.Fprintf(&b, "%s%s %s  %s", l.lead, mark, n.ID, n.Title)
			if drawn[l.id] && len(needs[l.id]) > 0 {
				b.WriteString(" (see above)\n")
				continue
			}
			drawn[l.id] = true
			b.WriteByte('\n')
			for i := len(needs[l.id]) - 1; i >= 0; i-- {
				lead, below := "|-- ", "|   "
				if i == len(needs[l.id])-1 {
					lead, below = "`-- ", "    "
				}
				stack = append(stack, line{needs[l.id][i], l.below + lead, l.below + below})
			}
		}
	}
	for _, n := range d.Nodes {
		if !needed[n.ID] {
			draw(n.ID)
		}
	}
	for _, n := range d.Nodes { // what only cycles lead to
		if !drawn[n.ID] {
			draw(n.ID)
		}
	}
	return b.String()
}
