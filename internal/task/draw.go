package task

import (
	"encoding/json"
	"fmt"
	"strings"

	"cairn/internal/base/draw"
)

// Graph formats. FormatASCII is for a terminal.
const (
	FormatJSON    = "json"
	FormatMermaid = "mermaid"
	FormatDOT     = "dot"
	FormatASCII   = "ascii"
)

// Formats returns the formats that Draw accepts.
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

// drawnEdge is an edge: From depends on To.
type drawnEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Draw returns the graph of the tasks in one of Formats. An edge runs from a dependent to its
// dependency. Dependencies that are not tasks are nodes with the status "missing". word
// returns the name of a task's status.
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
		return d.graph(": ").Mermaid(), nil
	case FormatDOT:
		return d.graph(": ").DOT(), nil
	case FormatASCII:
		return d.graph("  ").ASCII(), nil
	}
	return "", fmt.Errorf("unknown format %q, want {%s}", format, strings.Join(Formats(), ","))
}

// marks are the markers of tasks in the ASCII drawing, by status. The default is "[ ]".
var marks = map[string]string{"active": "[~]", "in_progress": "[~]", "done": "[x]", "completed": "[x]", "blocked": "[!]",
	"failed": "[!]", "missing": "[?]", "archived": "[-]", "cancelled": "[-]"}

// graph labels each task with its ID and, after separator, its title if it differs.
func (d drawing) graph(separator string) *draw.Graph {
	g := &draw.Graph{Name: "TaskGraph", Inline: true}
	for _, n := range d.Nodes {
		label := n.ID
		if n.Title != "" && n.Title != n.ID {
			label += separator + n.Title
		}
		g.Nodes = append(g.Nodes, draw.Node{ID: n.ID, Label: label, Mark: marks[n.Status]})
	}
	for _, e := range d.Edges {
		g.Edges = append(g.Edges, draw.Edge{From: e.From, To: e.To})
	}
	return g
}
