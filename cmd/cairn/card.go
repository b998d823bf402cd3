package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cairn/internal/task/cards"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

func (a *app) cardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "card",
		Short: "Keep task cards: Markdown files in .cairn/cards (or .cuedeck/cards)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cardNewCommand(), a.cardListCommand(), a.cardShowCommand(), a.cardEditCommand(), a.cardDoneCommand())
	return cmd
}

// withTasks opens the folder's tasks for fn.
func (a *app) withTasks(fn func(context.Context, *workspace.Tasks, []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) error {
		sel, cfg, err := a.choose()
		if err != nil {
			return err
		}
		t, err := workspace.OpenTasks(sel, cfg, &workspace.TaskOptions{Person: true})
		if err != nil {
			return err
		}
		return errors.Join(cardError(fn(ctx, t, args)), t.Close())
	})
}

// cardError says what to do about a refusal of the cards.
func cardError(err error) error {
	bad, ok := errors.AsType[*cards.Error](err)
	if !ok {
		return err
	}
	text := strings.TrimPrefix(bad.Message, "Invalid params: ")
	if path, ok := bad.Data["cycle_path"].([]string); ok {
		text += ": " + strings.Join(path, " → ")
	} else if id, ok := bad.Data["id"].(string); ok && !strings.Contains(text, id) {
		text += ": " + id
	}
	if bad.Code == cards.CodeInvalidParams {
		return badUsage("%s", text)
	}
	return errors.New(text)
}

func (a *app) cardNewCommand() *cobra.Command {
	var r cards.CreateRequest
	cmd := &cobra.Command{
		Use:     "new [flags] TITLE...",
		Short:   "Create a card",
		Example: `  cairn card new "Implement login API" --priority high --depends-on abc123`,
		Args:    cobra.MinimumNArgs(1),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			r.Title = strings.Join(args, " ")
			made, err := t.Cards.Create(ctx, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(made)
			}
			fmt.Fprintf(a.stdout, "%s  %s\n", made.ID, made.Path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&r.Priority, "priority", "", "low, medium, high or critical (default medium)")
	cmd.Flags().StringVar(&r.Assignee, "assignee", "", "who does it")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "tag; may be given several times")
	cmd.Flags().StringSliceVar(&r.DependsOn, "depends-on", nil, "id of a card to be done first; may be given several times")
	return cmd
}

func (a *app) cardListCommand() *cobra.Command {
	var r cards.ListRequest
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List cards, the most urgent first",
		Args:  cobra.NoArgs,
		RunE: a.withTasks(func(_ context.Context, t *workspace.Tasks, _ []string) error {
			open, all := r.Status == "", r.Status == "all"
			if all {
				r.Status = ""
			}
			list, err := t.Cards.List(r)
			if err != nil {
				return err
			}
			if open {
				list = slices.DeleteFunc(list, func(c cards.ListItem) bool { return c.Status != "todo" && c.Status != "active" })
			}
			if a.json {
				return a.printJSON(list)
			}
			rows := [][]string{}
			for _, c := range list {
				tail := plain(c.Title)
				if c.Assignee != nil {
					tail += "  " + plain(*c.Assignee)
				}
				rows = append(rows, []string{c.ID, c.Status, c.Priority, tail})
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.stderr, "no cards match; make one with `cairn card new`")
			}
			a.rows(rows)
			return nil
		}),
	}
	cmd.Flags().StringVar(&r.Status, "status", "", "todo, active, done, archived or all (default: todo and active)")
	cmd.Flags().StringVar(&r.Assignee, "assignee", "", "only those of this person")
	cmd.Flags().StringVar(&r.Priority, "priority", "", "only those of this priority")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "only those with one of these tags")
	cmd.Flags().StringVar(&r.Created, "created", "", `only those created then, such as 2026-01-15, "<3d" or ">2w"`)
	cmd.Flags().StringVar(&r.Updated, "updated", "", "only those changed then")
	return cmd
}

// columns is how wide a table may be: what the terminal has, and minWidth
// where there is none.
func (a *app) columns() int {
	if s := styleOf(a.stdout); s.colour {
		return s.width
	}
	return minWidth
}

// rows prints columns that line up; the first is bold, the last is cut to the width.
func (a *app) rows(rows [][]string) {
	s, width := styleOf(a.stdout), a.columns()
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		used := 0
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(cut(cell, max(width-used, 8)))
				break
			}
			text := cell
			if i == 0 {
				text = s.paint(bold, cell)
			}
			gap := widths[i] - utf8.RuneCountInString(cell) + 2
			b.WriteString(text + strings.Repeat(" ", gap))
			used += widths[i] + 2
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(b.String(), " "))
	}
}

// shownCard is a card with what it waits for and what waits for it.
type shownCard struct {
	ID        string          `json:"id"`
	Path      string          `json:"path"`
	Title     string          `json:"title"`
	Status    string          `json:"status"`
	Priority  string          `json:"priority"`
	Assignee  string          `json:"assignee,omitempty"`
	Tags      []string        `json:"tags,omitempty"`
	Notes     string          `json:"notes,omitempty"`
	Created   string          `json:"created,omitempty"`
	DependsOn []cards.TaskRef `json:"depends_on"`
	Missing   []string        `json:"missing,omitempty"`
	Needed    []cards.TaskRef `json:"needed_by"`
	Problems  []cards.Problem `json:"problems,omitempty"`
	Body      string          `json:"body"`
}

func (a *app) cardShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a card with what it waits for and what waits for it",
		Args:  cobra.ExactArgs(1),
		RunE: a.withTasks(func(_ context.Context, t *workspace.Tasks, args []string) error {
			c, err := showCard(t, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			s := styleOf(a.stdout)
			fmt.Fprintf(a.stdout, "%s  %s\n", s.paint(bold, c.ID), cut(plain(c.Title), minWidth-8))
			row := func(name, text string) {
				if text != "" {
					fmt.Fprintf(a.stdout, "  %-11s %s\n", name, plain(text))
				}
			}
			row("status", c.Status+", "+c.Priority)
			row("assignee", c.Assignee)
			row("tags", strings.Join(c.Tags, ", "))
			row("notes", c.Notes)
			row("created", c.Created)
			row("file", c.Path)
			for _, d := range c.DependsOn {
				row("waits for", d.ID+" "+d.Status+"  "+d.Title)
			}
			for _, id := range c.Missing {
				row("waits for", id+" (there is no such card)")
			}
			for _, d := range c.Needed {
				row("needed by", d.ID+" "+d.Status+"  "+d.Title)
			}
			for _, p := range c.Problems {
				row("problem", p.Message)
			}
			if c.Body != "" {
				fmt.Fprintln(a.stdout)
			}
			for line := range strings.Lines(c.Body) {
				fmt.Fprintln(a.stdout, cut(strings.TrimRight(line, "\r\n"), 1<<20))
			}
			return nil
		}),
	}
}

func showCard(t *workspace.Tasks, id string) (*shownCard, error) {
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
		return nil, fmt.Errorf("card %s was removed meanwhile", id)
	}
	text, err := t.Text(c.Path)
	if err != nil {
		return nil, err
	}
	return &shownCard{
		ID: c.ID, Path: c.Path, Title: c.Title, Status: c.Status.CardWord(), Priority: c.Priority, Assignee: c.Assignee, Tags: c.Tags,
		Notes: c.Notes, Created: c.CreatedText, DependsOn: needs.Tasks, Missing: needs.Missing, Needed: needed.Tasks, Problems: c.Problems, Body: body(text),
	}, nil
}

// body is a card's text below its front matter.
func body(text []byte) string {
	if rest, ok := bytes.CutPrefix(text, []byte("---")); ok {
		if _, after, found := bytes.Cut(rest, []byte("\n---")); found {
			_, text, _ = bytes.Cut(after, []byte("\n"))
		}
	}
	return strings.TrimSpace(string(text))
}

func (a *app) cardEditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit [flags] ID",
		Short: "Change a card; without flags, open it in $VISUAL or $EDITOR",
		Args:  cobra.ExactArgs(1),
	}
	fs := cmd.Flags()
	for name, what := range map[string]string{
		"title": "new title", "status": "todo, active, done or archived", "priority": "low, medium, high or critical",
		"assignee": "who does it; empty for nobody", "notes": "short note; empty for none",
	} {
		fs.String(name, "", what)
	}
	fs.StringSlice("tag", nil, "its tags from now on; empty for none")
	fs.StringSlice("depends-on", nil, "ids of the cards to be done first from now on; empty for none")
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		updates := map[string]json.RawMessage{}
		for flag, key := range map[string]string{
			"title": "title", "status": "status", "priority": "priority", "assignee": "assignee", "notes": "notes", "tag": "tags", "depends-on": "depends_on",
		} {
			if !fs.Changed(flag) {
				continue
			}
			var value any
			value, _ = fs.GetString(flag)
			if key == "tags" || key == "depends_on" {
				list, _ := fs.GetStringSlice(flag)
				value = append([]string{}, list...)
			}
			text, err := json.Marshal(value)
			if err != nil {
				return err // unreachable: strings marshal
			}
			updates[key] = text
		}
		if len(updates) == 0 {
			return a.openEditor(ctx, t, args[0])
		}
		done, err := t.Cards.Update(ctx, cards.UpdateRequest{ID: args[0], Updates: updates})
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(done)
		}
		changed := strings.Join(done.UpdatedFields, ", ")
		if changed == "" {
			changed = "nothing changed"
		}
		fmt.Fprintf(a.stdout, "%s  %s\n", done.ID, changed)
		return nil
	})
	return cmd
}

func (a *app) openEditor(ctx context.Context, t *workspace.Tasks, id string) error {
	path, err := t.Cards.Path(id)
	if err != nil {
		return err
	}
	if _, err := t.Text(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no card %s", id)
	} else if err != nil {
		return err
	}
	words := strings.Fields(os.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(os.Getenv("EDITOR"))
	}
	if len(words) == 0 {
		return badUsage("nothing to change: give a flag, or set EDITOR to open the card")
	}
	sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], filepath.Join(sel.Root, filepath.FromSlash(path)))...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, raw(a.stdout), raw(a.stderr)
	return cmd.Run()
}

func (a *app) cardDoneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "done ID...",
		Short: "Set cards done, and say what can start now",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			ready := func() []string {
				most := float64(100)
				return t.Graph.Ready(ctx, taskgraph.ReadyRequest{ChannelID: taskgraph.CardsChannel, Limit: &most}).ReadyTasks
			}
			before := ready()
			updates := map[string]json.RawMessage{"status": json.RawMessage(`"done"`)}
			done := []*cards.UpdateAnswer{}
			for _, id := range args {
				answer, err := t.Cards.Update(ctx, cards.UpdateRequest{ID: id, Updates: updates})
				if err != nil {
					return err
				}
				done = append(done, answer)
			}
			started := slices.DeleteFunc(ready(), func(id string) bool { return slices.Contains(before, id) })
			if a.json {
				return a.printJSON(map[string]any{"done": done, "unblocked": append([]string{}, started...)})
			}
			for _, d := range done {
				fmt.Fprintf(a.stdout, "%s  done  %s\n", d.ID, cut(plain(d.Title), minWidth-14))
			}
			board, err := t.Cards.Board()
			if err != nil {
				return err
			}
			for _, id := range started {
				if c, ok := board.Card(id); ok {
					fmt.Fprintf(a.stdout, "%s  can start now  %s\n", id, cut(plain(c.Title), minWidth-23))
				}
			}
			return nil
		}),
	}
}
