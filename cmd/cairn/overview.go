package main

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/markdown"
	"cairn/internal/term"
	"cairn/internal/walk"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// overview is what `cairn` alone says about the folder.
type overview struct {
	Root  string         `json:"root"`
	Files map[string]int `json:"files"` // by extension
	Cards int            `json:"cards"`
	Index string         `json:"index"` // its state
	// Try are headings of the folder, as queries.
	Try []string `json:"try"`
}

// overview prints what is in the folder and what to do next. Where no folder is chosen
// it prints the help of cmd.
func (a *app) overview(ctx context.Context, cmd *cobra.Command) error {
	if _, err := a.selection(); err != nil {
		return cmd.Help()
	}
	w, err := a.open(ctx, "status", workspace.Reading, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	status, err := w.Status(ctx)
	if err != nil {
		return err
	}
	t, err := w.Tasks(&workspace.TaskOptions{Person: true})
	if err != nil {
		return err
	}
	defer t.Close()
	paths, err := t.Paths(ctx, nil)
	if err != nil {
		return err
	}
	v := overview{Root: w.Selection().Root, Files: map[string]int{}, Index: status.State, Try: []string{}}
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
	return a.print(v, func(o *term.Writer) { v.write(o, status.IndexState) })
}

func (v *overview) write(o *term.Writer, index retriever.IndexState) {
	files := 0
	var kinds []string
	for _, ext := range slices.Sorted(maps.Keys(v.Files)) {
		files += v.Files[ext]
		kinds = append(kinds, term.Plain(ext))
	}
	o.Printf("%s\n", term.Plain(v.Root))
	if files == 0 {
		o.Printf("no documents: cairn reads %s\n", strings.Join(walk.Documents, " "))
	} else {
		o.Printf("%s (%s), %s\n", term.Count(files, "document"), strings.Join(kinds, " "), term.Count(v.Cards, "card"))
	}
	switch {
	case files == 0:
	case index.State == "missing":
		o.Printf("not indexed yet: the first search does it\n")
	case index.Pending > 0:
		o.Printf("indexed, but for %s\n", term.Count(index.Pending, "vector"))
	default:
		o.Printf("index: %s, %s\n", index.State, term.Count(index.Sections, "section"))
	}
	o.Printf("\n")
	for _, q := range v.Try {
		o.Printf("  cairn search %q\n", q)
	}
	o.Printf("  cairn connect   lets your coding agents search here\n  cairn help      lists all commands\n")
}

// samples returns up to three headings of different documents, spread over the folder,
// that read like something to search for.
func samples(t *workspace.Tasks, documents []string) []string {
	const want, tried = 3, 30
	found := []string{}
	for i := range min(tried, len(documents)) {
		at := documents[((i%want)*len(documents)/want+i/want)%len(documents)] // the parts of the folder by turns
		text, err := t.Text(at)
		if err != nil {
			continue // removed, or not readable
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
