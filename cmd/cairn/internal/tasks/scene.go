package tasks

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atotto/clipboard"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/atomicfile"
	"cairn/internal/face/view"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/scene"
	"cairn/internal/text/walk"
)

// SceneFile is the name of the file in the folder's marker that holds the last scene.
const SceneFile = "SCENE.md"

// Scene returns the command that collects the documents of the current work.
func Scene(c *cli.App) *cli.Command {
	a := &app{App: c}
	var f struct {
		limit             int
		budget            string
		dry, list, noCopy bool
	}
	cmd := cli.NewCommand("scene [PATH...]", "Collect the documents of the current work as one text to paste",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			sel, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			limit := cmp.Or(f.limit, min(cfg.Core.TokenLimit, config.MaxScene))
			if f.budget != "" {
				limit = cfg.Budgets.Of(f.budget)
			}
			for i, p := range args {
				if args[i], err = walk.Clean(strings.TrimPrefix(p, "/")); err != nil {
					return cli.BadUsage("%w", err)
				}
			}
			s, err := t.Scene(ctx, cfg, args, limit)
			if err != nil {
				return err
			}
			if len(s.Items) == 0 {
				a.Out.Notes.Printf("there is no active card: activate one with `cairn card edit ID --status active`, or name documents\n")
			}
			if f.list {
				s.Text = ""
				return a.Out.Print(s, func() { a.Out.Scene(s) })
			}
			if !f.dry {
				if err := a.writeScene(sel.Root, s); err != nil {
					return err
				}
			}
			return a.Out.Print(s, func() {
				if a.Out.IsTerminal() && !f.dry && !f.noCopy && clipboard.WriteAll(s.Text) == nil {
					a.Out.Scene(s)
					a.Out.Notes.Printf("the text is in the clipboard\n")
					return
				}
				a.Out.Printf("%s", s.Text)
				if s.Masked > 0 {
					a.Out.Notes.Printf("%s masked\n", view.Count(s.Masked, "secret"))
				}
			})
		}))
	cli.IntVar(cmd.Flags(), &f.limit, "token-limit", 0, 1, config.MaxScene, "most tokens of the text (default: core.token_limit)")
	cli.ChoiceVar(cmd.Flags(), &f.budget, "budget", "most tokens by the kind of work: feature, bugfix, refactor or review (budgets.* in config.toml)", "feature", "bugfix", "refactor", "review")
	cmd.Flags().BoolVarP(&f.dry, "dry-run", "d", false, "print the text, and change neither the clipboard nor SCENE.md")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the documents with their weights and tokens instead")
	cmd.Flags().BoolVar(&f.noCopy, "no-copy", false, "do not use the clipboard")
	cmd.MarkFlagsMutuallyExclusive("token-limit", "budget")
	return cmd
}

// writeScene writes the text of a scene to SCENE.md in the folder's marker. It follows no link
// and creates no marker, which would make the folder a workspace.
func (a *app) writeScene(root string, s *scene.Scene) error {
	marker, _ := config.Find(root)
	if marker == "" {
		a.Out.Notes.Printf("%s is not written: the folder has no .cairn; `cairn init` creates it\n", SceneFile)
		return nil
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := atomicfile.WriteIn(dir, filepath.Join(marker, SceneFile), []byte(s.Text), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", SceneFile, err)
	}
	return nil
}

// RefreshScene copies the scene of the current work to the clipboard and SCENE.md.
func RefreshScene(ctx context.Context, c *cli.App, root string, t *workspace.Tasks, cfg config.Config) {
	a := &app{App: c}
	s, err := t.Scene(ctx, cfg, nil, min(cfg.Core.TokenLimit, config.MaxScene))
	if err == nil {
		err = a.writeScene(root, s)
	}
	if err != nil {
		a.Out.Notes.Warn("the scene is not updated: %v", err)
		return
	}
	where := SceneFile
	if clipboard.WriteAll(s.Text) == nil {
		where += " and the clipboard"
	}
	a.Out.Notes.Printf("the scene of %d tokens is in %s\n", s.Tokens, where)
}
