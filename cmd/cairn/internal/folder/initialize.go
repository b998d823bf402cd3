package folder

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

	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
	"cairn/internal/base/atomicfile"
	"cairn/internal/folder/config"
)

// initCommand returns the command that creates .cairn in the folder itself. Unlike other commands it
// does not look for a workspace in the parents.
func (a *app) initCommand() *cli.Command {
	var force bool
	cmd := cli.NewCommand("init", "Create .cairn with cards, docs and config.toml in the folder",
		a.Command(func(context.Context, []string) error {
			in := "" // the commands that are proposed
			if a.Dir != "" {
				in = fmt.Sprintf(" -C %q", a.Dir)
			}
			sel, err := config.Select(cmp.Or(a.Dir, "."))
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
				return fmt.Errorf("%s exists already; `cairn init%s --force` overwrites it with the defaults", path, in)
			} else if err != nil {
				return err
			}
			if err := ignoreScene(root); err != nil {
				return err
			}
			return a.Out.Print(map[string]any{"workspace": sel.Root, "config": path, "carried_over": append([]string{}, carried...)}, func() {
				a.Out.Printf("created %s; next: cairn index%s\n", filepath.Dir(path), in)
				if len(carried) > 0 {
					a.Out.Printf("copied from .cuedeck/config.toml, which no longer has an effect: %s\n", strings.Join(carried, ", "))
				}
				for _, warning := range cfg.Warnings {
					a.Out.Notes.Warn("not copied: %s", warning)
				}
			})
		}))
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing config.toml")
	return cmd
}

// ignoreScene adds the file of the scene to the folder's .gitignore.
func ignoreScene(root *os.Root) error {
	const line = ".cairn/" + tasks.SceneFile
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
