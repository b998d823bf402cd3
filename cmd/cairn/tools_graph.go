package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/catalog"
	"cairn/internal/draw"
	"cairn/internal/term"
	"cairn/internal/toolbox"
)

func (a *app) toolsGraphCommand() *cobra.Command {
	var format, around string
	var limit int
	cmd := &cobra.Command{
		Use:   "graph [flags]",
		Short: "Draw which tools and documents are used together",
		Args:  cobra.NoArgs,
		RunE: a.withToolbox(func(_ context.Context, box *toolbox.Toolbox, _ []string) error {
			if !slices.Contains([]string{"dot", "json", "mermaid", "text"}, format) {
				return badUsage("--format %q, want {dot,json,mermaid,text}", format)
			}
			a.json = a.json || format == "json"
			edges, err := usageEdges(box, around)
			if err != nil {
				return err
			}
			return a.printUsage(edges, format, limit, box.Catalog)
		}),
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot, mermaid or json")
	cmd.Flags().StringVar(&around, "around", "", "only edges of this tool, or of \"doc:\" and a document's path")
	intVar(cmd.Flags(), &limit, "limit", 100, 1, noBound, "most edges, the heaviest and most often seen first")
	return cmd
}

// usageEdge is an edge between two things used together.
type usageEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Source string  `json:"source"`
	Weight float64 `json:"weight"`
	Count  float64 `json:"count"`
}

// usageEdges returns the edges, or those of around, the heaviest first.
func usageEdges(box *toolbox.Toolbox, around string) ([]usageEdge, error) {
	edges := []usageEdge{}
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
				edges = append(edges, usageEdge{e.From, e.To, e.Type.String(), e.Source.String(), e.Weight(), e.Count})
			}
		}
		return nil
	})
	slices.SortStableFunc(edges, func(x, y usageEdge) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Count, x.Count))
	})
	return edges, err
}

func (a *app) printUsage(all []usageEdge, format string, limit int, catalogue *catalog.Catalog) error {
	edges := all[:min(len(all), limit)]
	return a.print(map[string]any{"edges": edges, "total": len(all)}, func(w *term.Writer) {
		switch format {
		case "dot":
			w.Printf("%s", usageGraph(edges, catalogue).DOT())
		case "mermaid":
			w.Printf("%s", usageGraph(edges, catalogue).Mermaid())
		default:
			for _, e := range edges {
				w.Printf("%s -> %s  %s, %s, weight %.2f, count %.1f\n", term.Plain(e.From), term.Plain(e.To), e.Type, e.Source, e.Weight, e.Count)
			}
			if len(all) == 0 {
				a.stderr.Printf("nothing is known to be used together; `cairn tools learn` reads traces, and agents teach through `cairn mcp`\n")
			}
		}
		if len(all) > len(edges) {
			a.stderr.Printf("%d of %d edges\n", len(edges), len(all))
		}
	})
}

// usageGraph returns the edges as a graph. Its nodes are numbered in order of ID.
func usageGraph(edges []usageEdge, catalogue *catalog.Catalog) *draw.Graph {
	var ids []string
	for _, e := range edges {
		ids = append(ids, e.From, e.To)
	}
	slices.Sort(ids)
	g := &draw.Graph{Name: "usage"}
	number := map[string]string{}
	for i, id := range slices.Compact(ids) {
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

// toolLabel returns the ID of a tool or document, with its title if it has one.
func toolLabel(catalogue *catalog.Catalog, id string) string {
	if t, err := catalogue.Lookup(id); err == nil && t.Title != "" {
		return term.Plain(id + ": " + t.Title)
	}
	return term.Plain(id)
}
