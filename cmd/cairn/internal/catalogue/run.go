package catalogue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/toolbox/planrun"
	"cairn/tools"
	"cairn/tools/gateway"
)

func (a *app) runCommand() *cli.Command {
	var o tools.RunOptions
	var set map[string]string
	cmd := cli.NewCommand("run [flags] PLAN", "Run a plan of calls of tools of cairn tools add",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			plan, err := a.readPlan(args[0])
			if err != nil {
				return err
			}
			for name, value := range set {
				if err := plan.Set(name, value); err != nil {
					return &cli.UsageError{Err: err}
				}
			}
			p, record, err := a.proxy(ctx, folder, g)
			if err != nil {
				return err
			}
			o.Progress = func(line string) { a.Out.Notes.Printf("%s\n", term.Plain(line)) }
			ran, err := p.Run(ctx, plan, o, a.person("cairn run"))
			if err != nil {
				return a.callFailure(err)
			}
			if err := record(ran.Trace); err != nil {
				return err
			}
			if err := a.Out.Print(ran, func() { a.ran(ran) }); err != nil {
				return err
			}
			if ran.State == planrun.Failed {
				return fmt.Errorf("the plan failed; its steps are in %s; --resume continues it", ran.Record)
			}
			return nil
		}))
	fs := cmd.Flags()
	fs.BoolVar(&o.DryRun, "dry-run", false, "check the plan and print its layers and permissions; run nothing")
	fs.BoolVar(&o.KeepGoing, "keep-going", false, "after a failed step run those that do not need it")
	fs.BoolVar(&o.Resume, "resume", false, "continue the last run of this plan")
	fs.BoolVar(&o.Restart, "restart", false, "run a plan again whose last run did not end")
	fs.StringSliceVar(&o.Repeat, "repeat", nil, "with --resume: steps to call again that may have run")
	fs.StringToStringVar(&set, "set", nil, "values of the plan's parameters, such as title=Notes")
	cmd.MarkFlagsMutuallyExclusive("resume", "restart")
	return cmd
}

// ran prints the steps of a dry run, and else what failed and the outputs of the last layer.
func (a *app) ran(ran *tools.Ran) {
	for _, s := range ran.Steps {
		if s.Error != "" {
			a.Out.Notes.Printf("%s: %s\n", term.Plain(s.ID), term.Plain(s.Error))
		}
		if s.Permission != "" {
			a.Out.Printf("%s  %s  %s\n", term.Plain(s.ID), term.Plain(s.Tool), s.Permission)
		} else if slices.Contains(ran.Layers[len(ran.Layers)-1], s.ID) && s.Output != "" {
			a.Out.Printf("%s\n", strings.TrimSuffix(s.Output, "\n"))
		}
	}
	for _, f := range ran.Findings {
		a.Out.Notes.Printf("%s: %s\n", f.Kind, term.Plain(f.Evidence))
	}
}
