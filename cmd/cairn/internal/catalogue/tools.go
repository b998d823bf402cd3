// Package catalogue holds the commands for the tools of agents.
package catalogue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/graphrank"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/toolsearch"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.suggestCommand(), a.callCommand(), a.runCommand(), a.toolsCommand()}
}

func (a *app) toolsCommand() *cli.Command {
	return cli.Group("tools", "Manage the catalogue of tools and their usage",
		a.toolsAddCommand(), a.toolsServersCommand(), a.toolsApproveCommand(), a.toolsPermitCommand(), a.toolsRemoveCommand(),
		a.toolsImportCommand(), a.toolsListCommand(), a.toolsSearchCommand(), a.toolsShowCommand(), a.toolsVerifyCommand(), a.toolsLearnCommand(), a.toolsForgetCommand(), a.toolsGraphCommand())
}

func (a *app) toolsListCommand() *cli.Command {
	var server string
	var limit int
	var sources bool
	cmd := cli.NewCommand("list [flags]", "List the tools of the catalogue",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, _ []string) error {
			if sources {
				return a.listSources(ctx, folder)
			}
			found, err := toolbox.ListOp.Call(ctx, folder, toolbox.ListRequest{Server: server, Limit: limit}, nil)
			if err != nil {
				return err
			}
			if server != "" && !slices.Contains(found.Servers, server) && len(found.Servers) > 0 {
				names := slices.DeleteFunc(slices.Clone(found.Servers), func(name string) bool { return term.Plain(name) == "" })
				if len(names) > maxServers {
					names = append(names[:maxServers], "…")
				}
				return fmt.Errorf("no server %q in the catalogue, want one of {%s}", server, term.Plain(strings.Join(names, ",")))
			}
			list, total := found.Tools, found.Total
			return a.Out.Print(map[string]any{"tools": list, "total": total}, func() { a.Out.Tools(list, total) })
		}))
	cmd.Flags().StringVar(&server, "server", "", "only the tools of this server")
	cmd.Flags().IntVar(&limit, "limit", 0, "most tools to list (default: all)")
	cmd.Flags().BoolVar(&sources, "sources", false, "list the imported sources instead")
	return cmd
}

// maxServers bounds the names of servers in an error.
const maxServers = 20

func (a *app) listSources(ctx context.Context, folder *owner.Folder) error {
	known, err := toolbox.StatsOp.Call(ctx, folder, struct{}{}, nil)
	if err != nil {
		return err
	}
	sources := known.Sources
	return a.Out.Print(map[string]any{"sources": sources}, func() {
		for _, s := range sources {
			a.Out.Printf("%s\n", term.Plain(s))
		}
		if len(sources) == 0 {
			a.Out.EmptyCatalogue()
		}
	})
}

func (a *app) toolsShowCommand() *cli.Command {
	return cli.NewCommand("show NAME", "Show a tool with its parameters and the tools used with it",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			t, err := toolbox.LookupOp.Call(ctx, folder, args[0], nil)
			if err != nil {
				return err
			}
			var related []graphrank.Scored
			err = new(toolbox.Graph).Read(ctx, folder, func(g *graphrank.Graph) {
				related = g.Related(t.ID, 5)
			})
			if err != nil {
				return err
			}
			return a.Out.Print(t, func() { a.Out.Tool(&t, related) })
		}))
}

func (a *app) toolsSearchCommand() *cli.Command {
	limit := toolsearch.DefaultLimit
	var inUse []string
	var explain bool
	var wait time.Duration
	cmd := cli.NewCommand("search [flags] QUERY", "Search the catalogue for tools by what they do",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return cli.BadUsage("want a QUERY, such as \"open an issue\"")
			}
			inUse, err := toolIDs(ctx, folder, inUse)
			if err != nil {
				return err
			}
			if err := a.prepareTools(ctx, folder, wait); err != nil {
				return err
			}
			q := toolsearch.Query{Text: args[0], Limit: limit, Explain: explain, ContextTools: inUse}
			found, err := toolbox.SearchOp.Call(ctx, folder, q, nil)
			if err == nil {
				a.Found(len(found.Tools) > 0)
			}
			return term.Show(a.Out, (*term.Output).FoundTools)(found, err)
		}))
	cmd.Flags().VarP(cli.Bounded(&limit, 1, toolsearch.MaxLimit), "limit", "n", "most tools to list")
	cmd.Flags().StringSliceVar(&inUse, "context", nil, "tools in use; tools used with them rank higher")
	addWait(cmd, &wait)
	cmd.Flags().BoolVar(&explain, "explain", false, "show the components of each score")
	a.AddModel(cmd)
	return a.Searches(cmd)
}

// toolIDs returns the IDs of the named tools.
func toolIDs(ctx context.Context, folder *owner.Folder, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		t, err := toolbox.LookupOp.Call(ctx, folder, name, nil)
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}

// addWait adds the flag that bounds the wait for vectors.
func addWait(cmd *cli.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", 30*time.Second, "longest wait for missing vectors before a search by keyword")
}

// minWordsShown and minToolsShown are the least numbers of tools with whose words and vectors
// the command shows its progress. With fewer tools the answer comes as soon.
const minWordsShown, minToolsShown = 2000, 100

// prepareTools makes missing vectors for at most wait. Without them searches are by keyword.
func (a *app) prepareTools(ctx context.Context, folder *owner.Folder, wait time.Duration) error {
	p, err := cli.WithProgress(a.App, func(bar *term.Progress) (*toolbox.Prepared, error) {
		return toolbox.PrepareOp.Call(ctx, folder, wait, func(step job.Progress) {
			if step.Total >= minToolsShown && (step.Phase != toolsearch.KeywordsPhase || step.Total >= minWordsShown) {
				bar.Show(step)
			}
		})
	})
	switch {
	case err != nil:
		return err
	case p.TimedOut:
		a.Out.Notes.Printf("answering after %s with the vectors made so far; `cairn tools import` or a longer --wait makes the rest\n", wait)
	case p.Failure != "":
		a.Out.Notes.Warn("searches answer by keyword alone: %s", p.Failure)
	}
	return nil
}
