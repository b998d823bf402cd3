package search

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/retriever"
	"cairn/tools"
)

func (a *app) readCommand() *cli.Command {
	var r retriever.ReadRequest
	cmd := cli.NewCommand("read [flags] PLACE...", "Print a document, a section (path#anchor) or lines (path:from-to)",
		a.WithWorkspace("read", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			if len(args) == 1 && strings.Contains(args[0], "@") {
				if ok, err := a.readPast(ctx, w, args[0], r); ok || err != nil {
					return err
				}
			}
			args = a.Paths(w.Selection()).Documents(args)
			if len(args) > 1 {
				return a.readAll(ctx, w, args, r)
			}
			r.Path = args[0]
			return a.readError(term.Show(a.Out, (*term.Output).Reading)(index.ReadOp.Call(ctx, w.Folder, r, nil)))
		}))
	cmd.Args = func(_ *cli.Command, args []string) error {
		if len(args) < 1 || len(args) > retriever.MaxPaths {
			return cli.BadUsage("got %d places, want 1 to %d, as in: cairn read 'guide.md#install'", len(args), retriever.MaxPaths)
		}
		return nil
	}
	cmd.ValidArgsFunction = a.Completion(a.completePlace)
	fs := cmd.Flags()
	fs.StringVar(&r.Anchor, "anchor", "", "heading or slug of the section")
	cli.IntVar(fs, &r.MaxTokens, "max-tokens", 0, retriever.MinBudget, cli.NoBound, "most tokens of the answer; a longer document comes in parts")
	fs.StringVar(&r.Next, "next", "", "continue after the part of an earlier answer (its next)")
	fs.StringVar(&r.ExpectedHash, "expected-hash", "", "fail if the hash of the file differs")
	return cmd
}

// maxCompleted bounds the places that a shell offers.
const maxCompleted = 200

// completePlace returns the documents whose path begins as typed, and after a "#" the sections
// of the document.
func (a *app) completePlace(ctx context.Context, t *workspace.Tasks, typed string) (found []string) {
	sel, err := a.Selection()
	if err != nil {
		return nil
	}
	p := a.Paths(sel)
	if file, _, ok := strings.Cut(typed, "#"); ok {
		path := p.Document(file)
		text, err := t.Text(path)
		if err != nil {
			return nil
		}
		for _, s := range markdown.Parse(path, text).Sections {
			if s.Level > 0 && strings.HasPrefix(file+"#"+s.Anchor, typed) {
				found = append(found, file+"#"+s.Anchor+"\t"+term.Plain(s.Heading))
			}
		}
		return found
	}
	paths, err := t.Paths(ctx, true, nil)
	if err != nil {
		return nil
	}
	for _, path := range paths {
		for _, name := range []string{p.Shown(path), path} {
			if strings.HasPrefix(name, typed) && len(found) < maxCompleted {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

func (a *app) readAll(ctx context.Context, w *workspace.Workspace, args []string, r retriever.ReadRequest) error {
	r.Paths = args
	all, err := index.ReadAllOp.Call(ctx, w.Folder, r, nil)
	if err := a.readError(term.Show(a.Out, (*term.Output).Readings)(all, err)); err != nil {
		return err
	}
	for _, f := range all.Failed {
		a.Out.Notes.Printf("cairn: %s\n", term.OneLine(f.Error))
	}
	for _, o := range all.Omitted {
		a.Out.Notes.Printf("cairn: %s is left out: its %d tokens exceed the budget\n", o.Path, o.Tokens)
	}
	if len(all.Failed) > 0 {
		return fmt.Errorf("%d of %d places could not be read", len(all.Failed), len(args))
	}
	return nil
}

// readError returns the error of a read in words for a person. With --json it also prints the
// error in the format of the tool.
func (a *app) readError(err error) error {
	if err != nil && a.Out.JSON {
		if err := a.Out.Encode(tools.FailureOf(err)); err != nil {
			return err
		}
	}
	missing, ok := errors.AsType[*retriever.NotFoundError](err)
	if !ok || missing.Anchor == "" {
		return err
	}
	have, names := "nearest", missing.Nearest
	if len(names) == 0 {
		have, names = "it has", missing.Anchors
	}
	if len(names) == 0 {
		return fmt.Errorf("%q has no section %q, nor any other", missing.Path, missing.Anchor)
	}
	more := ""
	if len(names) > shownAnchors {
		names, more = names[:shownAnchors], " …"
	}
	return fmt.Errorf("%q has no section %q; %s: %s%s", missing.Path, missing.Anchor, have, strings.Join(names, ", "), more)
}

// shownAnchors bounds the names in an error.
const shownAnchors = 5
