package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"cairn/internal/config"
	"cairn/internal/host"
	"cairn/internal/term"
	"cairn/internal/workspace"
)

// app is one run of the program: its streams and the flags of all commands.
type app struct {
	stdin          io.Reader
	stdout, stderr *term.Writer
	started        bool            // a command has begun; earlier errors are wrong usage
	warned         map[string]bool // the warnings that choose has printed

	dir   string // -C
	store string // --store
	json  bool   // --json
	model host.Model
	// servers keep question tasks, for the commands that only look at them.
	servers taskServers
}

// root builds the command tree, which is small enough to be built for every run.
func (a *app) root() *cobra.Command {
	root := group("cairn", "Search a folder of Markdown, from the command line and for agents over MCP",
		a.initCommand(), a.indexCommand(), a.searchCommand(), a.explainCommand(), a.readCommand(), a.statusCommand(),
		a.cardCommand(), a.dagCommand(), a.taskCommand(), a.doctorCommand(), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.toolsCommand(), a.suggestCommand(), a.askCommand(), a.planCommand(), a.embedCommand(),
		a.mcpCommand(), a.serveCommand(), a.workerCommand(), a.tokenCommand(), a.storeCommand(), a.benchCommand(), a.versionCommand(),
		a.watchCommand(), a.connectCommand(), a.disconnectCommand(), a.openCommand(), a.sceneCommand(), a.listCommand(), a.graphCommand(),
		a.configCommand(), a.trustCommand(), a.migrateCommand(), a.cleanCommand(), a.upgradeCommand(), a.manCommand(),
	)
	root.Long = `Cairn searches a folder of Markdown by meaning and by words.

The folder is the one named by -C, else CAIRN_WORKSPACE, else CUE_WORKSPACE, else
the nearest parent with a .cairn or .cuedeck folder, else the current folder.`
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag = true, true, true
	root.PersistentFlags().StringVarP(&a.dir, "workspace", "C", "", "folder to work on")
	root.PersistentFlags().StringVar(&a.store, "store", "", "where the index is: flat (of this user), qdrant://HOST:6334/COLLECTION, or config (store.address in config.toml); also CAIRN_STORE")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.SetFlagErrorFunc(flagError)
	addExamples(root)
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
			a.stderr.Warn("%s", line)
		}
	}
	return sel, cfg, nil
}

func (a *app) selection() (config.Selection, error) {
	return config.Select(config.SelectOptions{Flag: a.dir})
}

// open opens the workspace for the named command.
func (a *app) open(ctx context.Context, command string, access workspace.Access, change func(*workspace.Options)) (*workspace.Workspace, error) {
	sel, cfg, err := a.choose()
	if err != nil {
		return nil, err
	}
	o := workspace.Options{Command: "cairn " + command}
	if err := a.model.Apply(&o); err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	if o.Store, err = a.chooseStore(cfg); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Notice = func(line string) { a.stderr.Warn("%s", line) }
	}
	return workspace.Open(ctx, sel, cfg, access, o)
}

// logger logs to standard error.
func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// print prints v with --json, else calls text. A failed write is reported when
// the program ends.
func (a *app) print(v any, text func(w *term.Writer)) error {
	if a.json {
		return a.stdout.JSON(v)
	}
	text(a.stdout)
	return nil
}

// printLine prints v with --json, else a line of text.
func (a *app) printLine(v any, format string, args ...any) error {
	return a.print(v, func(w *term.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// withProgress runs fn with a display of its progress on standard error, which
// is gone when withProgress returns.
func (a *app) withProgress(fn func(*term.Progress) error) error {
	p := term.NewProgress(a.stderr)
	defer p.Close()
	return fn(p)
}
