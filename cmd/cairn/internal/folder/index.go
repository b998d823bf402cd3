// Package folder holds the commands for the folder and its index.
package folder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/walk"
	"cairn/models/bpe"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.initCommand(), a.indexCommand(), a.statusCommand(), a.configCommand(), a.rootsCommand(), a.trustCommand(), a.modelCommand(), a.storeCommand()}
}

func (a *app) indexCommand() *cli.Command {
	var req index.IndexRequest
	var try bool
	cmd := &cli.Command{
		Use:   "index",
		Short: "Build or refresh the index; unchanged files cost nothing",
	}
	cmd.RunE = func(cmd *cli.Command, args []string) error {
		if try {
			return a.WithTasks(a.indexable)(cmd, args)
		}
		return a.Command(func(ctx context.Context, _ []string) error { return a.index(ctx, req, nil) })(cmd, args)
	}
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "remove the index first; needed after a change of model or format")
	cmd.Flags().BoolVar(&req.NoEmbed, "no-embed", false, "make no vectors; keyword search works without them")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only print the files that would be indexed and left out")
	a.AddModel(cmd)
	return cmd
}

// indexable prints what an index would hold.
func (a *app) indexable(ctx context.Context, t *workspace.Tasks, _ []string) error {
	var v struct {
		Files   []string            `json:"files"`
		Skipped []index.SkippedFile `json:"skipped"`
	}
	var err error
	v.Files, err = t.Paths(ctx, true, func(e walk.Entry) {
		if e.Reason != walk.Hidden || !walk.IsOurs(e.Path) {
			v.Skipped = append(v.Skipped, index.SkippedFile{Path: e.Path, Reason: string(e.Reason)})
		}
	})
	if err != nil {
		return err
	}
	return a.Out.Print(v, func() {
		for _, p := range v.Files {
			a.Out.Printf("%s\n", term.Plain(p))
		}
		names := map[string][]string{}
		for _, s := range v.Skipped {
			names[s.Reason] = append(names[s.Reason], term.Plain(s.Path))
		}
		for _, reason := range slices.Sorted(maps.Keys(names)) {
			const shown = 5
			list := names[reason]
			text := strings.Join(list[:min(len(list), shown)], ", ")
			if len(list) > shown {
				text += ", …"
			}
			a.Out.Notes.Dim(fmt.Sprintf("left out: %s: %s (%s)", view.Count(len(list), "file"), walk.WithAdvice(reason), text))
		}
		a.Out.Notes.Printf("%s to index, %d left out\n", view.Count(len(v.Files), "file"), len(v.Skipped))
	})
}

// index refreshes or rebuilds the index. It calls ready, if not nil, before it changes it.
func (a *app) index(ctx context.Context, req index.IndexRequest, ready func() error) error {
	w, err := a.Open(ctx, "index", workspace.Owning, func(o *workspace.Options) { o.Rebuild = req.Rebuild })
	if err != nil {
		return err
	}
	defer w.Close()
	if ready != nil {
		if err := ready(); err != nil {
			return err
		}
	}
	report, err := cli.WithProgress(a.App, func(bar *term.Progress) (*index.IndexReport, error) {
		return index.IndexOp.Call(ctx, w.Folder, req, bar.Show)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.Out.Print(report, func() {
		pending := ""
		if report.Pending > 0 {
			pending = fmt.Sprintf(", %s still without a vector", view.Count(report.Pending, "piece"))
		}
		a.Out.Notes.Printf("indexed %s with %s: %d new or changed, %d removed, %d skipped; %s embedded%s; %.1f s\n", view.Count(report.Files, "file"), view.Count(report.Sections, "section"),
			report.Added, report.Removed, report.Skipped, view.Count(report.Embedded, "text"), pending, report.Seconds)
	})
}

func (a *app) statusCommand() *cli.Command {
	var list, brief bool
	cmd := cli.NewCommand("status", "Print which folder is chosen and the state of its index",
		a.WithWorkspace("status", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			if brief {
				return a.printBrief(ctx, w)
			}
			s, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
			if err != nil {
				return err
			}
			full := struct {
				*index.Status
				home.Place
				SkippedFiles []index.SkippedFile `json:"skipped_files,omitempty"`
			}{Status: s, Place: w.Place()}
			if n, err := index.NotesOp.Call(ctx, w.Folder, index.NotesRequest{}, nil); err == nil { // else the status has the reason
				s.SetNotes(n)
			}
			if list {
				if full.SkippedFiles, err = index.SkippedOp.Call(ctx, w.Folder, struct{}{}, nil); err != nil {
					return err
				}
			}
			return a.Out.Print(full, func() { a.Out.Status(s, full.Place, full.SkippedFiles) })
		}))
	cmd.Flags().BoolVar(&brief, "brief", false, "print only the cards that are ready and the outdated notes, for a model")
	cmd.Flags().BoolVar(&list, "skipped", false, "list the files that are not indexed, by reason")
	return cmd
}

// briefWait bounds the check of the notes for a session that begins.
const briefWait = 2 * time.Second

// printBrief prints what a model should know at the start of a session, nothing if there is
// nothing.
func (a *app) printBrief(ctx context.Context, w *workspace.Workspace) error {
	t, err := w.Tasks(&workspace.TaskOptions{Person: true})
	if err != nil {
		return err
	}
	defer t.Close()
	board, err := t.Cards.Board()
	if err != nil {
		return err
	}
	b := term.Brief{Ready: []term.BriefCard{}, Outdated: []string{}}
	live := board.Live()
	for _, c := range board.ByUrgency() {
		if c.Status.CardWord() == "todo" && live.Graph.IsReady(c.ID) {
			b.Ready = append(b.Ready, term.BriefCard{ID: c.ID, Title: c.Title})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, briefWait)
	defer cancel()
	if n, err := index.NotesOp.Call(ctx, w.Folder, index.NotesRequest{}, nil); err == nil { // the cards are useful alone
		b.Outdated = slices.AppendSeq(b.Outdated, maps.Keys(n.Outdated))
		slices.Sort(b.Outdated)
	}
	return a.Out.Print(b, func() { a.Out.Printf("%s", b.Text((&bpe.Counter{}).CountTokens)) })
}
