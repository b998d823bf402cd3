package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/atotto/clipboard"
	"github.com/spf13/cobra"

	"cairn/internal/scene"
	"cairn/internal/task"
	"cairn/internal/term"
	"cairn/internal/walk"
	"cairn/internal/workspace"
	"cairn/models/bpe"
)

// maxScene bounds the tokens of a scene.
const maxScene = 128_000

func (a *app) sceneCommand() *cobra.Command {
	var limit int
	var try, noCopy bool
	cmd := &cobra.Command{
		Use:   "scene [PATH...]",
		Short: "Collect the documents of the current work as one text to paste",
		Long: `Collect the documents of the current work as one Markdown text, to be pasted into
a conversation: the active cards, the documents they refer to, and so on, the
nearest first, up to a number of tokens. PATHs are further documents in use.
Documents changed today weigh twice. Secrets are masked.

On a terminal with a clipboard the text goes to the clipboard, else to standard
output.`,
		Example: `  cairn scene --dry-run
  cairn scene --token-limit 8000 > scene.md
  cairn scene docs/auth.md`,
	}
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		return a.scene(ctx, t, args, limit, try, !noCopy)
	})
	intVar(cmd.Flags(), &limit, "token-limit", 0, 1, maxScene, "most tokens of the text (default: core.token_limit)")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "list the documents with their weights and tokens instead")
	cmd.Flags().BoolVar(&noCopy, "no-copy", false, "do not use the clipboard")
	return cmd
}

func (a *app) scene(ctx context.Context, t *workspace.Tasks, args []string, limit int, try, copying bool) error {
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	masks, err := cfg.Security.Masks()
	if err != nil {
		return err
	}
	paths, err := t.Paths(ctx)
	if err != nil {
		return err
	}
	board, err := t.Cards.Board()
	if err != nil {
		return err
	}
	r := scene.Request{TokenLimit: limit, Count: (&bpe.Counter{}).CountTokens, Masks: masks, Now: time.Now()}
	if limit == 0 {
		r.TokenLimit = min(cfg.Core.TokenLimit, maxScene)
	}
	for _, c := range board.Cards {
		if c.Status == task.InProgress {
			r.Cards = append(r.Cards, c.Path)
		}
	}
	for _, p := range args {
		clean, err := walk.Clean(strings.TrimPrefix(p, "/"))
		if err != nil {
			return badUsage("%w", err)
		}
		if !slices.Contains(paths, clean) {
			return fmt.Errorf("%s is not among the documents of this folder; `cairn open` finds what is", clean)
		}
		r.Working = append(r.Working, clean)
	}
	for _, p := range paths {
		if dir := path.Dir(p); dir == ".cairn/docs" || dir == ".cuedeck/docs" {
			r.Global = append(r.Global, p)
		}
	}
	s := scene.Build(&sceneSource{t, paths}, r)
	if len(s.Items) == 0 {
		a.stderr.Printf("there is no active card: set one active with `cairn card edit ID --status active`, or name documents\n")
	}
	return a.printScene(s, try, copying)
}

// printScene prints a scene, or its list of documents if dry. With copying, the
// text goes to the clipboard of a terminal that has one.
func (a *app) printScene(s *scene.Scene, dry, copying bool) error {
	if dry {
		s.Text = ""
		return a.print(s, func(w *term.Writer) { w.Scene(s) })
	}
	return a.print(s, func(w *term.Writer) {
		if w.IsTerminal() && copying && clipboard.WriteAll(s.Text) == nil {
			w.Scene(s)
			a.stderr.Printf("the text is in the clipboard\n")
			return
		}
		w.Printf("%s", s.Text)
		if s.Masked > 0 {
			a.stderr.Printf("%s masked\n", term.Count(s.Masked, "secret"))
		}
	})
}

// sceneSource reads documents through the folder's tasks, which need no index.
type sceneSource struct {
	t     *workspace.Tasks
	paths []string
}

func (s *sceneSource) Paths() []string { return s.paths }

func (s *sceneSource) Read(path string) ([]byte, time.Time, error) {
	text, err := s.t.Text(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	info, err := s.t.Stat(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	return text, info.ModTime(), nil
}
