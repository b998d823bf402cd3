package search

import (
	"context"
	"path"
	"slices"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
)

// Overview prints what the folder contains and commands to try. If no folder can be chosen, it
// prints the help of cmd.
func Overview(ctx context.Context, a *cli.App, cmd *cli.Command) error {
	if _, err := a.Selection(); err != nil {
		return cmd.Help()
	}
	w, err := a.Open(ctx, "status", workspace.Reading, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	status, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil {
		return err
	}
	t, err := w.Tasks(&workspace.TaskOptions{Person: true})
	if err != nil {
		return err
	}
	defer t.Close()
	paths, err := t.Paths(ctx, false, nil)
	if err != nil {
		return err
	}
	v := term.Overview{Root: w.Selection().Root, Files: map[string]int{}, Index: status.State}
	documents := slices.DeleteFunc(paths, func(p string) bool {
		v.Files[strings.ToLower(path.Ext(p))]++
		return strings.HasPrefix(p, ".")
	})
	board, err := t.Cards.Board()
	if err != nil {
		return err
	}
	v.Cards = len(board.Cards)
	v.Try = samples(t, documents)
	return a.Out.Print(v, func() { a.Out.Overview(&v, status.IndexState) })
}

// samples returns up to three headings of different documents, spread over the folder, that
// can serve as queries.
func samples(t *workspace.Tasks, documents []string) []string {
	const want, tried = 3, 30
	found := []string{}
	for i := range min(tried, len(documents)) {
		at := documents[((i%want)*len(documents)/want+i/want)%len(documents)] // from each part of the folder in turn
		text, err := t.Text(at)
		if err != nil {
			continue // removed or unreadable
		}
		for _, s := range markdown.Parse(at, text).Sections {
			words := len(strings.Fields(s.Heading))
			if s.Level > 1 && words > 1 && words < 8 && !slices.Contains(found, s.Heading) && !strings.ContainsAny(s.Heading, "`\"$\\") {
				found = append(found, s.Heading)
				break
			}
		}
		if len(found) == want {
			break
		}
	}
	return found
}
