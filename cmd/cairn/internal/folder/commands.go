// Package folder holds the commands for the folder and its index.
package folder

import (
	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.initCommand(), a.indexCommand(), a.statusCommand(), a.configCommand(), a.rootsCommand(), a.trustCommand(), a.storeCommand()}
}
