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

// marks are the markers of tasks in the ASCII drawing, by status. The default is "[ ]".
var marks = map[string]string{"active": "[~]", "in_progress": "[~]", "done": "[x]", "completed": "[x]", "blocked": "[!]",
	"failed": "[!]", "missing": "[?]", "archived": "[-]", "cancelled": "[-]"}

// Draw returns the graph of the tasks in one of Formats. An edge runs from a dependent to its
// dependency. Dependencies that are not tasks are nodes with the status "missing". word
// returns the name of a task's status.
func Draw(tasks []Task, format string, word func(Task) string) (string, error) {
	d := drawing{Nodes: []drawnNode{}, Edges: []drawnEdge{}}
	g := &draw.Graph{Name: "TaskGraph", Inline: true}
	separator := ": "
	if format == FormatASCII {
		separator = "  "
	}
	known := make(map[string]bool, len(tasks))
	add := func(id, title, status string) {
		known[id] = true
		label := id
		if title != "" && title != id {
			label += separator + title
		}
		d.Nodes = append(d.Nodes, drawnNode{id, title, status})
		g.Nodes = append(g.Nodes, draw.Node{ID: id, Label: label, Mark: marks[status]})
	}
	for _, t := range tasks {
		add(t.ID, t.Title, word(t))
	}
	for _, t := range tasks {
		seen := make(map[string]bool, len(t.DependsOn))
		for _, to := range t.DependsOn {
			if seen[to] {
				continue
			}
			seen[to] = true
			if !known[to] {
				add(to, "(missing)", "missing")
			}
			d.Edges = append(d.Edges, drawnEdge{t.ID, to})
			g.Edges = append(g.Edges, draw.Edge{From: t.ID, To: to})
		}
	}
	switch format {
	case FormatJSON:
		text, err := json.Marshal(d)
		return string(text), err
	case FormatMermaid:
		return g.Mermaid(), nil
	case FormatDOT:
		return g.DOT(), nil
	case FormatASCII:
		return g.ASCII(), nil
	}
	return "", fmt.Errorf("unknown format %q, want {%s}", format, strings.Join(Formats(), ","))
}
