// Package care holds the commands that check, repair and back up.
package care

import (
	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.doctorCommand(), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.cleanCommand(), a.upgradeCommand()}
}
