package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/finder"
	"cairn/internal/markdown"
	"cairn/internal/workspace"
)

func (a *app) openCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "open [WORD...]",
		Short: "Find a file, heading or card by typing, and open it in $VISUAL or $EDITOR",
		Long: `Find a file, heading or card by typing, with a preview, and open it at its line in
$VISUAL or $EDITOR. WORDs narrow the list down from the start.`,
		Example: `  cairn open
  cairn open rotate token
  cairn open --list`,
	}
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		return a.find(ctx, t, strings.Join(args, " "), list)
	})
	cmd.Flags().BoolVar(&list, "list", false, "print the places instead of asking")
	return cmd
}

func (a *app) find(ctx context.Context, t *workspace.Tasks, words string, list bool) error {
	places, err := placesOf(ctx, t)
	if err != nil {
		return err
	}
	if list || a.json {
		return a.printPlaces(places)
	}
	if !isTerminal(a.stdout) {
		return badUsage("cairn open needs a terminal; --list prints the places")
	}
	editor := editorOf()
	if len(editor) == 0 {
		return badUsage("set EDITOR to the program that opens files, such as EDITOR=vim")
	}
	m := finder.New(places, func(p finder.Place) string { return previewOf(t, p) })
	m.Narrow(words)
	p, err := finder.Run(m)
	if err != nil || p == nil {
		return err
	}
	sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
	if err != nil {
		return err
	}
	args := editorArgs(editor, filepath.Join(sel.Root, filepath.FromSlash(p.Path)), p.Line)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, raw(a.stdout), raw(a.stderr)
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
		places = append(places, finder.Place{Kind: "card", Path: c.Path, Line: 1, Text: plain(c.ID + " " + c.Title)})
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
			continue // gone, or closed to us
		}
		places = append(places, finder.Place{Kind: "file", Path: path, Line: 1, Text: plain(path)})
		for _, s := range markdown.Parse(path, text, nil).Sections {
			if s.Level > 0 {
				places = append(places, finder.Place{Kind: "heading", Path: path, Line: s.StartLine, Text: plain(path + " > " + strings.Join(s.Trail, " > "))})
			}
		}
	}
	return places, ctx.Err()
}

func (a *app) printPlaces(places []finder.Place) error {
	if a.json {
		type place struct {
			Kind string `json:"kind"`
			Path string `json:"path"`
			Line int    `json:"line"`
			Text string `json:"text"`
		}
		out := []place{}
		for _, p := range places {
			out = append(out, place(p))
		}
		return a.printJSON(out)
	}
	for _, p := range places {
		if _, err := fmt.Fprintf(a.stdout, "%s:%d\t%s\t%s\n", plain(p.Path), p.Line, p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// previewOf is the text from a place on.
func previewOf(t *workspace.Tasks, p finder.Place) string {
	text, err := t.Text(p.Path)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[min(p.Line-1, len(lines)):], "")
}

// editorOf is the user's editor with its arguments; nil when there is none.
func editorOf() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(os.Getenv(name)); len(words) > 0 {
			return words
		}
	}
	return nil
}

// editorArgs opens a file at a line, in the way of the editor as far as it is
// known; others open the file.
func editorArgs(editor []string, file string, line int) []string {
	args := append([]string{}, editor...)
	at := strconv.Itoa(line)
	switch name := strings.TrimSuffix(filepath.Base(editor[0]), ".exe"); name {
	case "code", "code-insiders", "codium", "cursor", "windsurf":
		return append(args, "--goto", file+":"+at)
	case "subl", "zed", "hx", "helix":
		return append(args, file+":"+at)
	case "vi", "vim", "nvim", "gvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg":
		return append(args, "+"+at, file)
	}
	return append(args, file)
}
