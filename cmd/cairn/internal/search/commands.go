// Package search holds the commands that search and read the folder.
package search

import (
	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.searchCommand(), a.readCommand(), tasks.Ask(c), a.openCommand(), a.explainCommand(), a.watchCommand()}
}
