package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn/graphrank"
	"cairn/internal/catalog"
	"cairn/internal/workspace"
)

func (a *app) toolsListCommand() *cobra.Command {
	var server string
	var limit int
	var sources bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the tools of the catalogue",
		Args:  cobra.NoArgs,
		RunE: a.withToolbox(func(_ context.Context, box *workspace.Toolbox, _ []string) error {
			if sources {
				return a.listSources(box)
			}
			return a.toolsList(box, server, limit)
		}),
	}
	cmd.Flags().StringVar(&server, "server", "", "only the tools of this server")
	cmd.Flags().IntVar(&limit, "limit", 0, "most tools to list (default: all)")
	cmd.Flags().BoolVar(&sources, "sources", false, "list what was imported instead")
	return cmd
}

// listedTool is a tool in a list.
type listedTool struct {
	ID          string         `json:"id"`
	Server      string         `json:"server,omitempty"`
	Description string         `json:"description"`
	SchemaError string         `json:"schemaError,omitempty"`
	Flags       []catalog.Flag `json:"flags,omitempty"`
}

func (a *app) toolsList(box *workspace.Toolbox, server string, limit int) error {
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
	if a.json {
		return a.printJSON(map[string]any{"tools": list, "total": total})
	}
	width := styleOf(a.stdout).width
	for _, t := range list {
		mark := ""
		if len(t.Flags) > 0 {
			mark = " (flagged)"
		}
		id := plain(t.ID) + mark
		fmt.Fprintln(a.stdout, cut(fmt.Sprintf("%-34s  %s", id, plain(t.Description)), width))
	}
	switch {
	case total == 0:
		fmt.Fprintln(a.stderr, "no tools; import some with `cairn tools import`")
	case total > len(list):
		fmt.Fprintf(a.stderr, "%d of %d tools\n", len(list), total)
	}
	return nil
}

// servers are the names of the first servers.
func servers(tools []catalog.Tool) []string {
	const most = 20
	var names []string
	for i := range tools {
		if name := plain(tools[i].Server); name != "" && !slices.Contains(names, name) {
			if names = append(names, name); len(names) == most {
				return append(names, "…")
			}
		}
	}
	return names
}

func (a *app) listSources(box *workspace.Toolbox) error {
	sources, err := box.Catalog.Sources()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"sources": sources})
	}
	for _, s := range sources {
		fmt.Fprintln(a.stdout, plain(s))
	}
	if len(sources) == 0 {
		fmt.Fprintln(a.stderr, "nothing was imported; begin with `cairn tools import`")
	}
	return nil
}

func (a *app) toolsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show one tool: what it takes and gives, and what is used with it",
		Args:  cobra.ExactArgs(1),
		RunE: a.withToolbox(func(_ context.Context, box *workspace.Toolbox, args []string) error {
			t, err := box.Catalog.Lookup(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(t)
			}
			var related []graphrank.Scored
			err = box.Usage.Read(func(g *graphrank.Graph) error {
				related = g.Related(t.ID, 5)
				return nil
			})
			if err != nil {
				return err
			}
			return a.showTool(&t, related)
		}),
	}
}

func (a *app) showTool(t *catalog.Tool, related []graphrank.Scored) error {
	s := styleOf(a.stdout)
	fmt.Fprintln(a.stdout, s.paint(bold, plain(t.ID)))
	for line := range strings.Lines(t.Description) {
		for _, part := range wrap(cut(line, 1<<20), s.width-2) {
			fmt.Fprintln(a.stdout, "  "+part)
		}
	}
	for _, list := range []struct {
		name   string
		params []catalog.Parameter
	}{{"takes", t.Takes}, {"gives", t.Gives}} {
		if len(list.params) == 0 {
			continue
		}
		fmt.Fprintln(a.stdout, list.name)
		var b strings.Builder
		table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		for _, p := range list.params {
			kind := strings.Join(p.Types, "|")
			if kind == "" {
				kind = "any"
			}
			if p.Required {
				kind += ", required"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", plain(p.Path), kind, cut(oneLine(p.Description), 60))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for line := range strings.Lines(b.String()) {
			fmt.Fprintln(a.stdout, cut(strings.TrimRight(line, " \n"), s.width))
		}
	}
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(a.stdout, "%-8s  %s\n", name, plain(text))
		}
	}
	row("needs", strings.Join(t.DependsOn, ", "))
	row("broken", t.SchemaError)
	row("flagged", flagText(t.Flags))
	var with []string
	for _, r := range related {
		with = append(with, fmt.Sprintf("%s %.2f", r.ID, r.Score))
	}
	row("used with", strings.Join(slices.Clip(with), ", "))
	return nil
}
