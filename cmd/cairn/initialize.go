package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"cairn/internal/config"
)

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create .cairn with cards, docs and config.toml in the folder",
		Args:  cobra.NoArgs,
		RunE:  a.command(func(context.Context, []string) error { return a.initialize(force) }),
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing config.toml")
	return cmd
}

// initialize makes .cairn in the folder itself. Unlike other commands it does not
// look for a workspace in the parents.
func (a *app) initialize(force bool) error {
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	sel, err := config.Select(config.SelectOptions{Flag: dir})
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
	cfg := config.Default()
	cfg.DAG.Enabled = true // the default is for folders without cairn init
	path, err := config.Write(sel.Root, ".cairn", cfg, force)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; `cairn init --force` overwrites it with the defaults", path)
	} else if err != nil {
		return err
	}
	return a.printLine(map[string]any{"workspace": sel.Root, "config": path}, "made %s; next: cairn index", filepath.Dir(path))
}
