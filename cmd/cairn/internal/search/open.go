package search

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/finder"
	"cairn/internal/face/server"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/retriever"
)

func (a *app) openCommand() *cli.Command {
	var list, web bool
	var address string
	cmd := cli.NewCommand("open [WORD...]", "Find a file, heading or card by typing, and open it in $VISUAL or $EDITOR",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			if web {
				store, err := cli.TokenStore("")
				if err != nil {
					return err
				}
				path, err := server.SignInPath(ctx, store)
				if err != nil {
					return err
				}
				return a.Out.Line(map[string]string{"url": address + path}, "%s", address+path)
			}
			places, err := placesOf(ctx, t)
			if err != nil {
				return err
			}
			if list || a.Out.JSON {
				places = finder.Match(places, strings.Join(args, " "))
				a.Found(len(places) > 0)
				return a.Out.Print(places, func() {
					for _, p := range places {
						a.Out.Printf("%s:%d\t%s\t%s\n", term.Plain(p.Path), p.Line, p.Kind, p.Text)
					}
				})
			}
			return a.find(ctx, t, places, strings.Join(args, " "))
		}))
	cmd.Flags().BoolVar(&list, "list", false, "print the matching places instead")
	cmd.Flags().BoolVar(&web, "web", false, "print a link that opens the pages of cairn serve once, instead")
	cmd.Flags().StringVar(&address, "url", "http://127.0.0.1:7420", "address of the server for --web")
	return a.Searches(cmd)
}

func (a *app) find(ctx context.Context, t *workspace.Tasks, places []finder.Place, words string) error {
	if !a.Out.IsTerminal() {
		return cli.BadUsage("cairn open needs a terminal; --list prints the places without one")
	}
	editor, err := cli.Editor("print the places with --list")
	if err != nil {
		return err
	}
	preview := func(p finder.Place) string {
		text, err := t.Text(p.Path)
		if err != nil {
			return err.Error()
		}
		lines := strings.SplitAfter(string(text), "\n")
		return strings.Join(lines[min(p.Line-1, len(lines)):], "")
	}
	search, stop := a.searcher(ctx)
	defer stop()
	p, err := finder.Run(finder.New(places, words, preview, search))
	if err != nil || p == nil {
		return err
	}
	sel, err := a.Selection()
	if err != nil {
		return err
	}
	return a.Edit(ctx, editor, filepath.Join(sel.Root, filepath.FromSlash(p.Path)), p.Line)
}

// searcher returns a function that searches the folder's index, and a function that closes the
// index. The first search opens it.
func (a *app) searcher(ctx context.Context) (search func(string) []finder.Place, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var w *workspace.Workspace
	search = func(query string) []finder.Place {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		if w == nil {
			var err error
			w, err = a.Open(ctx, "open", workspace.Reading, func(o *workspace.Options) { o.Logger = slog.New(slog.DiscardHandler) })
			if err != nil {
				return nil // finding places by name needs no index
			}
		}
		answer, err := index.SearchOp.Call(ctx, w.Folder, retriever.Query{Text: query, Limit: maxFound}, nil)
		if err != nil {
			return nil
		}
		var places []finder.Place
		for _, r := range answer.Results {
			p := finder.Place{Kind: "meaning", Path: r.Path, Line: r.LineRange.Start, Text: term.Plain(r.Path + " > " + strings.Join(r.Headings, " > "))}
			p.Name, p.Where = nameOf(r.Path, r.Title, r.Headings)
			places = append(places, p)
		}
		return places
	}
	return search, func() {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		if w != nil {
			_ = w.Close() // nothing was written
		}
	}
}

// maxFound bounds the places that a search adds to the list.
const maxFound = 10

// nameOf returns the last heading of a trail, or else the title, and its location.
func nameOf(path, title string, trail []string) (name, where string) {
	name, where = title, path
	if n := len(trail); n > 0 {
		name = trail[n-1]
		if n > 1 {
			where = strings.Join(trail[:n-1], " > ") + "  " + path
		}
	}
	return term.Plain(name), term.Plain(where)
}

// placesOf lists cards by title, then files, each followed by its headings or symbols.
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
	paths, err := t.Paths(ctx, true, nil)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if cards[path] {
			continue
		}
		text, err := t.Text(path)
		if err != nil {
			continue // removed or unreadable
		}
		places = append(places, finder.Place{Kind: "file", Path: path, Line: 1, Text: term.Plain(path)})
		for _, s := range markdown.Parse(path, text).Sections {
			if s.Level > 0 {
				kind := "heading"
				if outline.IsSource(path) {
					kind = "symbol"
				}
				p := finder.Place{Kind: kind, Path: path, Line: s.StartLine, Text: term.Plain(path + " > " + strings.Join(s.Trail, " > "))}
				p.Name, p.Where = nameOf(path, path, s.Trail)
				places = append(places, p)
			}
		}
	}
	return places, ctx.Err()
}
