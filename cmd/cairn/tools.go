package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"cairn/internal/toolbox"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := group("tools", "Manage the catalogue of tools and what is known about their use",
		a.toolsImportCommand(), a.toolsListCommand(), a.toolsSearchCommand(), a.toolsShowCommand(), a.toolsLearnCommand(), a.toolsForgetCommand(), a.toolsGraphCommand())
	cmd.Long = `Manage the catalogue of tools and what is known about their use.

Tools are imported from MCP servers, lists and OpenAPI descriptions. cairn runs none
of them. It learns which tools serve which intent from traces and, from the third
time on, from agents that work through ` + "`cairn mcp` and `cairn serve`" + `. All of it is
kept in the folder's .cairn/index.`
	return cmd
}

// withToolbox opens the folder's toolbox for fn.
func (a *app) withToolbox(fn func(context.Context, *toolbox.Toolbox, []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) error {
		sel, cfg, err := a.choose()
		if err != nil {
			return err
		}
		box, err := toolbox.Open(sel, cfg.Usage)
		if err != nil {
			return err
		}
		return errors.Join(fn(ctx, box, args), box.Close())
	})
}
