// Package tasks holds the commands for cards, tasks in documents and question tasks.
package tasks

import (
	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct {
	*cli.App
	servers cli.Servers // of cairn plan
}

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{App: c}
	return []*cli.Command{a.cardCommand(), a.listCommand(), a.graphCommand(), a.taskCommand(), a.dagCommand(), a.planCommand(), a.workerCommand()}
}
