package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/atomicfile"
	"cairn/internal/config"
	"cairn/internal/home"
	"cairn/internal/term"
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
	return a.print(all, func(w *term.Writer) { w.Write(text) })
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
		return a.printLine(value, "%s", strings.Join(list, ","))
	}
	return a.printLine(value, "%v", value)
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
		return a.printLine(done, "%s is set in %s", args[0], set.Path)
	}
	done["also"] = map[string]string{set.Other: set.OtherValue}
	return a.printLine(done, "%s is set in %s, and %s to %s, because the two add up to 1", args[0], set.Path, set.Other, set.OtherValue)
}

func (a *app) rootsCommand() *cobra.Command {
	add := newCommand("add NAME DIR", "Search another folder with this one",
		a.withRoots(func(sel config.Selection, args []string) (config.Selection, error) {
			return sel.AddRoot(args[0], args[1])
		}))
	remove := newCommand("remove NAME", "Stop searching another folder with this one",
		a.withRoots(func(sel config.Selection, args []string) (config.Selection, error) { return sel.RemoveRoot(args[0]) }))
	cmd := group("roots", "List, add and remove further folders that are searched with this one", add, remove)
	cmd.RunE = a.withRoots(func(sel config.Selection, _ []string) (config.Selection, error) { return sel, nil })
	return cmd
}

// withRoots calls change with the selection, and prints the folders of the selection that
// change returns.
func (a *app) withRoots(change func(config.Selection, []string) (config.Selection, error)) func(*cobra.Command, []string) error {
	return a.command(func(_ context.Context, args []string) error {
		sel, err := a.selection()
		if err != nil {
			return err
		}
		if sel, err = change(sel, args); err != nil {
			return err
		}
		return a.print(sel, func(w *term.Writer) {
			rows := [][]string{{".", term.Plain(sel.Root)}}
			for _, r := range sel.Further {
				rows = append(rows, []string{term.Plain(r.Name), term.Plain(r.Dir)})
			}
			w.Rows(rows)
		})
	})
}

func (a *app) trustCommand() *cobra.Command {
	var remove bool
	cmd := newCommand("trust [DIR]", "Trust the configuration of a folder, or list the trusted folders",
		a.command(func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return a.trust(args[0], !remove)
			}
			if remove {
				return badUsage("--remove needs a folder, as in: cairn trust --remove ~/notes")
			}
			folders, err := home.TrustedFolders()
			if err != nil {
				return err
			}
			return a.print(map[string]any{"trusted": folders}, func(w *term.Writer) {
				if len(folders) == 0 {
					a.stderr.Printf("no folder is trusted; trust one with `cairn trust DIR`\n")
				}
				for _, folder := range folders {
					w.Printf("%s\n", term.Plain(folder))
				}
			})
		}))
	cmd.Flags().BoolVar(&remove, "remove", false, "stop trusting the folder")
	return cmd
}

func (a *app) trust(dir string, trusted bool) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	} else if trusted { // a missing folder can still be removed from the list
		return err
	}
	if err := home.Trust(root, trusted); err != nil {
		return err
	}
	format := "trusted: %s"
	if !trusted {
		format = "no longer trusted: %s"
	}
	return a.printLine(map[string]any{"workspace": root, "trusted": trusted}, format, term.Plain(root))
}

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := newCommand("init", "Create .cairn with cards, docs and config.toml in the folder",
		a.command(func(context.Context, []string) error { return a.initialize(force) }))
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing config.toml")
	return cmd
}

// initialize creates .cairn in the folder itself. Unlike other commands it does not look for
// a workspace in the parents.
func (a *app) initialize(force bool) error {
	sel, err := config.Select(config.SelectOptions{Flag: cmp.Or(a.dir, ".")})
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(sel.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, sub := range []string{".cairn/cards", ".cairn/docs"} {
		if err := root.MkdirAll(sub, 0o755); err != nil {
			return err
		}
	}
	cfg, carried, err := config.Initial(sel.Root)
	if err != nil {
		return err
	}
	path, err := config.Write(sel.Root, ".cairn", cfg, force)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; `cairn init --force` overwrites it with the defaults", path)
	} else if err != nil {
		return err
	}
	if err := ignoreScene(root); err != nil {
		return err
	}
	return a.print(map[string]any{"workspace": sel.Root, "config": path, "carried_over": append([]string{}, carried...)}, func(w *term.Writer) {
		w.Printf("created %s; next: cairn index\n", filepath.Dir(path))
		if len(carried) > 0 {
			w.Printf("copied from .cuedeck/config.toml, which no longer has an effect: %s\n", strings.Join(carried, ", "))
		}
		for _, warning := range cfg.Warnings {
			a.stderr.Warn("not copied: %s", warning)
		}
	})
}

// ignoreScene adds the file of the scene to the folder's .gitignore.
func ignoreScene(root *os.Root) error {
	const line = ".cairn/" + sceneFile
	old, err := root.ReadFile(".gitignore")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Fields(string(old)), line) {
		return nil
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return atomicfile.WriteIn(root, ".gitignore", []byte(text+line+"\n"), 0o644)
}
