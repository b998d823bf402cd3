package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/config"
	"cairn/internal/term"
)

func (a *app) rootsCommand() *cobra.Command {
	list := a.command(func(context.Context, []string) error {
		sel, err := a.selection()
		if err != nil {
			return err
		}
		return a.printRoots(sel)
	})
	cmd := group("roots", "List, add and remove further folders that are searched with this one",
		newCommand("add NAME DIR", "Search another folder with this one", a.command(func(_ context.Context, args []string) error {
			return a.changeRoots(func(sel config.Selection) (config.Selection, error) { return sel.AddRoot(args[0], args[1]) })
		})),
		newCommand("remove NAME", "Search another folder with this one no more",
			a.command(func(_ context.Context, args []string) error {
				return a.changeRoots(func(sel config.Selection) (config.Selection, error) { return sel.RemoveRoot(args[0]) })
			})))
	cmd.RunE = list
	return cmd
}

func (a *app) changeRoots(change func(config.Selection) (config.Selection, error)) error {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	if sel, err = change(sel); err != nil {
		return err
	}
	return a.printRoots(sel)
}

func (a *app) printRoots(sel config.Selection) error {
	return a.print(sel, func(w *term.Writer) {
		rows := [][]string{{".", term.Plain(sel.Root)}}
		for _, r := range sel.Further {
			rows = append(rows, []string{term.Plain(r.Name), term.Plain(r.Dir)})
		}
		w.Rows(rows)
	})
}
