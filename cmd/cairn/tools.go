package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Keep a catalogue of tools, and of what is used together",
		Long: `Keep a catalogue of tools, and of what is used together.

Tools are imported from MCP servers, lists and OpenAPI descriptions. cairn runs none
of them. What was used for which intent is learnt from traces and, from the third
time on, from agents that work through ` + "`cairn mcp` and `cairn serve`" + `; it stays in
the folder's .cairn/index.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.toolsImportCommand(), a.toolsListCommand(), a.toolsSearchCommand(), a.toolsShowCommand(), a.toolsLearnCommand(), a.toolsForgetCommand(), a.toolsGraphCommand())
	return cmd
}

// withToolbox opens the folder's toolbox for fn.
func (a *app) withToolbox(fn func(context.Context, *workspace.Toolbox, []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) error {
		sel, cfg, err := a.choose()
		if err != nil {
			return err
		}
		box, err := workspace.OpenToolbox(sel, cfg.Usage)
		if err != nil {
			return err
		}
		return errors.Join(fn(ctx, box, args), box.Close())
	})
}
