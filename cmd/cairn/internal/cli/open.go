package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"cairn/internal/base/owner"
	"cairn/internal/face/finder"
	"cairn/internal/face/term"
	"cairn/internal/folder/config"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
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

// Completion returns a function that completes an argument in a shell. complete receives the
// folder's tasks and the typed beginning; without a result the shell completes file names.
func (a *App) Completion(complete func(context.Context, *workspace.Tasks, string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		_ = a.WithTasks(func(ctx context.Context, t *workspace.Tasks, _ []string) error { // an error completes nothing
			found = complete(ctx, t, typed)
			return nil
		})(cmd, nil)
		if len(found) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// WithTools opens the folder for fn, which calls the operations of its tools.
func (a *App) WithTools(fn func(ctx context.Context, folder *owner.Folder, args []string) error) func(*cobra.Command, []string) error {
	open := func(ctx context.Context) (*workspace.Workspace, error) {
		return a.Open(ctx, "tools", workspace.Reading, func(o *workspace.Options) { o.Logger = a.Logger() })
	}
	return With(a, open, func(ctx context.Context, w *workspace.Workspace, args []string) error {
		folder, err := w.Tools(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, folder, args)
	})
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

// Input opens a regular file; "-" is standard input. It refuses a FIFO, because opening one
// waits for a writer.
func (a *App) Input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, BadUsage("%s is not a regular file; name another file, or - for standard input", term.Plain(name))
	}
	return os.Open(name)
}
