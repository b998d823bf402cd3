package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atotto/clipboard"
	"github.com/spf13/cobra"

	"cairn/internal/atomicfile"
	"cairn/internal/config"
	"cairn/internal/scene"
	"cairn/internal/task"
	"cairn/internal/term"
	"cairn/internal/walk"
	"cairn/internal/workspace"
	"cairn/models/bpe"
)

// sceneFile is the name of the last scene in the folder's marker.
const sceneFile = "SCENE.md"

// sceneFlags are the flags of cairn scene.
type sceneFlags struct {
	limit             int
	budget            string
	dry, list, noCopy bool
}

func (a *app) sceneCommand() *cobra.Command {
	var f sceneFlags
	cmd := &cobra.Command{
		Use:   "scene [PATH...]",
		Short: "Collect the documents of the current work as one text to paste",
	}
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		return a.scene(ctx, t, args, f)
	})
	intVar(cmd.Flags(), &f.limit, "token-limit", 0, 1, config.MaxScene, "most tokens of the text (default: core.token_limit)")
	cmd.Flags().StringVar(&f.budget, "budget", "", "most tokens by the kind of work: feature, bugfix, refactor or review (budgets.* in config.toml)")
	cmd.Flags().BoolVarP(&f.dry, "dry-run", "d", false, "print the text, and touch neither the clipboard nor SCENE.md")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the documents with their weights and tokens instead")
	cmd.Flags().BoolVar(&f.noCopy, "no-copy", false, "do not use the clipboard")
	cmd.MarkFlagsMutuallyExclusive("token-limit", "budget")
	return cmd
}

func (a *app) scene(ctx context.Context, t *workspace.Tasks, args []string, f sceneFlags) error {
	sel, cfg, err := a.choose()
	if err != nil {
		return err
	}
	limit := cmp.Or(f.limit, min(cfg.Core.TokenLimit, config.MaxScene))
	if f.budget != "" {
		var ok bool
		if limit, ok = cfg.Budgets.Of(f.budget); !ok {
			return badUsage("--budget is %q, want {feature,bugfix,refactor,review}", f.budget)
		}
	}
	s, err := buildScene(ctx, t, cfg, args, limit)
	if err != nil {
		return err
	}
	if len(s.Items) == 0 {
		a.stderr.Printf("there is no active card: set one active with `cairn card edit ID --status active`, or name documents\n")
	}
	if f.list {
		s.Text = ""
		return a.print(s, func(w *term.Writer) { w.Scene(s) })
	}
	if !f.dry {
		if err := a.writeScene(sel.Root, s); err != nil {
			return err
		}
	}
	return a.print(s, func(w *term.Writer) {
		if w.IsTerminal() && !f.dry && !f.noCopy && clipboard.WriteAll(s.Text) == nil {
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

// buildScene collects the scene of the active cards and of the documents that args
// name, with at most limit tokens.
func buildScene(ctx context.Context, t *workspace.Tasks, cfg config.Config, args []string, limit int) (*scene.Scene, error) {
	masks, err := cfg.Security.Masks()
	if err != nil {
		return nil, err
	}
	paths, err := t.Paths(ctx, nil)
	if err != nil {
		return nil, err
	}
	board, err := t.Cards.Board()
	if err != nil {
		return nil, err
	}
	r := scene.Request{
		Paths: paths,
		Read: func(path string) ([]byte, time.Time, error) {
			text, err := t.Text(path)
			if err != nil {
				return nil, time.Time{}, err
			}
			info, err := t.Stat(path)
			if err != nil {
				return nil, time.Time{}, err
			}
			return text, info.ModTime(), nil
		},
		TokenLimit: limit, Count: (&bpe.Counter{}).CountTokens, Masks: masks, Now: time.Now(),
	}
	for _, c := range board.Cards {
		if c.Status == task.InProgress {
			r.Cards = append(r.Cards, c.Path)
		}
	}
	for _, p := range args {
		clean, err := walk.Clean(strings.TrimPrefix(p, "/"))
		if err != nil {
			return nil, badUsage("%w", err)
		}
		if !slices.Contains(paths, clean) {
			return nil, fmt.Errorf("%s is not among the documents of this folder; `cairn open` finds what is", clean)
		}
		r.Working = append(r.Working, clean)
	}
	for _, p := range paths {
		if dir := path.Dir(p); dir == ".cairn/docs" || dir == ".cuedeck/docs" {
			r.Global = append(r.Global, p)
		}
	}
	return scene.Build(r), nil
}

// writeScene writes the text of a scene to SCENE.md in the folder's marker, without
// following a link. A folder without a marker gets none: it would become a workspace.
func (a *app) writeScene(root string, s *scene.Scene) error {
	marker, _ := config.Find(root)
	if marker == "" {
		a.stderr.Printf("%s is not written: the folder has no .cairn; `cairn init` makes it\n", sceneFile)
		return nil
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := atomicfile.WriteIn(dir, filepath.Join(marker, sceneFile), []byte(s.Text), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", sceneFile, err)
	}
	return nil
}
