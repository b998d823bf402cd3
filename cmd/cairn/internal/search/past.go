package search

import (
	"context"
	"os"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

// readPast reads PLACE@REF. ok is false for another place: a file whose name has an @ comes first.
func (a *app) readPast(ctx context.Context, w *workspace.Workspace, arg string, r retriever.ReadRequest) (ok bool, err error) {
	n, paths := strings.LastIndexByte(arg, '@'), a.Paths(w.Selection())
	if n <= 0 || strings.ContainsAny(arg[n:], "#:") {
		return false, nil
	}
	if _, err := os.Stat(paths.File(paths.Document(arg))); err == nil && !strings.Contains(arg, "#") {
		return false, nil
	}
	if r.Anchor != "" || r.MaxTokens != 0 || r.Next != "" || r.ExpectedHash != "" {
		return true, cli.BadUsage("a place at a commit takes no flags: write path#anchor@REF or path:from-to@REF")
	}
	return true, term.Show(a.Out, (*term.Output).Reading)(at(w, arg[n+1:], func(p *workspace.Past) (*retriever.Reading, error) {
		return p.Read(ctx, paths.Document(arg[:n]))
	}))
}

// at calls fn with the folder at a commit.
func at[T any](w *workspace.Workspace, ref string, fn func(*workspace.Past) (T, error)) (out T, err error) {
	t, err := w.Tasks(&workspace.TaskOptions{Person: true})
	if err != nil {
		return out, err
	}
	defer t.Close()
	p, err := t.At(ref)
	if err != nil {
		return out, err
	}
	defer p.Close()
	return fn(p)
}

func (a *app) changesCommand() *cli.Command {
	var f searchFlags
	var since string
	cmd := cli.NewCommand("changes --since REF QUERY...", "List the sections about a topic that changed since a commit",
		a.searching("changes", &f, func(ctx context.Context, w *workspace.Workspace, q retriever.Query) error {
			answer, err := index.SearchOp.Call(ctx, w.Folder, q, nil)
			if err == nil {
				err = a.foundIn(w, f.Filter.PathPrefix, len(answer.Results))
			}
			if err != nil {
				return err
			}
			var places []workspace.SectionPlace
			for _, r := range answer.Results {
				places = append(places, workspace.SectionPlace{Path: r.Path, Anchor: r.Anchor})
				for _, more := range r.More {
					places = append(places, workspace.SectionPlace{Path: r.Path, Anchor: more.Anchor})
				}
			}
			changes, err := at(w, since, func(p *workspace.Past) (*workspace.SectionChanges, error) { return p.Changes(ctx, places) })
			if err != nil {
				return err
			}
			a.Found(len(changes.Sections) > 0)
			if !changes.Complete {
				a.Out.Notes.Printf("some commits were not read in time\n")
			}
			return a.Out.Print(changes, func() {
				for _, s := range changes.Sections {
					a.Out.Printf("%s", a.Paths(w.Selection()).Shown(s.Path))
					if s.Anchor != "" {
						a.Out.Printf("#%s", s.Anchor)
					}
					if s.Added {
						a.Out.Printf("  new")
					}
					if s.Uncommitted {
						a.Out.Printf("  not committed")
					}
					a.Out.Printf("\n")
					for _, c := range s.Commits {
						a.Out.Printf("    %.10s  %s  %s\n", c.Hash, c.Time.Format("2006-01-02"), term.OneLine(c.Subject))
					}
				}
			})
		}))
	f.add(a, cmd)
	cmd.Flags().StringVar(&since, "since", "", "commit to compare with: a tag, a branch, a hash, or HEAD~N")
	_ = cmd.MarkFlagRequired("since")
	return a.Searches(cmd)
}
