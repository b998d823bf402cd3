package agents

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/connect"
)

func (a *app) disconnectCommand() *cli.Command {
	var f connectFlags
	cmd := cli.NewCommand("disconnect [CLIENT]", "Remove what cairn connect has written",
		a.Command(func(_ context.Context, args []string) error {
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
				path, err := c.File(p)
				var at connect.File
				if err == nil {
					at, err = fileOf(p, path)
				}
				var config *connect.Change
				if err == nil {
					config, err = c.Drop(at, f.name)
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
				skill, skillErr := c.Skill(at, nil)
				hook, hookErr := c.Hook(at, "")
				guide, guideErr := c.DropGuide(p.Root)
				if err := cmp.Or(skillErr, hookErr, guideErr); err != nil {
					return err
				}
				removed, err := a.drop(config, skill, hook, guide, func() bool { return guideInUse(c, p) }, f)
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
		}))
	f.register(cmd)
	return cmd
}

// drop makes the changes that the user confirms: that of the configuration, with it those of
// the skill and the hook, and that of the guide unless another connected client reads it.
func (a *app) drop(config, skill, hook, guide *connect.Change, guideInUse func() bool, f connectFlags) (did []*connect.Result, err error) {
	write := func(change *connect.Change) error {
		r, err := change.Write()
		if err == nil && r != nil && r.Changed {
			did = append(did, r)
		}
		return err
	}
	if config, err = a.agreed(config, f); err != nil || config == nil {
		return nil, err
	}
	if err := errors.Join(write(config), write(skill), write(hook)); err != nil || guide == nil || guideInUse() {
		return did, err
	}
	if guide, err = a.agreed(guide, f); err == nil {
		err = write(guide)
	}
	return did, err
}

// guideInUse reports whether a client that reads the guide of c is connected.
func guideInUse(c connect.Client, p connect.Place) bool {
	return slices.ContainsFunc(connect.Names(), func(name string) bool {
		o, err := connect.ByName(name)
		if err != nil || o.Guide != c.Guide {
			return false
		}
		path, err := o.File(p)
		return err == nil && o.Connected(p.Root, path)
	})
}
