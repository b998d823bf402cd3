package agents

import (
	"context"
	"errors"
	"slices"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/connect"
)

func (a *app) disconnectCommand() *cli.Command {
	var f connectFlags
	cmd := cli.NewCommand("disconnect [CLIENT]", "Remove what cairn connect has written",
		a.Command(func(_ context.Context, args []string) error { return a.disconnect(args, f) }))
	f.register(cmd)
	return cmd
}

func (a *app) disconnect(args []string, f connectFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	names := connect.Names()
	if len(args) == 1 {
		names = args
	}
	did := []*connect.Result{}
	for _, name := range names {
		c, err := connect.ByName(name)
		if err != nil {
			return cli.BadUsage("%w", err)
		}
		path, err := configPath(c, p)
		var config *connect.Change
		if err == nil {
			config, err = c.Drop(p.Root, path, f.name)
		}
		if err != nil {
			if len(args) == 1 {
				return err
			}
			// The user need not know about entries that are not cairn's.
			if _, ok := errors.AsType[*connect.ForeignEntryError](err); !ok {
				a.Out.Notes.Warn("%v", err)
			}
			continue
		}
		changes := []*connect.Change{config}
		if c.Guide != "" {
			guide, err := c.DropGuide(p.Root)
			if err != nil {
				return err
			}
			changes = append(changes, guide)
		}
		removed, err := a.drop(changes, c, p, f)
		if did = append(did, removed...); err != nil {
			return err
		}
	}
	return a.Out.Print(did, func() {
		for _, r := range did {
			a.Out.Printf("removed from %s\n", r.Path)
		}
		if len(did) == 0 {
			a.Out.Printf("no client has an entry of cairn for this folder\n")
		}
	})
}

// drop makes the changes that the user confirms: that of the configuration, and that of the
// guide unless another connected client reads the guide.
func (a *app) drop(changes []*connect.Change, c connect.Client, p connect.Place, f connectFlags) ([]*connect.Result, error) {
	var did []*connect.Result
	for i, change := range changes {
		if i > 0 && guideInUse(c, p) {
			break
		}
		change, err := a.agreed(change, f)
		if err != nil {
			return did, err
		}
		if change == nil {
			continue
		}
		r, err := change.Write()
		if err != nil {
			return did, err
		}
		if r.Changed {
			did = append(did, r)
		}
	}
	return did, nil
}

// guideInUse reports whether a client that reads the guide of c is connected.
func guideInUse(c connect.Client, p connect.Place) bool {
	return slices.ContainsFunc(connect.Names(), func(name string) bool {
		o, err := connect.ByName(name)
		if err != nil || o.Guide != c.Guide {
			return false
		}
		path, err := configPath(o, p)
		return err == nil && o.Connected(p.Root, path)
	})
}
