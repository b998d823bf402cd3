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

	"cairn/internal/workspace"
)

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the folder a workspace: cards, docs and config.toml below .cairn",
		Args:  cobra.NoArgs,
		RunE:  a.command(func(context.Context, []string) error { return a.initialize(force) }),
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing config.toml")
	return cmd
}

// initialize makes .cairn in the folder itself: unlike other commands it does
// not look for a workspace further up, because it is what makes one.
func (a *app) initialize(force bool) error {
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	sel, err := workspace.Select(workspace.SelectOptions{Flag: dir})
	if err != nil {
		return err
	}
	top := filepath.Join(sel.Root, ".cairn")
	for _, sub := range []string{"cards", "docs"} {
		if err := os.MkdirAll(filepath.Join(top, sub), 0o755); err != nil {
			return err
		}
	}
	cfg := workspace.DefaultConfig()
	cfg.DAG.Enabled = true // off is for folders that never asked for it
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
	if a.json {
		return a.printJSON(map[string]any{"workspace": sel.Root, "config": path})
	}
	fmt.Fprintf(a.stdout, "made %s; next: cairn index\n", top)
	return nil
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
