// Package catalogue holds the commands for the tools of agents.
package catalogue

import (
	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.suggestCommand(), a.toolsCommand()}
}
