package catalogue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/plancheck"
)

// maxPlanFile bounds the file of a plan in bytes.
const maxPlanFile = 4 << 20

func (a *app) toolsVerifyCommand() *cli.Command {
	var intent string
	var wait time.Duration
	cmd := cli.NewCommand("verify [flags] FILE", "Check a plan of tool calls, and repair it",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			p, err := a.readPlan(args[0])
			if err != nil {
				return err
			}
			if intent != "" {
				p.Intent = intent
			}
			if err := a.prepareTools(ctx, folder, wait); err != nil {
				return err
			}
			return term.Show(a.Out, (*term.Output).PlanReport)(toolbox.CheckOp.Call(ctx, folder, p, nil))
		}))
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVar(&intent, "intent", "", "the task in words, instead of that of the plan")
	addWait(cmd, &wait)
	a.AddModel(cmd)
	return cmd
}

// readPlan reads the plan in a file; "-" is the standard input.
func (a *app) readPlan(name string) (p plancheck.Plan, err error) {
	f, err := a.Input(name)
	if err != nil {
		return p, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPlanFile+1))
	if err != nil {
		return p, err
	}
	if len(b) > maxPlanFile {
		return p, fmt.Errorf("%s is larger than %d bytes", name, maxPlanFile)
	}
	if p, err = plancheck.ReadPlan(b); err != nil {
		return p, fmt.Errorf("reading the plan in %s: %w", name, err)
	}
	return p, nil
}
