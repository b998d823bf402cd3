// Package agents holds the commands that connect agents and serve folders to them.
package agents

import (
	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.connectCommand(), a.disconnectCommand(), a.mcpCommand(), a.serveCommand(), a.tokenCommand(), tasks.Scene(c)}
}
