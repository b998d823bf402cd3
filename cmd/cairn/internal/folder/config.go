package folder

import (
	"context"
	"errors"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/config"
)

func (a *app) configCommand() *cli.Command {
	cmd := cli.NewCommand("config", "Show or change the configuration of the folder", a.Command(a.configShow))
	cmd.AddCommand(
		cli.NewCommand("show", "Show all settings with their meaning", a.Command(a.configShow)),
		cli.NewCommand("get KEY", "Print one setting", a.Command(func(_ context.Context, args []string) error {
			_, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			value, err := cfg.Setting(args[0])
			if err != nil {
				return cli.BadUsage("%w", err)
			}
			if list, ok := value.([]string); ok {
				return a.Out.Line(value, "%s", strings.Join(list, ","))
			}
			return a.Out.Line(value, "%v", value)
		})),
		cli.NewCommand("set KEY VALUE", "Change one setting in config.toml, and nothing else in the file", a.Command(a.configSet)),
	)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "show" {
			sub.ValidArgs = config.Default().Keys()
		}
	}
	return cmd
}

func (a *app) configShow(context.Context, []string) error {
	_, cfg, err := a.Choose()
	if err != nil {
		return err
	}
	all := map[string]any{}
	for _, key := range cfg.Keys() {
		all[key], _ = cfg.Setting(key) // never fails: the key is one of Keys
	}
	text, err := cfg.TOML()
	if err != nil {
		return err
	}
	return a.Out.Print(all, func() { a.Out.Write(text) })
}

func (a *app) configSet(_ context.Context, args []string) error {
	sel, err := a.Selection()
	if err != nil {
		return err
	}
	set, err := config.Set(sel.Root, args[0], args[1])
	if errors.As(err, new(*config.UnknownKeyError)) {
		return cli.BadUsage("%w", err)
	}
	if err != nil {
		return err
	}
	if _, _, err := a.Choose(); err != nil { // prints a warning if the value has no effect
		return err
	}
	done := map[string]any{"key": args[0], "config": set.Path}
	if set.Other == "" {
		return a.Out.Line(done, "%s is set in %s", args[0], set.Path)
	}
	done["also"] = map[string]string{set.Other: set.OtherValue}
	return a.Out.Line(done, "%s is set in %s, and %s to %s, because the two add up to 1", args[0], set.Path, set.Other, set.OtherValue)
}
