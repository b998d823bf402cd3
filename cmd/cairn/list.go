package main

import "github.com/spf13/cobra"

// listCommand is card list under the name it has in CueDeck.
func (a *app) listCommand() *cobra.Command {
	cmd := a.cardListCommand()
	cmd.Use = "list"
	cmd.Short = "List cards, the most urgent first; the same as card list"
	cmd.Example = `  cairn list
  cairn list --status all --tag auth`
	return cmd
}
