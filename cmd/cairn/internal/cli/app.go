// Package cli holds what the commands share: their streams and flags, how they open the
// folder, and how they bring its index up to date. It holds no command.
package cli

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/config"
	"cairn/internal/folder/encoder"
	"cairn/internal/folder/workspace"
)

// App is one run of the program: its streams and the flags of all commands.
type App struct {
	Stdin   io.Reader
	Out     *term.Output
	Version string
	Started bool // a command has begun; earlier errors are wrong usage
	// Searching means that the exit code is grep's: 1 only if nothing was found, and 2 for
	// any error.
	Searching, nothing bool

	Dir   string // -C
	Store string // --store
	Model encoder.Model

	warned map[string]bool // the warnings that Choose has printed
	// Lenient makes Choose ignore an invalid configuration, with a warning.
	Lenient  bool
	selected *config.Selection // nil until Selection has set it
}

// New returns the run of a program of that version with the streams of a process.
func New(version string, stdin io.Reader, stdout, stderr io.Writer) *App {
	out := &term.Output{Writer: term.New(stdout), Notes: term.New(stderr)}
	return &App{Stdin: stdin, Out: out, Version: version, warned: map[string]bool{}}
}

// At returns a copy of a for another folder.
func (a *App) At(dir string) *App {
	other := *a
	other.Dir, other.selected = dir, nil
	return &other
}

// Command wraps the function of a subcommand.
func (a *App) Command(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.Started = true
		// Libraries log damage that they also return as an error.
		log.SetOutput(io.Discard)
		return fn(cmd.Context(), args)
	}
}

// Searches makes the exit code of cmd that of a search. cmd calls Found with its results.
func (a *App) Searches(cmd *cobra.Command) *cobra.Command {
	cmd.PreRun = func(*cobra.Command, []string) { a.Searching = true }
	return cmd
}

// Found records whether there are results.
func (a *App) Found(some bool) { a.nothing = !some }

// FoundNothing reports whether the command was a search without results.
func (a *App) FoundNothing() bool { return a.Searching && a.nothing }

// Choose selects the folder and loads its configuration. It prints each warning
// of the configuration once. With a.Lenient, an invalid configuration is a warning.
func (a *App) Choose() (config.Selection, config.Config, error) {
	sel, err := a.Selection()
	if err != nil {
		return sel, config.Config{}, err
	}
	cfg, err := config.Load(sel.Root, os.Environ())
	if err != nil && a.Lenient {
		cfg.Warnings = append(cfg.Warnings, config.Warning{Where: "the configuration is ignored", What: err.Error()})
	} else if err != nil {
		return sel, cfg, err
	}
	for _, w := range cfg.Warnings {
		if line := w.String(); !a.warned[line] {
			a.warned[line] = true
			a.Out.Warnings(line)
		}
	}
	return sel, cfg, nil
}

// Selection selects the folder, once.
func (a *App) Selection() (config.Selection, error) {
	if a.selected != nil {
		return *a.selected, nil
	}
	sel, err := config.Select(a.Dir)
	if err != nil {
		return sel, err
	}
	if err := sel.Keep(); err != nil {
		a.Out.Notes.Warn("storing the further folders: %v", err)
	}
	a.selected = &sel
	return sel, nil
}

// Paths returns the translation of typed paths for a workspace. With -C paths are relative to
// that folder, as if the command had been started there.
func (a *App) Paths(sel config.Selection) term.Places {
	dir := ""
	if a.Dir == "" {
		dir, _ = os.Getwd() // paths are relative to the workspace without a current folder
	}
	return term.NewPlaces(sel.Roots(), dir)
}

// Options selects the folder and returns its options, as far as the flags determine them, for
// the named command.
func (a *App) Options(command string) (config.Selection, config.Config, workspace.Options, error) {
	o := workspace.Options{Command: "cairn " + command}
	sel, cfg, err := a.Choose()
	if err == nil {
		err = a.Model.Apply(&o)
	}
	if err == nil {
		o.Store, err = a.chooseStore(cfg)
		o.Postgres = os.Getenv("CAIRN_POSTGRES")
	}
	return sel, cfg, o, err
}

// Open opens the workspace for the named command. change adapts the options; nil keeps them.
func (a *App) Open(ctx context.Context, command string, access workspace.Access, change func(*workspace.Options)) (*workspace.Workspace, error) {
	sel, cfg, o, err := a.Options(command)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	if o.Logger == nil {
		o.Notice = func(line string) { a.Out.Warnings(line) }
	}
	return workspace.Open(ctx, sel, cfg, access, o)
}

// With wraps the function of a subcommand. It calls open before fn, and closes the result
// afterwards.
func With[T io.Closer](a *App, open func(context.Context) (T, error), fn func(context.Context, T, []string) error) func(*cobra.Command, []string) error {
	return a.Command(func(ctx context.Context, args []string) error {
		opened, err := open(ctx)
		if err != nil {
			return err
		}
		return errors.Join(fn(ctx, opened, args), opened.Close())
	})
}

// WithWorkspace opens the workspace for fn.
func (a *App) WithWorkspace(command string, access workspace.Access, fn func(context.Context, *workspace.Workspace, []string) error) func(*cobra.Command, []string) error {
	return With(a, func(ctx context.Context) (*workspace.Workspace, error) { return a.Open(ctx, command, access, nil) }, fn)
}

// Logger returns a log of warnings on standard error.
func (a *App) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Out.Notes, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// WithProgress calls fn with a display of its progress on standard error, which it removes
// afterwards.
func WithProgress[T any](a *App, fn func(*term.Progress) (T, error)) (T, error) {
	p := term.NewProgress(a.Out.Notes)
	defer p.Close()
	return fn(p)
}
