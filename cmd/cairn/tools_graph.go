package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/term"
	"cairn/internal/toolbox"
)

func (a *app) toolsGraphCommand() *cobra.Command {
	var format, around string
	var limit int
	cmd := newCommand("graph [flags]", "Draw which tools and documents are used together",
		a.withToolbox(func(ctx context.Context, box *toolbox.Toolbox, _ []string) error {
			if !slices.Contains([]string{"dot", "json", "mermaid", "text"}, format) {
				return badUsage("--format %q, want {dot,json,mermaid,text}", format)
			}
			a.json = a.json || format == "json"
			edges, err := usageEdges(ctx, box, around)
			if err != nil {
				return err
			}
			return a.printUsage(edges, format, limit, toolTitle(ctx, box))
		}))
	cmd.Flags().StringVar(&format, "format", "text", "text, dot, mermaid or json")
	cmd.Flags().StringVar(&around, "around", "", "only edges of this tool, or of \"doc:\" and a document's path")
	intVar(cmd.Flags(), &limit, "limit", 100, 1, noBound, "most edges, the heaviest and most often seen first")
	return cmd
}

// usageEdges returns the edges, or only those of around if it is not "", heaviest first.
func usageEdges(ctx context.Context, box *toolbox.Toolbox, around string) ([]term.UsageEdge, error) {
	known := around == ""
	err := box.Read(ctx, func(g *graphrank.Graph) error {
		known = known || g.Has(around)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !known {
		t, err := box.Lookup(ctx, around)
		if err != nil {
			return nil, err
		}
		around = t.ID
	}
	edges := []term.UsageEdge{}
	err = box.Read(ctx, func(g *graphrank.Graph) error {
		for e := range g.Edges() {
			if around == "" || e.From == around || e.To == around {
				edges = append(edges, term.UsageEdge{From: e.From, To: e.To, Type: e.Type.String(), Source: e.Source.String(), Weight: e.Weight(), Count: e.Count})
			}
		}
		return nil
	})
	slices.SortStableFunc(edges, func(x, y term.UsageEdge) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Count, x.Count))
	})
	return edges, err
}

// toolTitle returns the function that gives a tool's title, "" for one without.
func toolTitle(ctx context.Context, box *toolbox.Toolbox) func(id string) string {
	return func(id string) string {
		t, err := box.Lookup(ctx, id)
		if err != nil {
			return ""
		}
		return t.Title
	}
}

func (a *app) printUsage(all []term.UsageEdge, format string, limit int, title func(id string) string) error {
	edges := all[:min(len(all), limit)]
	return a.print(map[string]any{"edges": edges, "total": len(all)}, func(w *term.Writer) {
		switch format {
		case "dot":
			w.Printf("%s", term.UsageGraph(edges, title).DOT())
		case "mermaid":
			w.Printf("%s", term.UsageGraph(edges, title).Mermaid())
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
