package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/finder"
	"cairn/internal/markdown"
	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) openCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "open [WORD...]",
		Short: "Find a file, heading or card by typing, and open it in $VISUAL or $EDITOR",
		Long: `Find a file, heading or card by typing, with a preview, and open it at its line in
$VISUAL or $EDITOR. WORDs narrow the list from the start.`,
		Example: `  cairn open
  cairn open rotate token
  cairn open --list`,
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			places, err := placesOf(ctx, t)
			if err != nil {
				return err
			}
			if list || a.json {
				return a.print(places, func(w *term.Writer) {
					for _, p := range places {
						w.Printf("%s:%d\t%s\t%s\n", term.Plain(p.Path), p.Line, p.Kind, p.Text)
					}
				})
			}
			return a.find(ctx, t, places, strings.Join(args, " "))
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the places instead")
	return cmd
}

func (a *app) find(ctx context.Context, t *workspace.Tasks, places []finder.Place, words string) error {
	if !a.stdout.IsTerminal() {
		return badUsage("cairn open needs a terminal; --list prints the places")
	}
	editor := finder.Editor()
	if len(editor) == 0 {
		return badUsage("set EDITOR to the program that opens files, such as EDITOR=vim")
	}
	m := finder.New(places, func(p finder.Place) string { return previewOf(t, p) })
	m.Narrow(words)
	p, err := finder.Run(m)
	if err != nil || p == nil {
		return err
	}
	sel, err := a.selection()
	if err != nil {
		return err
	}
	return a.startProgram(ctx, finder.OpenAt(editor, filepath.Join(sel.Root, filepath.FromSlash(p.Path)), p.Line))
}

// startProgram runs another program on the streams of this one.
func (a *app) startProgram(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout.Raw(), a.stderr.Raw()
	return cmd.Run()
}

// placesOf lists cards by title, then files, each followed by its headings.
func placesOf(ctx context.Context, t *workspace.Tasks) ([]finder.Place, error) {
	board, err := t.Cards.Board()
	if err != nil {
		return nil, err
	}
	places := []finder.Place{}
	cards := map[string]bool{}
	for _, c := range board.Cards {
		cards[c.Path] = true
		places = append(places, finder.Place{Kind: "card", Path: c.Path, Line: 1, Text: term.Plain(c.ID + " " + c.Title)})
	}
	paths, err := t.Paths(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if cards[path] {
			continue
		}
		text, err := t.Text(path)
		if err != nil {
			continue // removed, or not readable
		}
		places = append(places, finder.Place{Kind: "file", Path: path, Line: 1, Text: term.Plain(path)})
		for _, s := range markdown.Parse(path, text, nil).Sections {
			if s.Level > 0 {
				places = append(places, finder.Place{Kind: "heading", Path: path, Line: s.StartLine, Text: term.Plain(path + " > " + strings.Join(s.Trail, " > "))})
			}
		}
	}
	return places, ctx.Err()
}

// previewOf returns the text from a place on.
func previewOf(t *workspace.Tasks, p finder.Place) string {
	text, err := t.Text(p.Path)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[min(p.Line-1, len(lines)):], "")
}
