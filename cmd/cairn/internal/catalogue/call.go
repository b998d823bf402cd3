package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/planrun"
	"cairn/internal/toolbox/usage"
	"cairn/tools"
	"cairn/tools/gateway"
)

func (a *app) callCommand() *cli.Command {
	var timeout time.Duration
	cmd := cli.NewCommand("call [flags] TOOL [JSON]", "Call a tool of a server of cairn tools add",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			p, record, err := a.proxy(ctx, folder, g)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			arguments := json.RawMessage(strings.Join(args[1:], ""))
			called, err := p.Call(ctx, args[0], arguments, 0, a.person("cairn call"))
			if err != nil {
				return a.callFailure(err)
			}
			err = record(usage.Trace{Calls: []usage.Call{{Tool: called.Tool, Success: new(!called.IsError), Arguments: arguments}}})
			if err != nil {
				return err
			}
			if called.IsError {
				return errors.New(called.Text)
			}
			return a.Out.Print(called, func() { a.Out.Printf("%s\n", called.Text) })
		}))
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "longest wait for the server")
	return cmd
}

// proxy returns a proxy to the servers, whose tools it brings up to date, and a function that
// learns from calls unless the user has turned that off.
func (a *app) proxy(ctx context.Context, folder *owner.Folder, g *gateway.Gateway) (*tools.Proxy, func(usage.Trace) error, error) {
	sel, cfg, err := a.Choose()
	if err == nil {
		err = g.Store().Sync(ctx, folder)
	}
	if err != nil {
		return nil, nil, err
	}
	place, err := home.Of(sel.Root)
	record := func(t usage.Trace) error {
		if !cfg.Usage.Record || len(t.Calls) == 0 {
			return nil
		}
		_, err := toolbox.LearnOp.Call(ctx, folder, []usage.Trace{t}, nil)
		return err
	}
	return &tools.Proxy{Box: folder, Gateway: g, Masks: cfg.Masks(), Records: planrun.Folder(place)}, record, err
}

// person returns the user at the terminal as the client of the calls of a command.
func (a *app) person(command string) gateway.Peer {
	p := gateway.Peer{Name: command}
	if a.Asks() {
		p.Confirm = func(_ context.Context, question string) (bool, error) { return a.Agrees(question) }
	}
	return p
}

// callFailure returns an error for a person.
func (a *app) callFailure(err error) error {
	f, ok := errors.AsType[*tools.Failure](err)
	if !ok {
		return err
	}
	for _, key := range []string{"nearest", "example", "findings"} {
		if value, ok := f.Data[key]; ok {
			text, _ := json.Marshal(value) // never fails: the values are plain
			if string(text) != "[]" {
				a.Out.Notes.Printf("%s: %s\n", key, text)
			}
		}
	}
	name, named := f.Data["name"].(string)
	if several, ok := f.Data["candidates"].([]string); ok && named {
		return &catalog.AmbiguousError{Name: name, Candidates: several}
	} else if named {
		return fmt.Errorf("no tool %q", name)
	}
	return errors.New(strings.TrimPrefix(f.Message, "Invalid params: "))
}
