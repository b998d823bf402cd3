package folder

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/config"
)

func (a *app) rootsCommand() *cli.Command {
	add := cli.NewCommand("add NAME DIR", "Search another folder with this one",
		a.withRoots(func(sel config.Selection, args []string) (config.Selection, error) {
			return sel.AddRoot(args[0], args[1])
		}))
	remove := cli.NewCommand("remove NAME", "Stop searching another folder with this one",
		a.withRoots(func(sel config.Selection, args []string) (config.Selection, error) { return sel.RemoveRoot(args[0]) }))
	cmd := cli.Group("roots", "List, add and remove further folders that are searched with this one", add, remove)
	cmd.RunE = a.withRoots(func(sel config.Selection, _ []string) (config.Selection, error) { return sel, nil })
	return cmd
}

// withRoots calls change with the selection, and prints the folders of the selection that
// change returns.
func (a *app) withRoots(change func(config.Selection, []string) (config.Selection, error)) func(*cli.Command, []string) error {
	return a.Command(func(_ context.Context, args []string) error {
		sel, err := a.Selection()
		if err != nil {
			return err
		}
		if sel, err = change(sel, args); err != nil {
			return err
		}
		return a.Out.Print(sel, func() {
			rows := [][]string{{".", term.Plain(sel.Root)}}
			for _, r := range sel.Further {
				rows = append(rows, []string{term.Plain(r.Name), term.Plain(r.Dir)})
			}
			a.Out.Rows(rows)
		})
	})
}
