package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/catalog"
	"cairn/internal/term"
	"cairn/internal/toolbox"
)

func (a *app) toolsListCommand() *cobra.Command {
	var server string
	var limit int
	var sources bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the tools of the catalogue",
		Args:  cobra.NoArgs,
		RunE: a.withToolbox(func(_ context.Context, box *toolbox.Toolbox, _ []string) error {
			if sources {
				return a.listSources(box)
			}
			return a.toolsList(box, server, limit)
		}),
	}
	cmd.Flags().StringVar(&server, "server", "", "only the tools of this server")
	cmd.Flags().IntVar(&limit, "limit", 0, "most tools to list (default: all)")
	cmd.Flags().BoolVar(&sources, "sources", false, "list the imported sources instead")
	return cmd
}

// listedTool is the JSON output for a tool of a list.
type listedTool struct {
	ID          string         `json:"id"`
	Server      string         `json:"server,omitempty"`
	Description string         `json:"description"`
	SchemaError string         `json:"schemaError,omitempty"`
	Flags       []catalog.Flag `json:"flags,omitempty"`
}

func (a *app) toolsList(box *toolbox.Toolbox, server string, limit int) error {
	tools, err := box.Catalog.Tools()
	if err != nil {
		return err
	}
	list := []listedTool{}
	total := 0
	if server != "" && !slices.ContainsFunc(tools, func(t catalog.Tool) bool { return t.Server == server }) && len(tools) > 0 {
		return fmt.Errorf("no server %q in the catalogue, want one of {%s}", server, strings.Join(servers(tools), ","))
	}
	for i := range tools {
		t := &tools[i]
		if server != "" && t.Server != server {
			continue
		}
		if total++; limit <= 0 || len(list) < limit {
			list = append(list, listedTool{ID: t.ID, Server: t.Server, Description: t.Description, SchemaError: t.SchemaError, Flags: t.Flags})
		}
	}
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

// servers returns the names of the first servers.
func servers(tools []catalog.Tool) []string {
	const most = 20
	var names []string
	for i := range tools {
		if name := term.Plain(tools[i].Server); name != "" && !slices.Contains(names, name) {
			if names = append(names, name); len(names) == most {
				return append(names, "…")
			}
		}
	}
	return names
}

func (a *app) listSources(box *toolbox.Toolbox) error {
	sources, err := box.Catalog.Sources()
	if err != nil {
		return err
	}
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
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a tool with its parameters and the tools used with it",
		Args:  cobra.ExactArgs(1),
		RunE: a.withToolbox(func(_ context.Context, box *toolbox.Toolbox, args []string) error {
			t, err := box.Catalog.Lookup(args[0])
			if err != nil {
				return err
			}
			var related []graphrank.Scored
			err = box.Usage.Read(func(g *graphrank.Graph) error {
				related = g.Related(t.ID, 5)
				return nil
			})
			if err != nil {
				return err
			}
			return a.print(t, func(w *term.Writer) { w.Tool(&t, related) })
		}),
	}
}
