package tasks

import (
	"context"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/notes"
)

func (a *app) rememberCommand() *cli.Command {
	var r notes.Request
	cmd := cli.NewCommand("remember [flags] [TEXT...]", "Write a note with the lines that it rests on, or confirm, correct or drop one",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			r.Text = strings.Join(args, " ")
			var st *workspace.Stages
			if r.Answer != "" {
				var err error
				if st, err = a.openStages(ctx); err != nil {
					return err
				}
				defer st.Close()
			}
			made, err := t.Remember(ctx, st, "", r)
			if err != nil {
				return err
			}
			return a.Out.Print(made, func() { a.Out.Lines(made.Text()) })
		}))
	cmd.Flags().StringSliceVar(&r.RestsOn, "rests-on", nil, "lines that show it, such as a.md#anchor, a.md:3-9 or a receipt; may be repeated")
	cmd.Flags().StringVar(&r.ID, "id", "", "note to correct with TEXT, or to confirm without")
	cmd.Flags().StringVar(&r.Answer, "answer", "", "question task whose answer to keep, with the sections it cites")
	cmd.Flags().BoolVar(&r.Drop, "drop", false, "remove the note")
	cmd.Flags().StringVar(&r.Title, "title", "", "title (default: the first line)")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "tag; may be repeated")
	cmd.Flags().StringVar(&r.By, "by", "", "author (default: that of the configuration)")
	return cmd
}
