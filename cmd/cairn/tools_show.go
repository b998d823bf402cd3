package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/term"
	"cairn/internal/toolbox"
)

func (a *app) toolsListCommand() *cobra.Command {
	var server string
	var limit int
	var sources bool
	cmd := newCommand("list [flags]", "List the tools of the catalogue",
		a.withToolbox(func(ctx context.Context, box *toolbox.Toolbox, _ []string) error {
			if sources {
				return a.listSources(ctx, box)
			}
			return a.toolsList(ctx, box, server, limit)
		}))
	cmd.Flags().StringVar(&server, "server", "", "only the tools of this server")
	cmd.Flags().IntVar(&limit, "limit", 0, "most tools to list (default: all)")
	cmd.Flags().BoolVar(&sources, "sources", false, "list the imported sources instead")
	return cmd
}

func (a *app) toolsList(ctx context.Context, box *toolbox.Toolbox, server string, limit int) error {
	found, err := box.Tools(ctx, toolbox.ListRequest{Server: server, Limit: limit})
	if err != nil {
		return err
	}
	if server != "" && !slices.Contains(found.Servers, server) && len(found.Servers) > 0 {
		return fmt.Errorf("no server %q in the catalogue, want one of {%s}", server, strings.Join(first(found.Servers), ","))
	}
	list, total := found.Tools, found.Total
	return a.print(map[string]any{"tools": list, "total": total}, func(w *term.Writer) {
		for _, t := range list {
			w.ToolLine(t.ID, t.Description, len(t.Flags) > 0)
		}
		switch {
		case total == 0:
			a.stderr.Printf("no tools; import some with `cairn tools import`\n")
		case total > len(list):
			a.stderr.Printf("%d of %d tools\n", len(list), total)
		}
	})
}

// first returns the first names that are not empty.
func first(names []string) []string {
	const most = 20
	var list []string
	for _, name := range names {
		if name = term.Plain(name); name != "" {
			if list = append(list, name); len(list) == most {
				return append(list, "…")
			}
		}
	}
	return list
}

func (a *app) listSources(ctx context.Context, box *toolbox.Toolbox) error {
	known, err := box.Stats(ctx)
	if err != nil {
		return err
	}
	sources := known.Sources
	return a.print(map[string]any{"sources": sources}, func(w *term.Writer) {
		for _, s := range sources {
			w.Printf("%s\n", term.Plain(s))
		}
		if len(sources) == 0 {
			a.stderr.Printf("nothing was imported; begin with `cairn tools import`\n")
		}
	})
}

func (a *app) toolsShowCommand() *cobra.Command {
	return newCommand("show NAME", "Show a tool with its parameters and the tools used with it",
		a.withToolbox(func(ctx context.Context, box *toolbox.Toolbox, args []string) error {
			t, err := box.Lookup(ctx, args[0])
			if err != nil {
				return err
			}
			var related []graphrank.Scored
			err = box.Read(ctx, func(g *graphrank.Graph) error {
				related = g.Related(t.ID, 5)
				return nil
			})
			if err != nil {
				return err
			}
			return a.print(t, func(w *term.Writer) { w.Tool(&t, related) })
		}))
}
