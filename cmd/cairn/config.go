package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) configCommand() *cobra.Command {
	show := func(context.Context, []string) error {
		_, cfg, err := a.choose()
		if err != nil {
			return err
		}
		if a.json {
			all := map[string]any{}
			for _, key := range cfg.Keys() {
				if all[key], err = cfg.Setting(key); err != nil {
					return err // unreachable: the keys are its own
				}
			}
			return a.printJSON(all)
		}
		text, err := cfg.TOML()
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or change the configuration of the folder",
		Long: `Show the configuration of the folder as it holds: the defaults, config.toml over
them, and the environment over that (CAIRN_CORE__TOKEN_LIMIT=8000).`,
		Example: `  cairn config
  cairn config get core.token_limit
  cairn config set parser.extensions .go,.py`,
		Args: cobra.NoArgs,
		RunE: a.command(show),
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Show all settings with what they mean", Example: "  cairn config show",
			Args: cobra.NoArgs, RunE: a.command(show),
		},
		&cobra.Command{
			Use: "get KEY", Short: "Print one setting", Example: "  cairn config get search.default_mode",
			Args: cobra.ExactArgs(1), ValidArgs: workspace.DefaultConfig().Keys(),
			RunE: a.command(func(_ context.Context, args []string) error {
				_, cfg, err := a.choose()
				if err != nil {
					return err
				}
				value, err := cfg.Setting(args[0])
				if err != nil {
					return badUsage("%w", err)
				}
				if a.json {
					return a.printJSON(value)
				}
				if list, ok := value.([]string); ok {
					value = strings.Join(list, ",")
				}
				_, err = fmt.Fprintln(a.stdout, value)
				return err
			}),
		},
		&cobra.Command{
			Use: "set KEY VALUE", Short: "Change one setting in config.toml; the rest of the file stays",
			Example: "  cairn config set core.token_limit 8000",
			Args:    cobra.ExactArgs(2), ValidArgs: workspace.DefaultConfig().Keys(),
			RunE: a.command(func(_ context.Context, args []string) error {
				sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
				if err != nil {
					return err
				}
				path, err := workspace.Set(sel.Root, args[0], args[1])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"key": args[0], "config": path})
				}
				_, err = fmt.Fprintf(a.stdout, "%s is set in %s\n", args[0], path)
				return err
			}),
		},
	)
	return cmd
}
