package catalogue

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/suggest"
)

func (a *app) suggestCommand() *cli.Command {
	var tools, inUse []string
	var most int
	var mermaid, dot bool
	var wait time.Duration
	cmd := cli.NewCommand("suggest [flags] [INTENT]", "Plan which tools of the catalogue serve an intent",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			r := suggest.Request{Intent: strings.Join(args, ""), MaxTools: most}
			if strings.TrimSpace(r.Intent) == "" && len(tools) == 0 {
				return cli.BadUsage("want an INTENT, or --tools")
			}
			var err error
			if r.Tools, err = toolIDs(ctx, folder, tools); err != nil {
				return err
			}
			if r.ContextTools, err = toolIDs(ctx, folder, inUse); err != nil {
				return err
			}
			if err := a.prepareTools(ctx, folder, wait); err != nil {
				return err
			}
			known, err := toolbox.StatsOp.Call(ctx, folder, struct{}{}, nil)
			if err != nil {
				return err
			}
			return term.Show(a.Out, func(o *term.Output, s *suggest.Suggestion) {
				switch {
				case known.Tools == 0:
					o.EmptyCatalogue()
				case mermaid:
					o.Printf("%s", term.PlanGraph(s, toolTitle(ctx, folder)).Mermaid())
				case dot:
					o.Printf("%s", term.PlanGraph(s, toolTitle(ctx, folder)).DOT())
				default:
					o.Plan(s, func(id string) string {
						t, _ := toolbox.LookupOp.Call(ctx, folder, id, nil) // the plan is useful without it
						return cmp.Or(t.Title, t.Description)
					})
				}
			})(toolbox.SuggestOp.Call(ctx, folder, r, nil))
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&tools, "tools", nil, "order these tools instead of choosing tools")
	fs.StringSliceVar(&inUse, "context", nil, "tools in use")
	cli.IntVar(fs, &most, "max-tools", suggest.DefaultMaxTools, 1, suggest.MaxTools, "most tools to choose; their prerequisites are added")
	addWait(cmd, &wait)
	fs.BoolVar(&mermaid, "mermaid", false, "print a Mermaid flowchart")
	fs.BoolVar(&dot, "dot", false, "print a graph in DOT, for Graphviz")
	cmd.MarkFlagsMutuallyExclusive("mermaid", "dot")
	a.AddModel(cmd)
	return cmd
}
