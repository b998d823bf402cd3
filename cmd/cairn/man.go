package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/manual"
)

// manCommand writes the files that packages of cairn install with it.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write manual pages to DIR/man1 and completions to DIR/completions",
		Hidden: true,
		RunE:   a.command(func(_ context.Context, args []string) error { return manual.Write(a.root(), args[0]) }),
	}
}
