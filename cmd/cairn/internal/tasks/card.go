package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
	"cairn/internal/task/taskgraph"
)

func (a *app) cardCommand() *cli.Command {
	return cli.Group("card", "Manage task cards: Markdown files in .cairn/cards (or .cuedeck/cards)",
		a.cardNewCommand(), a.cardListCommand(), a.cardShowCommand(), a.cardEditCommand(), a.cardDoneCommand())
}

func (a *app) cardNewCommand() *cli.Command {
	var r cards.CreateRequest
	cmd := cli.NewCommand("new [flags] TITLE...", "Create a card",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			var err error
			if r.DependsOn, err = fullIDs(t, r.DependsOn); err != nil {
				return err
			}
			r.Title = strings.Join(args, " ")
			return term.Show(a.Out, func(o *term.Output, made *cards.CreateAnswer) { o.Printf("%s  %s\n", made.ID, made.Path) })(t.Cards.Create(ctx, r))
		}))
	cmd.Flags().StringVar(&r.Priority, "priority", "", "low, medium, high or critical (default medium)")
	cmd.Flags().StringVar(&r.Assignee, "assignee", "", "person who does the work")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "tag; may be repeated")
	cmd.Flags().StringSliceVar(&r.DependsOn, "depends-on", nil, "ID of a card that must be done first; may be repeated")
	return cmd
}

func (a *app) cardListCommand() *cli.Command {
	var r cards.ListRequest
	cmd := cli.NewCommand("list [flags]", "List cards, the most urgent first",
		a.WithTasks(func(_ context.Context, t *workspace.Tasks, _ []string) error {
			open, all := r.Status == "", r.Status == "all"
			if all {
				r.Status = ""
			}
			list, unusable, err := t.Cards.List(r)
			if open {
				list = slices.DeleteFunc(list, func(c cards.ListItem) bool { return c.Status != "todo" && c.Status != "active" })
			}
			if len(unusable) > 0 {
				a.Out.Notes.Warn("left out files that cannot be read as cards: %d, such as %s; `cairn doctor` says why", len(unusable), unusable[0].Path)
			}
			return term.Show(a.Out, (*term.Output).Cards)(list, err)
		}))
	cmd.Flags().StringVar(&r.Status, "status", "", "todo, active, done, archived or all (default: todo and active)")
	cmd.Flags().StringVar(&r.Assignee, "assignee", "", "only cards of this person")
	cmd.Flags().StringVar(&r.Priority, "priority", "", "only cards of this priority")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "only cards with one of these tags")
	cmd.Flags().StringVar(&r.Created, "created", "", `only cards created on a day or within a time, such as 2026-01-15 or 3d; "<3d" for earlier ones`)
	cmd.Flags().StringVar(&r.Updated, "updated", "", "only cards changed on a day or within a time, as for --created")
	return cmd
}

func (a *app) cardShowCommand() *cli.Command {
	return a.completing(cli.NewCommand("show ID", "Show a card, the cards it waits for and the cards that wait for it",
		a.withCards(func(_ context.Context, t *workspace.Tasks, ids []string) error {
			return term.Show(a.Out, (*term.Output).Card)(showCard(t, ids[0]))
		})))
}

// withCards opens the folder's tasks for fn. The arguments are IDs of cards, or the beginnings
// of IDs.
func (a *app) withCards(fn func(context.Context, *workspace.Tasks, []string) error) func(*cli.Command, []string) error {
	return a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		ids, err := fullIDs(t, args)
		if err != nil {
			return err
		}
		return fn(ctx, t, ids)
	})
}

// fullIDs replaces each name that is the beginning of only one card's ID by the ID. It returns
// an error for the beginning of several.
func fullIDs(t *workspace.Tasks, names []string) ([]string, error) {
	if len(names) == 0 {
		return names, nil
	}
	board, err := t.Cards.Board()
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(names)
	for i, name := range names {
		if _, ok := board.Card(name); ok || name == "" {
			continue
		}
		switch found := board.Beginning(name); {
		case len(found) == 1:
			ids[i] = found[0].ID
		case len(found) > 1:
			return nil, cli.BadUsage("the IDs of %d cards begin with %s, such as %s and %s", len(found), name, found[0].ID, found[1].ID)
		}
	}
	return ids, nil
}

// completing completes the arguments of cmd to the IDs of cards.
func (a *app) completing(cmd *cli.Command) *cli.Command {
	cmd.ValidArgsFunction = a.Completion(func(_ context.Context, t *workspace.Tasks, typed string) (ids []string) {
		board, err := t.Cards.Board()
		if err != nil {
			return nil
		}
		for _, c := range board.Beginning(typed) {
			ids = append(ids, c.ID+"\t"+term.Plain(c.Title))
		}
		return ids
	})
	return cmd
}

func showCard(t *workspace.Tasks, id string) (*term.Card, error) {
	needs, err := t.Cards.Dependencies(cards.DependenciesRequest{ID: id})
	if err != nil {
		return nil, err
	}
	needed, err := t.Cards.Dependencies(cards.DependenciesRequest{ID: id, Reverse: true})
	if err != nil {
		return nil, err
	}
	board, err := t.Cards.Board()
	if err != nil {
		return nil, err
	}
	c, ok := board.Card(id)
	if !ok {
		return nil, fmt.Errorf("another process has removed card %s", id)
	}
	text := []byte(c.Body)
	if filepath.IsAbs(c.Path) { // a task of Claude Code
		return term.NewCard(c, needs, needed, text), nil
	}
	if text, err = t.Text(c.Path); err != nil {
		return nil, err
	}
	return term.NewCard(c, needs, needed, text), nil
}

// editFlags maps the flags of card edit to the fields they change.
var editFlags = map[string]struct{ field, usage string }{
	"title":      {"title", "new title"},
	"status":     {"status", "todo, active, done or archived"},
	"priority":   {"priority", "low, medium, high or critical"},
	"assignee":   {"assignee", "person who does the work; empty for none"},
	"notes":      {"notes", "short note; empty for none"},
	"tag":        {"tags", "new tags; empty for none"},
	"depends-on": {"depends_on", "new IDs of the cards that must be done first; empty for none"},
}

func (a *app) cardEditCommand() *cli.Command {
	cmd := cli.NewCommand("edit [flags] ID", "Change a card; without flags, open it in $VISUAL or $EDITOR", nil)
	flags := cmd.Flags()
	for name, f := range editFlags {
		if f.field == "tags" || f.field == "depends_on" {
			flags.StringSlice(name, nil, f.usage)
		} else {
			flags.String(name, "", f.usage)
		}
	}
	cmd.RunE = a.withCards(func(ctx context.Context, t *workspace.Tasks, ids []string) error {
		updates := map[string]json.RawMessage{}
		for name, f := range editFlags {
			if !flags.Changed(name) {
				continue
			}
			var value any
			if list, err := flags.GetStringSlice(name); err == nil {
				if f.field == "depends_on" {
					if list, err = fullIDs(t, list); err != nil {
						return err
					}
				}
				value = append([]string{}, list...)
			} else {
				value, _ = flags.GetString(name)
			}
			updates[f.field], _ = json.Marshal(value) // never fails: strings marshal
		}
		if len(updates) == 0 {
			return a.openCard(ctx, t, ids[0])
		}
		return term.Show(a.Out, func(o *term.Output, done *cards.UpdateAnswer) {
			o.Printf("%s  %s\n", done.ID, cmp.Or(strings.Join(done.UpdatedFields, ", "), "nothing changed"))
		})(t.Cards.Update(ctx, cards.UpdateRequest{ID: ids[0], Updates: updates}))
	})
	return a.completing(cmd)
}

func (a *app) openCard(ctx context.Context, t *workspace.Tasks, id string) error {
	path, err := t.Cards.Path(id)
	if err != nil {
		return err
	}
	if _, err := t.Text(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no card %s", id)
	} else if err != nil {
		return err
	}
	editor, err := cli.Editor("change the card with a flag")
	if err != nil {
		return err
	}
	sel, err := a.Selection()
	if err != nil {
		return err
	}
	return a.Edit(ctx, editor, filepath.Join(sel.Root, filepath.FromSlash(path)), 1)
}

func (a *app) cardDoneCommand() *cli.Command {
	return a.completing(cli.NewCommand("done ID...", "Set cards done, and list the cards that can start now",
		a.withCards(func(ctx context.Context, t *workspace.Tasks, ids []string) error {
			ready := func() []string {
				return t.Graph.Ready(ctx, taskgraph.ReadyRequest{ChannelID: taskgraph.CardsChannel, Limit: new(float64(100))}).ReadyTasks
			}
			before := ready()
			updates := map[string]json.RawMessage{"status": json.RawMessage(`"done"`)}
			done := []*cards.UpdateAnswer{}
			for _, id := range ids {
				answer, err := t.Cards.Update(ctx, cards.UpdateRequest{ID: id, Updates: updates})
				if err != nil {
					return err
				}
				done = append(done, answer)
			}
			started := slices.DeleteFunc(ready(), func(id string) bool { return slices.Contains(before, id) })
			board, err := t.Cards.Board()
			if err != nil {
				return err
			}
			return a.Out.Print(map[string]any{"done": done, "unblocked": append([]string{}, started...)}, func() {
				for _, d := range done {
					a.Out.Printf("%s  done  %s\n", d.ID, term.Cut(term.Plain(d.Title), 66))
				}
				for _, id := range started {
					if c, ok := board.Card(id); ok {
						a.Out.Printf("%s  can start now  %s\n", id, term.Cut(term.Plain(c.Title), 57))
					}
				}
			})
		})))
}
