package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/connect"
	"cairn/internal/term"
	"cairn/tools"
)

func (a *app) connectCommand() *cobra.Command {
	var name, offer string
	var print, force bool
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Write cairn into the configuration of an MCP client",
		Long: fmt.Sprintf(`Write cairn into the configuration of an MCP client, so that it starts "cairn mcp"
on this folder. CLIENT is one of %s.

Everything else in the file stays as it is, comments included, and a copy of the
file is made first. With --print the text to paste is printed and nothing is
written.`, strings.Join(connect.Names(), ", ")),
		Example: `  cairn connect claude-code
  cairn connect codex --print
  cairn connect cursor --tools core,dag
  cairn connect zed -C ~/notes --name notes`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: connect.Names(),
		RunE: a.command(func(_ context.Context, args []string) error {
			return a.connect(args[0], name, offer, print, force)
		}),
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the text to paste, and write nothing")
	cmd.Flags().StringVar(&name, "name", "cairn", "name of the server in the client; each folder needs its own")
	cmd.Flags().StringVar(&offer, "tools", "", "tools to offer, as for cairn mcp (default: what mcp.tools says)")
	cmd.Flags().BoolVar(&force, "force", false, "replace another server of this name")
	return cmd
}

func (a *app) connect(client, name, offer string, print, force bool) error {
	c, err := connect.ByName(client)
	if err != nil {
		return badUsage("%w", err)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return badUsage("--name is %q, want a word", name)
	}
	var further []string
	if offer != "" {
		if _, err := tools.ParseGroups(offer); err != nil {
			return badUsage("--tools: %w", err)
		}
		further = []string{"--tools", offer}
	}
	sel, _, err := a.choose()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	path := c.Path(connect.Place{Root: sel.Root, Home: home, OS: runtime.GOOS, Env: os.Getenv})
	if err != nil && !filepath.IsAbs(path) { // other paths are in the folder
		return fmt.Errorf("finding the configuration of %s: %w; set it to your home folder", c.Name, err)
	}
	entry := c.Entry(connect.Program(), sel.Root, further...)
	if print {
		return a.print(map[string]any{"client": c.Name, "path": path, "text": c.Text(name, entry)}, func(w *term.Writer) {
			a.stderr.Printf("for %s:\n", path)
			w.Printf("%s", c.Text(name, entry))
		})
	}
	r, err := c.Write(sel.Root, path, name, entry, force)
	if _, ok := errors.AsType[*connect.UnsuitableError](err); ok {
		a.stdout.Printf("%s", c.Text(name, entry))
	}
	if err != nil {
		return err
	}
	switch {
	case !r.Changed:
		return a.printLine(r, "%s has this entry already: %s", c.Title, r.Path)
	case r.Backup != "":
		return a.printLine(r, "added to %s for %s; a copy of the old file is %s", r.Path, c.Title, filepath.Base(r.Backup))
	}
	return a.printLine(r, "added to %s for %s", r.Path, c.Title)
}
