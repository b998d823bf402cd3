package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/catalog"
	"cairn/internal/draw"
	"cairn/internal/suggest"
	"cairn/internal/workspace"
)

func (a *app) suggestCommand() *cobra.Command {
	var tools, inUse []string
	var most int
	var mermaid, dot bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "suggest [flags] INTENT",
		Short: "Plan which tools of the catalogue serve an intent",
		Long: `Plan which tools of the catalogue serve an intent, in which order, and what flows
between them. cairn runs none of them. With --tools, just those are arranged.`,
		Example: `  cairn suggest "read config.json and open an issue about it"
  cairn suggest --tools filesystem:read,json:parse,github:create --mermaid`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.withToolbox(func(ctx context.Context, box *workspace.Toolbox, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" && len(tools) == 0 {
				return badUsage("want an INTENT, or --tools")
			}
			if most < 1 || most > suggest.MaxTools {
				return badUsage("--max-tools %d, want 1 to %d", most, suggest.MaxTools)
			}
			r := suggest.Request{Intent: strings.Join(args, ""), MaxTools: most}
			for _, list := range []struct {
				names []string
				ids   *[]string
			}{{tools, &r.Tools}, {inUse, &r.ContextTools}} {
				for _, name := range list.names {
					t, err := box.Catalog.Lookup(name)
					if err != nil {
						return err
					}
					*list.ids = append(*list.ids, t.ID)
				}
			}
			x, err := a.toolIndex(ctx, box, wait)
			if err != nil {
				return err
			}
			s, err := suggest.Suggest(ctx, x, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			if x.Len() == 0 {
				fmt.Fprintln(a.stderr, "The catalogue is empty: import tools first, with `cairn tools import`")
				return nil
			}
			w := bufio.NewWriter(a.stdout)
			switch {
			case mermaid:
				fmt.Fprint(w, planGraph(s, box.Catalog).Mermaid())
			case dot:
				fmt.Fprint(w, planGraph(s, box.Catalog).DOT())
			default:
				planText(w, s, styleOf(a.stdout).width)
			}
			return w.Flush()
		}),
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&tools, "tools", nil, "arrange these tools, instead of choosing")
	fs.StringSliceVar(&inUse, "context", nil, "tools in use")
	fs.IntVar(&most, "max-tools", suggest.DefaultMaxTools, "most tools that are chosen; what they need comes beside")
	addWait(cmd, &wait)
	fs.BoolVar(&mermaid, "mermaid", false, "draw for mermaid")
	fs.BoolVar(&dot, "dot", false, "draw for Graphviz")
	cmd.MarkFlagsMutuallyExclusive("mermaid", "dot")
	a.model.add(cmd)
	return cmd
}

func planText(w io.Writer, s *suggest.Suggestion, width int) {
	long := func(text string) {
		for i, line := range wrap(text, width-2) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(w, line)
		}
	}
	long(fmt.Sprintf("%s, confidence %.2f: %s", s.Mode, s.Confidence, plain(s.Rationale)))
	for _, t := range s.Tasks {
		fmt.Fprintf(w, "%d  %s  %s", t.Layer+1, t.ID, plain(t.Tool))
		if len(t.DependsOn) > 0 {
			fmt.Fprintf(w, "  after %s", strings.Join(t.DependsOn, ", "))
		}
		if t.Dangerous {
			fmt.Fprint(w, "  (dangerous)")
		}
		fmt.Fprintln(w)
		for _, p := range t.DataPaths {
			fmt.Fprintf(w, "     %s\n", plain(p))
		}
	}
	for _, m := range s.Missing {
		fmt.Fprintf(w, "missing: %s of %s\n", plain(m.Input), plain(m.Tool))
	}
	for _, warning := range s.Warnings { // which name what no tool was found for
		long("warning: " + plain(warning))
	}
}

// planGraph is the plan as a graph of its tasks.
func planGraph(s *suggest.Suggestion, catalogue *catalog.Catalog) *draw.Graph {
	g := &draw.Graph{Name: "plan"}
	for _, t := range s.Tasks {
		g.Nodes = append(g.Nodes, draw.Node{ID: t.ID, Label: toolLabel(catalogue, t.Tool)})
	}
	for _, e := range s.DAG.Edges {
		g.Edges = append(g.Edges, draw.Edge{From: e.FromTask, To: e.ToTask, Label: plain(edgeLabel(e))})
	}
	return g
}

// edgeLabel is what flows, or why the order is as it is.
func edgeLabel(e suggest.Edge) string {
	if e.DataPath != "" {
		return e.DataPath
	}
	return e.Kind
}
