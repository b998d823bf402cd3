package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"cairn/internal/connect"
	"cairn/internal/term"
)

func (a *app) disconnectCommand() *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use:       "disconnect [CLIENT]",
		Short:     "Remove what cairn connect has written",
		ValidArgs: connect.Names(),
		RunE: a.command(func(_ context.Context, args []string) error {
			return a.disconnect(args, f)
		}),
	}
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
			return badUsage("%w", err)
		}
		config, err := a.dropped(c, p, f.name)
		if err != nil {
			if len(args) == 1 {
				return err
			}
			// The user need not know about files without an entry of cairn.
			if _, ok := errors.AsType[*connect.ForeignEntryError](err); !ok {
				a.stderr.Warn("%v", err)
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
	return a.print(did, func(w *term.Writer) {
		for _, r := range did {
			w.Printf("removed from %s\n", r.Path)
		}
		if len(did) == 0 {
			w.Printf("there is nothing of cairn to remove for this folder\n")
		}
	})
}

// dropped plans the removal of the client's entry.
func (a *app) dropped(c connect.Client, p connect.Place, name string) (*connect.Change, error) {
	path, err := configPath(c, p)
	if err != nil {
		return nil, err
	}
	return c.Drop(p.Root, path, name)
}

// drop makes the changes that the user agrees to. The guide stays while a client that
// reads it is connected.
func (a *app) drop(changes []*connect.Change, c connect.Client, p connect.Place, f connectFlags) ([]*connect.Result, error) {
	var did []*connect.Result
	for i, change := range changes {
		if i > 0 && a.guided(c, p) {
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

// guided reports whether a client that reads the guide of c is connected.
func (a *app) guided(c connect.Client, p connect.Place) bool {
	return slices.ContainsFunc(connect.Names(), func(name string) bool {
		o, err := connect.ByName(name)
		if err != nil || o.Guide != c.Guide {
			return false
		}
		path, err := configPath(o, p)
		return err == nil && o.Connected(p.Root, path)
	})
}
