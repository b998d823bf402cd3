// Package bench holds the commands that measure quality and speed.
package bench

import (
	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.benchCommand(), a.embedCommand()}
}
