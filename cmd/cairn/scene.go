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
	"cairn/internal/walk"
	"cairn/internal/workspace"
	"cairn/models/bpe"
)

// maxScene is the most tokens a scene may have, by the table of limits.
const maxScene = 128_000

func (a *app) sceneCommand() *cobra.Command {
	var limit int
	var try, noCopy bool
	cmd := &cobra.Command{
		Use:   "scene [PATH...]",
		Short: "Put what is worked on together as one text, to be pasted into a conversation",
		Long: `Put what is worked on together as one Markdown text, to be pasted into a
conversation: the active cards, what they refer to, and so on, the nearest first,
up to a number of tokens. PATHs are further documents at hand. What was changed
today weighs twice. Secrets are masked.

On a terminal the text goes to the clipboard where there is one, else to standard
output.`,
		Example: `  cairn scene --dry-run
  cairn scene --token-limit 8000 > scene.md
  cairn scene docs/auth.md`,
		Args: func(cmd *cobra.Command, _ []string) error {
			return inRange(cmd, bounds{"token-limit", 1, maxScene})
		},
	}
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		return a.scene(ctx, t, args, limit, try, noCopy)
	})
	cmd.Flags().IntVar(&limit, "token-limit", 0, "most tokens of the text (default: core.token_limit)")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "list what would be in it, with its weight and tokens")
	cmd.Flags().BoolVar(&noCopy, "no-copy", false, "leave the clipboard alone")
	return cmd
}

func (a *app) scene(ctx context.Context, t *workspace.Tasks, args []string, limit int, try, noCopy bool) error {
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	masks, err := scene.NewMasks(slices.Concat(cfg.Security.SecretPatterns, cfg.Security.ExtraPatterns)...)
	if err != nil {
		return fmt.Errorf("configuration: security: %w; nothing is passed on with a secret unmasked", err)
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
		fmt.Fprintln(a.stderr, "nothing is worked on: set a card active with `cairn card edit ID --status active`, or name documents")
	}
	switch {
	case try:
		s.Text = ""
		if a.json {
			return a.printJSON(s)
		}
		a.printScene(s)
		return nil
	case a.json:
		return a.printJSON(s)
	case isTerminal(a.stdout) && !noCopy && clipboard.WriteAll(s.Text) == nil:
		a.printScene(s)
		fmt.Fprintln(a.stderr, "it is in the clipboard")
		return nil
	}
	if _, err := fmt.Fprint(a.stdout, s.Text); err != nil {
		return err
	}
	if s.Masked > 0 {
		fmt.Fprintf(a.stderr, "%s masked\n", many(s.Masked, "secret"))
	}
	return nil
}

func (a *app) printScene(s *scene.Scene) {
	rows := [][]string{}
	for _, i := range s.Items {
		mark := ""
		if !i.Included {
			mark = "  does not fit"
		}
		rows = append(rows, []string{fmt.Sprintf("%g", i.Weight), fmt.Sprintf("%6d", i.Tokens), plain(i.Path) + mark})
	}
	a.rows(rows)
	fmt.Fprintf(a.stdout, "%d tokens of %d, %s\n", s.Tokens, s.Limit, many(s.Masked, "secret")+" masked")
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
