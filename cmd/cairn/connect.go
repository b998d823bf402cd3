package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/connect"
)

func (a *app) connectCommand() *cobra.Command {
	var name string
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
  cairn connect zed -C ~/notes --name notes`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: connect.Names(),
		RunE: a.command(func(_ context.Context, args []string) error {
			return a.connect(args[0], name, print, force)
		}),
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the text instead of writing it")
	cmd.Flags().StringVar(&name, "name", "cairn", "name of the server in the client; one for each folder")
	cmd.Flags().BoolVar(&force, "force", false, "replace another server of that name")
	return cmd
}

func (a *app) connect(client, name string, print, force bool) error {
	c, err := connect.ByName(client)
	if err != nil {
		return badUsage("%w", err)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return badUsage("--name is %q, want a word", name)
	}
	sel, _, err := a.choose()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	path := c.Path(connect.Place{Root: sel.Root, Home: home, OS: runtime.GOOS, Env: os.Getenv})
	if err != nil && !filepath.IsAbs(path) { // below no home; others are in the folder
		return fmt.Errorf("finding the configuration of %s: %w; set it to your home folder", c.Name, err)
	}
	entry := c.Entry(program(), sel.Root)
	if print {
		if a.json {
			return a.printJSON(map[string]any{"client": c.Name, "path": path, "text": c.Text(name, entry)})
		}
		fmt.Fprintf(a.stderr, "for %s:\n", path)
		_, err := fmt.Fprint(a.stdout, c.Text(name, entry))
		return err
	}
	r, err := c.Write(path, name, entry, force)
	if _, ok := errors.AsType[*connect.UnsuitableError](err); ok {
		fmt.Fprint(a.stdout, c.Text(name, entry))
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	switch {
	case !r.Changed:
		fmt.Fprintf(a.stdout, "%s has it already: %s\n", c.Title, r.Path)
	case r.Backup != "":
		fmt.Fprintf(a.stdout, "%s is told in %s; what was there is in %s\n", c.Title, r.Path, filepath.Base(r.Backup))
	default:
		fmt.Fprintf(a.stdout, "%s is told in %s\n", c.Title, r.Path)
	}
	return nil
}

// program is how a client starts this program: by its name where that finds it,
// so that the configuration holds on other machines, else by its place.
func program() string {
	self, err := os.Executable()
	if err != nil {
		return "cairn"
	}
	if found, err := exec.LookPath("cairn"); err == nil {
		a, errA := os.Stat(self)
		b, errB := os.Stat(found)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "cairn"
		}
	}
	return self
}
