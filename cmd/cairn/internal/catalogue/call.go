package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/usage"
	"cairn/tools"
	"cairn/tools/gateway"
)

func (a *app) callCommand() *cli.Command {
	var timeout time.Duration
	cmd := cli.NewCommand("call [flags] TOOL [JSON]", "Call a tool of a server of cairn tools add",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			_, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			if err := g.Store().Sync(ctx, folder); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			arguments := json.RawMessage(strings.Join(args[1:], ""))
			p := &tools.Proxy{Box: folder, Gateway: g, Masks: cfg.Masks()}
			called, err := p.Call(ctx, args[0], arguments, 0, a.person())
			if f, ok := errors.AsType[*tools.Failure](err); ok {
				return a.callFailure(f)
			} else if err != nil {
				return err
			}
			if cfg.Usage.Record {
				trace := usage.Trace{Calls: []usage.Call{{Tool: called.Tool, Success: new(!called.IsError), Arguments: arguments}}}
				if _, err := toolbox.LearnOp.Call(ctx, folder, []usage.Trace{trace}, nil); err != nil {
					return err
				}
			}
			if called.IsError {
				return errors.New(called.Text)
			}
			return a.Out.Print(called, func() { a.Out.Printf("%s\n", called.Text) })
		}))
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "longest wait for the server")
	return cmd
}

// person returns the user at the terminal as the client of a call.
func (a *app) person() gateway.Peer {
	p := gateway.Peer{Name: "cairn call"}
	if a.Asks() {
		p.Confirm = func(_ context.Context, question string) (bool, error) { return a.Agrees(question) }
	}
	return p
}

// callFailure returns a failure as an error for a person.
func (a *app) callFailure(f *tools.Failure) error {
	for _, key := range []string{"nearest", "example"} {
		if value, ok := f.Data[key]; ok {
			text, err := json.Marshal(value)
			if err != nil {
				return err // unreachable: the values are plain
			}
			a.Out.Notes.Printf("%s: %s\n", key, text)
		}
	}
	if name, ok := f.Data["name"].(string); ok {
		return fmt.Errorf("no tool %q", name)
	}
	return errors.New(strings.TrimPrefix(f.Message, "Invalid params: "))
}
