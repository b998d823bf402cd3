package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

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
	cmd.Flags().StringVar(&intent, "intent", "", "the task in words, instead of that of the plan")
	addWait(cmd, &wait)
	a.AddModel(cmd)
	return cmd
}

// savedName matches the names of saved plans.
var savedName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// readPlan reads the plan in a file, or the saved plan of a name; "-" is the standard input.
func (a *app) readPlan(name string) (p plancheck.Plan, err error) {
	sel, err := a.Selection()
	if err != nil {
		return p, err
	}
	read := func(text []byte) (plancheck.Plan, error) { return plancheck.ReadPlan(text) }
	if savedName.MatchString(name) {
		name = filepath.Join(sel.Root, filepath.FromSlash(plancheck.Folder), name+".md")
	}
	if strings.HasSuffix(name, ".md") {
		read = func(text []byte) (plancheck.Plan, error) { return plancheck.ReadDocument(string(text)) }
	}
	f, err := a.Input(name)
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%w; name the file of a plan, or one saved in %s without its .md", err, plancheck.Folder)
	} else if err != nil {
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
	if p, err = read(b); err != nil {
		return p, fmt.Errorf("reading the plan in %s: %w", name, err)
	}
	return p, nil
}
