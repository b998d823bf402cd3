package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/agents"
	"cairn/cmd/cairn/internal/bench"
	"cairn/cmd/cairn/internal/care"
	"cairn/cmd/cairn/internal/catalogue"
	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/folder"
	"cairn/cmd/cairn/internal/search"
	"cairn/cmd/cairn/internal/tasks"
)

// newRoot builds the command tree of a run.
func newRoot(a *cli.App) *cobra.Command {
	cobra.EnableCommandSorting = false // the groups are in the order of use
	root := cli.Group("cairn", "Search a folder of documents, from the command line and for agents over MCP")
	for _, g := range []struct {
		title    string
		commands func(*cli.App) []*cobra.Command
	}{
		{"Search and read:", search.Commands}, {"Agents and browsers:", agents.Commands}, {"Tasks:", tasks.Commands}, {"Tools of agents:", catalogue.Commands},
		{"The folder and its index:", folder.Commands}, {"Care:", care.Commands}, {"Measuring:", bench.Commands},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands(a) {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	man := cli.NewCommand("man DIR", "Write manual pages to DIR/man1 and completions to DIR/completions",
		a.Command(func(_ context.Context, args []string) error { return writeManual(newRoot(a), args[0]) }))
	man.Hidden = true // it is for packages of cairn
	root.AddCommand(versionCommand(a), man)
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		a.Started = true
		return search.Overview(cmd.Context(), a, cmd)
	}
	root.Version = a.Version
	root.SetVersionTemplate("cairn {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag = true, true, true
	root.PersistentFlags().StringVarP(&a.Dir, "workspace", "C", "", "folder to work on")
	root.PersistentFlags().StringVar(&a.Store, "store", "", "where the index is: flat (of this user), qdrant://HOST:6334/COLLECTION, or config (store.address in config.toml); also CAIRN_STORE")
	root.PersistentFlags().BoolVar(&a.Out.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(cli.FlagError)
	describe(root, parseHelp(helpText))
	root.InitDefaultHelpCmd()
	help := root.Commands()[len(root.Commands())-1]
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		return cli.NoSuchCommand(cmd, rest)
	}
	root.InitDefaultCompletionCmd()
	completion := root.Commands()[len(root.Commands())-1]
	completion.Args, completion.RunE = cli.NoSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return root
}
