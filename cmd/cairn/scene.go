package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atotto/clipboard"
	"github.com/spf13/cobra"

	"cairn/internal/base/atomicfile"
	"cairn/internal/face/view"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/scene"
	"cairn/internal/text/walk"
)

// sceneFile is the name of the file in the folder's marker that holds the last scene.
const sceneFile = "SCENE.md"

// sceneFlags are the flags of cairn scene.
type sceneFlags struct {
	limit             int
	budget            string
	dry, list, noCopy bool
}

func (a *app) sceneCommand() *cobra.Command {
	var f sceneFlags
	cmd := newCommand("scene [PATH...]", "Collect the documents of the current work as one text to paste",
		a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error { return a.scene(ctx, t, args, f) }))
	intVar(cmd.Flags(), &f.limit, "token-limit", 0, 1, config.MaxScene, "most tokens of the text (default: core.token_limit)")
	choiceVar(cmd.Flags(), &f.budget, "budget", "most tokens by the kind of work: feature, bugfix, refactor or review (budgets.* in config.toml)", "feature", "bugfix", "refactor", "review")
	cmd.Flags().BoolVarP(&f.dry, "dry-run", "d", false, "print the text, and change neither the clipboard nor SCENE.md")
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
		limit = cfg.Budgets.Of(f.budget)
	}
	for i, p := range args {
		if args[i], err = walk.Clean(strings.TrimPrefix(p, "/")); err != nil {
			return badUsage("%w", err)
		}
	}
	s, err := t.Scene(ctx, cfg, args, limit)
	if err != nil {
		return err
	}
	if len(s.Items) == 0 {
		a.out.Notes.Printf("there is no active card: activate one with `cairn card edit ID --status active`, or name documents\n")
	}
	if f.list {
		s.Text = ""
		return a.out.Print(s, func() { a.out.Scene(s) })
	}
	if !f.dry {
		if err := a.writeScene(sel.Root, s); err != nil {
			return err
		}
	}
	return a.out.Print(s, func() {
		if a.out.IsTerminal() && !f.dry && !f.noCopy && clipboard.WriteAll(s.Text) == nil {
			a.out.Scene(s)
			a.out.Notes.Printf("the text is in the clipboard\n")
			return
		}
		a.out.Printf("%s", s.Text)
		if s.Masked > 0 {
			a.out.Notes.Printf("%s masked\n", view.Count(s.Masked, "secret"))
		}
	})
}

// writeScene writes the text of a scene to SCENE.md in the folder's marker. It follows no link
// and creates no marker, which would make the folder a workspace.
func (a *app) writeScene(root string, s *scene.Scene) error {
	marker, _ := config.Find(root)
	if marker == "" {
		a.out.Notes.Printf("%s is not written: the folder has no .cairn; `cairn init` creates it\n", sceneFile)
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

// refreshScene copies the scene of the current work to the clipboard and SCENE.md.
func (a *app) refreshScene(ctx context.Context, root string, t *workspace.Tasks, cfg config.Config) {
	s, err := t.Scene(ctx, cfg, nil, min(cfg.Core.TokenLimit, config.MaxScene))
	if err == nil {
		err = a.writeScene(root, s)
	}
	if err != nil {
		a.out.Notes.Warn("the scene is not updated: %v", err)
		return
	}
	where := sceneFile
	if clipboard.WriteAll(s.Text) == nil {
		where += " and the clipboard"
	}
	a.out.Notes.Printf("the scene of %d tokens is in %s\n", s.Tokens, where)
}
