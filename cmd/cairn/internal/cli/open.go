package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"cairn/internal/face/finder"
	"cairn/internal/folder/config"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
	"cairn/internal/toolbox"
)

// WithTasks opens the folder's tasks for fn.
func (a *App) WithTasks(fn func(context.Context, *workspace.Tasks, []string) error) func(*cobra.Command, []string) error {
	open := func(context.Context) (*workspace.Tasks, error) {
		sel, cfg, err := a.Choose()
		if err != nil {
			return nil, err
		}
		return workspace.OpenTasks(sel, cfg, &workspace.TaskOptions{Person: true})
	}
	return With(a, open, fn)
}

// ToolboxOptions returns the options for the toolbox of a folder. If the index is in a Qdrant
// store and CAIRN_POSTGRES is set, servers share the toolbox in that database.
func (a *App) ToolboxOptions(sel config.Selection, cfg config.Config, o workspace.Options) toolbox.Options {
	t := toolbox.Options{
		Root: sel.Root, HalfLife: cfg.Usage.HalfLife(), Description: o.Description, Model: o.Model, AnyModel: !o.ModelChosen,
		Command: o.Command, Logger: a.Logger(),
	}
	if o.Store != nil {
		t.Postgres, t.Space = os.Getenv("CAIRN_POSTGRES"), o.Store.Collection()
	}
	return t
}

// WithToolbox opens the folder's toolbox for fn.
func (a *App) WithToolbox(fn func(context.Context, *toolbox.Toolbox, []string) error) func(*cobra.Command, []string) error {
	open := func(ctx context.Context) (*toolbox.Toolbox, error) {
		sel, cfg, o, err := a.Options("tools")
		if err != nil {
			return nil, err
		}
		return toolbox.Open(ctx, a.ToolboxOptions(sel, cfg, o))
	}
	return With(a, open, fn)
}

// chooseStore returns the store that --store or the environment names, or nil for the
// folder's own index. "config" means the store of the configuration, which counts only if
// the user trusts the folder.
func (a *App) chooseStore(cfg config.Config) (*mirror.Store, error) {
	address := cmp.Or(a.Store, os.Getenv("CAIRN_STORE"))
	switch address {
	case "", "flat":
		return nil, nil
	case "config":
		if address = cfg.Store.Address; address == "" {
			return nil, BadUsage("--store config: the configuration has no store.address; set it with: cairn config set store.address qdrant://HOST:6334/COLLECTION, in a folder that you trust (see cairn trust)")
		}
	}
	store, err := mirror.ParseStore(address, os.Getenv)
	if err != nil {
		return nil, &UsageError{err}
	}
	return store, nil
}

// Editor returns the user's editor. Its error advises to set one, or to do otherwise.
func Editor(otherwise string) ([]string, error) {
	words := finder.Editor()
	if len(words) == 0 {
		return nil, BadUsage("set EDITOR to the program that opens files, such as EDITOR=vim, or %s", otherwise)
	}
	return words, nil
}

// Edit opens a file at a line in an editor, which uses the streams of this process.
func (a *App) Edit(ctx context.Context, editor []string, file string, line int) error {
	args := finder.OpenAt(editor, file, line)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, a.Out.Raw(), a.Out.Notes.Raw()
	return cmd.Run()
}

// Input opens a file; "-" is standard input.
func (a *App) Input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(name)
}
