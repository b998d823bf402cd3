package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/graphrank"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

func (a *app) toolsLearnCommand() *cli.Command {
	var skipBad bool
	cmd := cli.NewCommand("learn [--skip-bad] FILE...", "Learn from traces which tools are used together, and for what",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			var traces []usage.Trace
			bad := 0
			for _, name := range args {
				in, err := a.Input(name)
				if err != nil {
					return err
				}
				more, errs, err := usage.ReadTraces(in)
				if err = errors.Join(err, in.Close()); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				for _, e := range errs {
					if bad++; bad <= maxBadLines {
						a.Out.Notes.Printf("cairn: %s: %s\n", name, term.Plain(e.Error()))
					}
				}
				traces = append(traces, more...)
			}
			if bad > 0 && !skipBad {
				return fmt.Errorf("%s not a trace, nothing is learnt; see cairn tools learn --help, or leave such lines out with --skip-bad", is(bad, "line"))
			}
			unknown, err := toolbox.LearnOp.Call(ctx, folder, traces, nil)
			if err != nil {
				return err
			}
			known, err := toolbox.StatsOp.Call(ctx, folder, struct{}{}, nil)
			if err != nil {
				return err
			}
			state := known.Usage
			return a.Out.Print(map[string]any{"traces": len(traces), "skipped": bad, "unknown": append([]string{}, unknown...), "graph": state}, func() {
				if len(unknown) > 0 {
					a.Out.Notes.Warn("%s not that of one tool of the catalogue: %s", is(len(unknown), "name"), strings.Join(unknown[:min(len(unknown), 8)], ", "))
				}
				a.Out.Printf("learnt %s, skipped %s; the graph has %s and %s, the memory %s\n", view.Count(len(traces), "trace"), view.Count(bad, "line"),
					view.Count(state.Nodes, "node"), view.Count(state.Edges, "edge"), view.Count(state.Intents, "intent"))
			})
		}))
	cmd.Flags().BoolVar(&skipBad, "skip-bad", false, "report lines that are not traces, and learn the others")
	return cmd
}

// maxBadLines bounds the bad lines reported one by one.
const maxBadLines = 10

// is returns a number with its noun and verb.
func is(n int, one string) string {
	if n == 1 {
		return view.Count(n, one) + " is"
	}
	return view.Count(n, one) + " are"
}

func (a *app) toolsForgetCommand() *cli.Command {
	var before, source string
	var all bool
	cmd := &cli.Command{
		Use:   "forget NAME | --before DATE | --all | --source SOURCE",
		Short: "Forget how a tool was used, or remove the tools of a source",
		Args:  cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&before, "before", "", "forget what was last seen before this day, such as 2026-01-31")
	flags.StringVar(&source, "source", "", "remove the tools of this source")
	flags.BoolVar(&all, "all", false, "forget everything that was learnt; the catalogue stays")
	cmd.RunE = a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
		given := len(args)
		for _, flag := range []bool{before != "", source != "", all} {
			if flag {
				given++
			}
		}
		if given != 1 {
			return cli.BadUsage("want one of NAME, --before, --all and --source")
		}
		if source != "" {
			removed, err := toolbox.RemoveOp.Call(ctx, folder, source, nil)
			if err != nil {
				return err
			}
			return a.Out.Line(map[string]any{"source": source, "removed": removed}, "removed %s", view.Count(len(removed), "tool"))
		}
		r := toolbox.ForgetRequest{Name: strings.Join(args, ""), All: all}
		if before != "" {
			var err error
			if r.Before, err = time.ParseInLocation(time.DateOnly, before, time.Local); err != nil {
				return cli.BadUsage("--before %q: want a day such as 2026-01-31", before)
			}
		}
		return term.Show(a.Out, func(o *term.Output, f usage.Forgotten) {
			o.Printf("forgot %s and %s\n", view.Count(f.Edges, "edge"), view.Count(f.Intents, "intent"))
			if len(args) == 1 && f == (usage.Forgotten{}) {
				o.Notes.Printf("there is no usage of %q; `cairn tools graph` lists the tools with usage\n", term.Plain(args[0]))
			}
		})(toolbox.ForgetOp.Call(ctx, folder, r, nil))
	})
	return cmd
}

func (a *app) toolsGraphCommand() *cli.Command {
	var format, around string
	var limit int
	cmd := cli.NewCommand("graph [flags]", "Draw which tools and documents are used together",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, _ []string) error {
			a.Out.JSON = a.Out.JSON || format == "json"
			edges, err := usageEdges(ctx, folder, around)
			if err != nil {
				return err
			}
			return a.printUsage(edges, format, limit, toolTitle(ctx, folder))
		}))
	format = "text"
	cli.ChoiceVar(cmd.Flags(), &format, "format", "text, dot, mermaid or json", "dot", "json", "mermaid", "text")
	cmd.Flags().StringVar(&around, "around", "", "only edges of this tool, or of \"doc:\" and a document's path")
	cli.IntVar(cmd.Flags(), &limit, "limit", 100, 1, cli.NoBound, "most edges, the heaviest and most often seen first")
	return cmd
}

// usageEdges returns the edges, heaviest first. If around is not "", it returns only the edges
// of that node, or of the tool with that name.
func usageEdges(ctx context.Context, folder *owner.Folder, around string) ([]view.UsageEdge, error) {
	var tool catalog.Tool
	var unknown, missing error
	if around != "" {
		tool, unknown = toolbox.LookupOp.Call(ctx, folder, around, nil)
	}
	var edges []view.UsageEdge
	err := new(toolbox.Graph).Read(ctx, folder, func(g *graphrank.Graph) {
		if around != "" && !g.Has(around) {
			around, missing = tool.ID, unknown
		}
		edges = view.UsageEdges(g, around)
	})
	return edges, cmp.Or(err, missing)
}

// toolTitle returns a function that returns the title of a tool, "" if it has none.
func toolTitle(ctx context.Context, folder *owner.Folder) func(id string) string {
	return func(id string) string {
		t, err := toolbox.LookupOp.Call(ctx, folder, id, nil)
		if err != nil {
			return ""
		}
		return t.Title
	}
}

func (a *app) printUsage(all []view.UsageEdge, format string, limit int, title func(id string) string) error {
	edges := all[:min(len(all), limit)]
	return a.Out.Print(map[string]any{"edges": edges, "total": len(all)}, func() {
		switch format {
		case "dot":
			a.Out.Printf("%s", term.UsageGraph(edges, title).DOT())
		case "mermaid":
			a.Out.Printf("%s", term.UsageGraph(edges, title).Mermaid())
		default:
			for _, e := range edges {
				a.Out.Printf("%s -> %s  %s, %s, weight %.2f, count %.1f\n", term.Plain(e.From), term.Plain(e.To), e.Type, e.Source, e.Weight, e.Count)
			}
			if len(all) == 0 {
				a.Out.Notes.Printf("there is no usage yet; cairn learns it from traces (`cairn tools learn`) and from agents (`cairn mcp`)\n")
			}
		}
		if len(all) > len(edges) {
			a.Out.Notes.Printf("%d of %d edges\n", len(edges), len(all))
		}
	})
}
