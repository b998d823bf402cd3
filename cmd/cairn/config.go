package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/folder/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := newCommand("config", "Show or change the configuration of the folder", a.command(a.configShow))
	cmd.AddCommand(
		newCommand("show", "Show all settings with their meaning", a.command(a.configShow)),
		newCommand("get KEY", "Print one setting", a.command(a.configGet)),
		newCommand("set KEY VALUE", "Change one setting in config.toml, and nothing else in the file", a.command(a.configSet)),
	)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "show" {
			sub.ValidArgs = config.Default().Keys()
		}
	}
	return cmd
}

func (a *app) configShow(context.Context, []string) error {
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	all := map[string]any{}
	for _, key := range cfg.Keys() {
		if all[key], err = cfg.Setting(key); err != nil {
			return err // unreachable: the key is one of Keys
		}
	}
	text, err := cfg.TOML()
	if err != nil {
		return err
	}
	return a.out.Print(all, func() { a.out.Write(text) })
}

func (a *app) configGet(_ context.Context, args []string) error {
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	value, err := cfg.Setting(args[0])
	if err != nil {
		return badUsage("%w", err)
	}
	if list, ok := value.([]string); ok {
		return a.out.Line(value, "%s", strings.Join(list, ","))
	}
	return a.out.Line(value, "%v", value)
}

func (a *app) configSet(_ context.Context, args []string) error {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	set, err := config.Set(sel.Root, args[0], args[1])
	if errors.As(err, new(*config.UnknownKeyError)) {
		return badUsage("%w", err)
	}
	if err != nil {
		return err
	}
	if _, _, err := a.choose(); err != nil { // prints a warning if the value has no effect
		return err
	}
	done := map[string]any{"key": args[0], "config": set.Path}
	if set.Other == "" {
		return a.out.Line(done, "%s is set in %s", args[0], set.Path)
	}
	done["also"] = map[string]string{set.Other: set.OtherValue}
	return a.out.Line(done, "%s is set in %s, and %s to %s, because the two add up to 1", args[0], set.Path, set.Other, set.OtherValue)
}
