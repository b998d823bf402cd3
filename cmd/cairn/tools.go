package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"cairn/internal/config"
	"cairn/internal/toolbox"
	"cairn/internal/workspace"
)

func (a *app) toolsCommand() *cobra.Command {
	return group("tools", "Manage the catalogue of tools and what is known about their use",
		a.toolsImportCommand(), a.toolsListCommand(), a.toolsSearchCommand(), a.toolsShowCommand(), a.toolsLearnCommand(), a.toolsForgetCommand(), a.toolsGraphCommand())
}

// toolboxOptions returns the options for the toolbox of a folder. Where a store has
// the index and Postgres is configured, servers share what they know about tools there.
func (a *app) toolboxOptions(command string, sel config.Selection, cfg config.Config) (toolbox.Options, error) {
	var o workspace.Options
	if err := a.model.Apply(&o); err != nil {
		return toolbox.Options{}, err
	}
	store, err := a.chooseStore(cfg)
	if err != nil {
		return toolbox.Options{}, err
	}
	t := toolbox.Options{
		Root: sel.Root, HalfLife: cfg.Usage.HalfLife(), Description: o.Description, Model: o.Model, AnyModel: !o.ModelChosen,
		Command: command, Logger: a.logger(),
	}
	if store != nil {
		t.Postgres, t.Space = os.Getenv("CAIRN_POSTGRES"), store.Collection()
	}
	return t, nil
}

// withToolbox opens the folder's toolbox for fn.
func (a *app) withToolbox(fn func(context.Context, *toolbox.Toolbox, []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) error {
		sel, cfg, err := a.choose()
		if err != nil {
			return err
		}
		o, err := a.toolboxOptions("cairn tools", sel, cfg)
		if err != nil {
			return err
		}
		box, err := toolbox.Open(ctx, o)
		if err != nil {
			return err
		}
		return errors.Join(fn(ctx, box, args), box.Close())
	})
}
