package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

// app is one run of the program: its streams and the flags all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	started        bool     // a command has begun; errors before that are wrong usage
	warned         []string // what choose has said on standard error

	dir   string // -C
	store string // --store
	json  bool   // --json
	model modelFlags
	// servers keep question tasks, for those commands that look at them.
	servers taskServers
}

// root builds the command tree. It is small enough to be built for every run.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cairn",
		Short: "Search a folder of Markdown, from the command line and for agents over MCP",
		Long: `cairn searches a folder of Markdown by meaning and by words.

The folder is the one named by -C, else CAIRN_WORKSPACE, else CUE_WORKSPACE, else
the nearest parent with a .cairn or .cuedeck folder, else the current folder.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVarP(&a.dir, "workspace", "C", "", "folder to work on")
	root.PersistentFlags().StringVar(&a.store, "store", "", "where the index is: flat (in the folder), qdrant://HOST:6334/COLLECTION, or config (what the folder names in store.address); also CAIRN_STORE")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return badUsage("%w (see `%s --help`)", err, cmd.CommandPath())
	})
	root.AddCommand(
		a.initCommand(), a.indexCommand(), a.searchCommand(), a.explainCommand(), a.readCommand(), a.statusCommand(),
		a.cardCommand(), a.dagCommand(), a.taskCommand(), a.doctorCommand(), a.toolsCommand(), a.suggestCommand(), a.askCommand(), a.planCommand(), a.embedCommand(), a.mcpCommand(), a.serveCommand(), a.workerCommand(), a.tokenCommand(), a.storeCommand(), a.benchCommand(), a.versionCommand(),
		a.watchCommand(), a.connectCommand(), a.openCommand(), a.sceneCommand(), a.listCommand(), a.graphCommand(),
		a.configCommand(), a.cleanCommand(), a.upgradeCommand(), a.manCommand(),
	)
	addExamples(root)
	return root
}

// command wraps the function of a subcommand.
func (a *app) command(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		// Libraries print lines of their own about damage that we get as an error
		// and tell in our words.
		log.SetOutput(io.Discard)
		return fn(cmd.Context(), args)
	}
}

// choose selects the workspace and reads its configuration; what has no effect
// in it is said on standard error.
func (a *app) choose() (workspace.Selection, workspace.Config, error) {
	sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
	if err != nil {
		return sel, workspace.Config{}, err
	}
	cfg, err := workspace.LoadConfig(sel.Root, os.Environ())
	if err != nil {
		return sel, cfg, err
	}
	for _, w := range cfg.Warnings {
		line := fmt.Sprintf("cairn: warning: %s\n", w)
		if !slices.Contains(a.warned, line) { // a command may read it more than once
			a.warned = append(a.warned, line)
			fmt.Fprint(a.stderr, line)
		}
	}
	return sel, cfg, nil
}

// open opens the workspace for the named command.
func (a *app) open(ctx context.Context, command string, access workspace.Access, change func(*workspace.Options)) (*workspace.Workspace, error) {
	sel, cfg, err := a.choose()
	if err != nil {
		return nil, err
	}
	o := workspace.Options{Command: "cairn " + command}
	if err := a.model.apply(&o); err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	if err := a.useStore(&o, cfg); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Notice = func(line string) { fmt.Fprintf(a.stderr, "cairn: warning: %s\n", oneLine(line)) }
	}
	return workspace.Open(ctx, sel, cfg, access, o)
}

// logger writes to standard error, which is nobody's protocol.
func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// printJSON prints v on a line of its own.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
