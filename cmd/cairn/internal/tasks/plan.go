package tasks

import (
	"context"
	"slices"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
)

func (a *app) planCommand() *cli.Command {
	cmd := cli.Group("plan", "Show question tasks, answer and stop them", a.planListCommand(), a.planShowCommand(), a.planWatchCommand(), a.planAnswerCommand(), a.planAbortCommand())
	a.servers.Add(cmd.PersistentFlags())
	return cmd
}

// withStages opens the question tasks of the folder for fn. It works on no stage. The arguments
// are IDs of tasks, or the beginnings of IDs.
func (a *app) withStages(fn func(ctx context.Context, st *workspace.Stages, args []string) error) func(*cli.Command, []string) error {
	return cli.With(a.App, a.openStages, func(ctx context.Context, st *workspace.Stages, args []string) error {
		for i, name := range args {
			args[i] = fullID(ctx, st, name)
		}
		return fn(ctx, st, args)
	})
}

// fullID returns the ID of the only recent question task whose ID begins with name, else name.
func fullID(ctx context.Context, st *workspace.Stages, name string) string {
	list, _ := st.List(ctx, stage.Query{Limit: 1000}) // loading the task returns the error
	list = slices.DeleteFunc(list, func(s *stage.State) bool { return name == "" || !strings.HasPrefix(s.ID, name) })
	if len(list) != 1 {
		return name
	}
	return list[0].ID
}

func (a *app) openStages(ctx context.Context) (*workspace.Stages, error) {
	sel, _, err := a.Choose()
	if err != nil {
		return nil, err
	}
	servers, err := a.servers.Addresses()
	if err != nil {
		return nil, err
	}
	servers.AMQP = "" // these commands send nothing
	o := &workspace.StageOptions{Workers: -1, Logger: a.Logger()}
	if o.Store, _, err = servers.Open(ctx, o.Logger); err != nil {
		return nil, err
	}
	return workspace.OpenStages(sel, o)
}

func (a *app) planListCommand() *cli.Command {
	var q stage.Query
	cmd := cli.NewCommand("list", "List question tasks, newest first",
		a.withStages(func(ctx context.Context, st *workspace.Stages, _ []string) error {
			list, err := st.List(ctx, q)
			if err != nil {
				return err
			}
			tasks := []stage.Task{}
			for _, s := range list {
				tasks = append(tasks, s.Task)
			}
			return a.Out.Print(tasks, func() {
				for _, s := range list {
					a.Out.Printf("%s  %-11s %3d%%  %-18s  %s  %s\n", term.Plain(s.ID), s.Status, s.Progress, s.Current, term.Time(s.StartedAt), term.Cut(term.OneLine(s.Query), 60))
				}
			})
		}))
	cmd.Flags().StringVar(&q.UserID, "user", "", "only tasks of this user")
	cli.ChoiceVar(cmd.Flags(), &q.Status, "status", "only waiting, in_progress, complete, failed or aborted ones", "waiting", "in_progress", "complete", "failed", "aborted")
	cli.IntVar(cmd.Flags(), &q.Limit, "limit", 20, 1, 1000, "most tasks to list")
	return cmd
}

func (a *app) planShowCommand() *cli.Command {
	return cli.NewCommand("show ID", "Show a question task with its log",
		a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Task(ctx, args[0])
			if err != nil {
				return err
			}
			entries, err := st.Log(ctx, args[0])
			if err != nil {
				return err
			}
			report := struct {
				Task *stage.Task   `json:"task"`
				Log  []stage.Entry `json:"log"`
			}{&s.Task, entries}
			return a.Out.Print(report, func() { a.Out.QuestionTask(s, entries) })
		}))
}

func (a *app) planWatchCommand() *cli.Command {
	return cli.NewCommand("watch ID", "Follow a question task to its end",
		a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Watch(ctx, args[0], func(s *stage.State) {
				_ = a.Out.Line(s.Task, "%s  %-11s %3d%%  %s", term.Time(s.UpdatedAt), s.Status, s.Progress, s.Current)
			}, nil)
			if err != nil {
				return err
			}
			if s.Response != nil && !a.Out.JSON {
				a.Out.Printf("\n")
				a.Out.Response(s.Response)
			}
			return nil
		}))
}

func (a *app) planAbortCommand() *cli.Command {
	var reason string
	cmd := cli.NewCommand("abort ID", "Stop a question task",
		a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Apply(ctx, args[0], stage.Event{Kind: stage.Abort, Reason: reason})
			if err != nil {
				return err
			}
			return a.Out.Line(s.Task, "%s is aborted", term.Plain(s.ID))
		}))
	cmd.Flags().StringVar(&reason, "reason", "", "reason to record")
	return cmd
}
