package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/catalog"
	"cairn/internal/draw"
	"cairn/internal/workspace"
)

func (a *app) toolsGraphCommand() *cobra.Command {
	var format, around string
	var limit int
	cmd := &cobra.Command{
		Use:   "graph [flags]",
		Short: "Draw what is used with what",
		Args:  cobra.NoArgs,
		RunE: a.withToolbox(func(_ context.Context, box *workspace.Toolbox, _ []string) error {
			if a.json {
				format = "json"
			}
			if limit < 1 {
				return badUsage("--limit %d, want at least 1", limit)
			}
			return a.toolsGraph(box, format, around, limit)
		}),
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot, mermaid or json")
	cmd.Flags().StringVar(&around, "around", "", "only edges of this tool, or of \"doc:\" and a document's path")
	cmd.Flags().IntVar(&limit, "limit", 100, "most edges, the heaviest and most often seen first")
	return cmd
}

// drawnEdge is one edge of a drawing.
type drawnEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Source string  `json:"source"`
	Weight float64 `json:"weight"`
	Count  float64 `json:"count"`
}

func (a *app) toolsGraph(box *workspace.Toolbox, format, around string, limit int) error {
	if !slices.Contains([]string{"dot", "json", "mermaid", "text"}, format) {
		return badUsage("--format %q, want {dot,json,mermaid,text}", format)
	}
	edges := []drawnEdge{}
	err := box.Usage.Read(func(g *graphrank.Graph) error {
		if around != "" && !g.Has(around) {
			t, err := box.Catalog.Lookup(around)
			if err != nil {
				return err
			}
			around = t.ID
		}
		for e := range g.Edges() {
			if around == "" || e.From == around || e.To == around {
				edges = append(edges, drawnEdge{e.From, e.To, e.Type.String(), e.Source.String(), e.Weight(), e.Count})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	total := len(edges)
	slices.SortStableFunc(edges, func(x, y drawnEdge) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Count, x.Count))
	})
	edges = edges[:min(len(edges), limit)]
	if format == "json" {
		return a.printJSON(map[string]any{"edges": edges, "total": total})
	}
	if total == 0 && format == "text" {
		fmt.Fprintln(a.stderr, "nothing is known to be used together; `cairn tools learn` reads traces, and agents teach through `cairn mcp`")
		return nil
	}
	w := bufio.NewWriter(a.stdout)
	switch format {
	case "text":
		drawText(w, edges)
	case "dot":
		fmt.Fprint(w, usageGraph(edges, box.Catalog).DOT())
	case "mermaid":
		fmt.Fprint(w, usageGraph(edges, box.Catalog).Mermaid())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if total > len(edges) {
		fmt.Fprintf(a.stderr, "%d of %d edges\n", len(edges), total)
	}
	return nil
}

func drawText(w io.Writer, edges []drawnEdge) {
	for _, e := range edges {
		fmt.Fprintf(w, "%s -> %s  %s, %s, weight %.2f, count %.1f\n", plain(e.From), plain(e.To), e.Type, e.Source, e.Weight, e.Count)
	}
}

// usageGraph is the edges as a graph. Its nodes are numbered in order of ID.
func usageGraph(edges []drawnEdge, catalogue *catalog.Catalog) *draw.Graph {
	var ids []string
	for _, e := range edges {
		ids = append(ids, e.From, e.To)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	g := &draw.Graph{Name: "usage"}
	number := map[string]string{}
	for i, id := range ids {
		number[id] = fmt.Sprintf("n%d", i)
		g.Nodes = append(g.Nodes, draw.Node{ID: number[id], Label: toolLabel(catalogue, id)})
	}
	for _, e := range edges {
		g.Edges = append(g.Edges, draw.Edge{
			From: number[e.From], To: number[e.To], Label: e.Type, Strong: e.Type == graphrank.Dependency.String(), Width: 1 + 2*e.Weight,
		})
	}
	return g
}

// toolLabel is the ID of a tool or document, with its title where it has one.
func toolLabel(catalogue *catalog.Catalog, id string) string {
	if t, err := catalogue.Lookup(id); err == nil && t.Title != "" {
		return plain(id + ": " + t.Title)
	}
	return plain(id)
}
