package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	top := filepath.Join(sel.Root, ".cairn")
	for _, sub := range []string{"cards", "docs"} {
		if err := os.MkdirAll(filepath.Join(top, sub), 0o755); err != nil {
			return err
		}
	}
	cfg := config.Default()
	cfg.DAG.Enabled = true // the default is for folders without cairn init
	text, err := cfg.TOML()
	if err != nil {
		return err
	}
	path := filepath.Join(top, "config.toml")
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; `cairn init --force` overwrites it with the defaults", path)
	} else if err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := addLine(filepath.Join(sel.Root, ".gitignore"), ".cairn/index/"); err != nil {
		return err
	}
	return a.printLine(map[string]any{"workspace": sel.Root, "config": path}, "made %s; next: cairn index", top)
}

// addLine appends a line to a file that lacks it.
func addLine(path, line string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for have := range strings.Lines(string(text)) {
		if strings.TrimSpace(have) == line {
			return nil
		}
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return os.WriteFile(path, append(text, line+"\n"...), 0o644)
}
