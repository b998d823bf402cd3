package main

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

// app is one run of the program: its streams and the flags of all commands.
type app struct {
	stdin   io.Reader
	out     *term.Output
	started bool            // a command has begun; earlier errors are wrong usage
	warned  map[string]bool // the warnings that choose has printed

	selected *config.Selection // nil until selection has set it

	dir     string // -C
	store   string // --store
	model   encoder.Model
	servers taskServers // of cairn plan
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // the groups are in the order of use
	root := group("cairn", "Search a folder of documents, from the command line and for agents over MCP")
	for _, g := range []struct {
		title string
		subs  []*cobra.Command
	}{
		{"Search and read:", []*cobra.Command{a.searchCommand(), a.readCommand(), a.askCommand(), a.openCommand(), a.explainCommand(), a.watchCommand()}},
		{"Agents and browsers:", []*cobra.Command{a.connectCommand(), a.disconnectCommand(), a.mcpCommand(), a.serveCommand(), a.tokenCommand(), a.sceneCommand()}},
		{"Tasks:", []*cobra.Command{a.cardCommand(), a.listCommand(), a.graphCommand(), a.taskCommand(), a.dagCommand(), a.planCommand(), a.workerCommand()}},
		{"Tools of agents:", []*cobra.Command{a.suggestCommand(), a.toolsCommand()}},
		{"The folder and its index:", []*cobra.Command{a.initCommand(), a.indexCommand(), a.statusCommand(), a.configCommand(), a.rootsCommand(), a.trustCommand(), a.storeCommand()}},
		{"Care:", []*cobra.Command{a.doctorCommand(), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.cleanCommand(), a.upgradeCommand()}},
		{"Measuring:", []*cobra.Command{a.benchCommand(), a.embedCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.subs {
			cmd.GroupID = g.title
		}
		root.AddCommand(g.subs...)
	}
	root.AddCommand(a.versionCommand(), a.manCommand())
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		a.started = true
		return a.overview(cmd.Context(), cmd)
	}
	root.Version = versionName()
	root.SetVersionTemplate("cairn {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag = true, true, true
	root.PersistentFlags().StringVarP(&a.dir, "workspace", "C", "", "folder to work on")
	root.PersistentFlags().StringVar(&a.store, "store", "", "where the index is: flat (of this user), qdrant://HOST:6334/COLLECTION, or config (store.address in config.toml); also CAIRN_STORE")
	root.PersistentFlags().BoolVar(&a.out.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(flagError)
	describe(root, parseHelp(helpText))
	root.InitDefaultHelpCmd()
	help := root.Commands()[len(root.Commands())-1]
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		return noSuchCommand(cmd, rest)
	}
	return root
}

// command wraps the function of a subcommand.
func (a *app) command(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		// Libraries log damage that they also return as an error.
		log.SetOutput(io.Discard)
		return fn(cmd.Context(), args)
	}
}

// choose selects the folder and loads its configuration. It prints each warning
// of the configuration once.
func (a *app) choose() (config.Selection, config.Config, error) {
	sel, err := a.selection()
	if err != nil {
		return sel, config.Config{}, err
	}
	cfg, err := config.Load(sel.Root, os.Environ())
	if err != nil {
		return sel, cfg, err
	}
	for _, w := range cfg.Warnings {
		if line := w.String(); !a.warned[line] {
			a.warned[line] = true
			a.out.Warnings(line)
		}
	}
	return sel, cfg, nil
}

// selection selects the folder, once.
func (a *app) selection() (config.Selection, error) {
	if a.selected != nil {
		return *a.selected, nil
	}
	sel, err := config.Select(config.SelectOptions{Flag: a.dir})
	if err != nil {
		return sel, err
	}
	if err := sel.Keep(); err != nil {
		a.out.Notes.Warn("storing the further folders: %v", err)
	}
	a.selected = &sel
	return sel, nil
}

// paths returns the translation of typed paths for a workspace. With -C paths are relative to
// that folder, as if the command had been started there.
func (a *app) paths(sel config.Selection) term.Places {
	dir := ""
	if a.dir == "" {
		dir, _ = os.Getwd() // paths are relative to the workspace without a current folder
	}
	return term.NewPlaces(sel.Roots(), dir)
}

// options selects the folder and returns its options, as far as the flags determine them, for
// the named command.
func (a *app) options(command string) (config.Selection, config.Config, workspace.Options, error) {
	o := workspace.Options{Command: "cairn " + command}
	sel, cfg, err := a.choose()
	if err == nil {
		err = a.model.Apply(&o)
	}
	if err == nil {
		o.Store, err = a.chooseStore(cfg)
	}
	return sel, cfg, o, err
}

// open opens the workspace for the named command. change adapts the options; nil keeps them.
func (a *app) open(ctx context.Context, command string, access workspace.Access, change func(*workspace.Options)) (*workspace.Workspace, error) {
	sel, cfg, o, err := a.options(command)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	if o.Logger == nil {
		o.Notice = func(line string) { a.out.Warnings(line) }
	}
	return workspace.Open(ctx, sel, cfg, access, o)
}

// with wraps the function of a subcommand. It calls open before fn, and closes the result
// afterwards.
func with[T io.Closer](a *app, open func(context.Context) (T, error), fn func(context.Context, T, []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) error {
		opened, err := open(ctx)
		if err != nil {
			return err
		}
		return errors.Join(fn(ctx, opened, args), opened.Close())
	})
}

// withWorkspace opens the workspace for fn.
func (a *app) withWorkspace(command string, access workspace.Access, fn func(context.Context, *workspace.Workspace, []string) error) func(*cobra.Command, []string) error {
	return with(a, func(ctx context.Context) (*workspace.Workspace, error) { return a.open(ctx, command, access, nil) }, fn)
}

// logger returns a log of warnings on standard error.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.out.Notes, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// withProgress calls fn with a display of its progress on standard error, which it removes
// afterwards.
func withProgress[T any](a *app, fn func(*term.Progress) (T, error)) (T, error) {
	p := term.NewProgress(a.out.Notes)
	defer p.Close()
	return fn(p)
}
