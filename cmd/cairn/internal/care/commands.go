// Package care holds the commands that check, repair and back up.
package care

import (
	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.doctorCommand(), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.cleanCommand(), a.upgradeCommand()}
}
