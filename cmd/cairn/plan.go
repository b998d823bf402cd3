package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

func (a *app) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Look at question tasks and stop them",
		Long: `Look at question tasks and stop them. They are made with cairn ask, or by agents
with task_dag_create.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.servers.add(cmd.PersistentFlags())
	cmd.AddCommand(a.planListCommand(), a.planShowCommand(), a.planWatchCommand(), a.planAbortCommand())
	return cmd
}

// withStages opens the question tasks of the folder for fn, without working on them.
func (a *app) withStages(fn func(ctx context.Context, st *workspace.Stages, args []string) error) func(*cobra.Command, []string) error {
	return a.command(func(ctx context.Context, args []string) (err error) {
		sel, _, err := a.choose()
		if err != nil {
			return err
		}
		log := a.logger(slog.LevelWarn)
		o := &workspace.StageOptions{Workers: -1, Logger: log}
		at := a.servers.read()
		at.amqp = "" // nothing is sent from here
		if o.Store, _, err = at.open(ctx, log); err != nil {
			return err
		}
		st, err := workspace.OpenStages(sel, o)
		if err != nil {
			return err
		}
		defer st.Close()
		return a.stageError(fn(ctx, st, args))
	})
}

func (a *app) planListCommand() *cobra.Command {
	var q stage.Query
	var status string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List question tasks, newest first",
		Args:  cobra.NoArgs,
		RunE: a.withStages(func(ctx context.Context, st *workspace.Stages, _ []string) error {
			q.Status = stage.Status(status)
			known := []stage.Status{"", stage.Waiting, stage.InProgress, stage.Complete, stage.Failed, stage.Aborted}
			if !slices.Contains(known, q.Status) {
				return badUsage("unknown status %q, want {waiting,in_progress,complete,failed,aborted}", status)
			}
			if q.Limit < 1 || q.Limit > 1000 {
				return badUsage("--limit is %d, want 1 to 1000", q.Limit)
			}
			list, err := st.List(ctx, q)
			if err != nil {
				return err
			}
			if a.json {
				tasks := []stage.Task{}
				for _, s := range list {
					tasks = append(tasks, s.Task)
				}
				return a.printJSON(tasks)
			}
			w := bufio.NewWriter(a.stdout)
			for _, s := range list {
				fmt.Fprintf(w, "%s  %-11s %3d%%  %-18s  %s  %s\n", plain(s.ID), s.Status, s.Progress, s.Current, stamp(s.StartedAt), plain(short(s.Query, 60)))
			}
			return w.Flush()
		}),
	}
	cmd.Flags().StringVar(&q.UserID, "user", "", "only tasks of this user")
	cmd.Flags().StringVar(&status, "status", "", "only waiting, in_progress, complete, failed or aborted ones")
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "most tasks to list")
	return cmd
}

func short(s string, n int) string {
	if r := []rune(strings.Join(strings.Fields(s), " ")); len(r) > n {
		return string(r[:n-1]) + "…"
	} else {
		return string(r)
	}
}

func (a *app) planShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a question task with everything that happened to it",
		Args:  cobra.ExactArgs(1),
		RunE: a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Task(ctx, args[0])
			if err != nil {
				return err
			}
			entries, err := st.Log(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Task *stage.Task   `json:"task"`
					Log  []stage.Entry `json:"log"`
				}{&s.Task, entries})
			}
			w := bufio.NewWriter(a.stdout)
			printTask(w, s)
			for _, e := range entries {
				printEntry(w, e)
			}
			if s.Response != nil {
				fmt.Fprintln(w)
				printResponse(w, s.Response)
			}
			return w.Flush()
		}),
	}
}

func printTask(w io.Writer, s *stage.State) {
	fmt.Fprintf(w, "%s  %s at %s, %d%%, of %s\n%s\n", plain(s.ID), s.Status, s.Current, s.Progress, plain(s.UserID), plainLines(s.Query))
	for _, p := range s.Plan {
		mark := " "
		switch {
		case slices.Contains(s.Completed, p):
			mark = "x"
		case p == s.Current && !s.Status.Final():
			mark = ">"
		case p == s.Current:
			mark = "!"
		}
		fmt.Fprintf(w, "  [%s] %s\n", mark, p)
	}
	if s.Error != nil {
		fmt.Fprintf(w, "error: %s\n", plain(*s.Error))
	}
}

func printEntry(w io.Writer, e stage.Entry) {
	fmt.Fprintf(w, "%s  %-8s  %-18s", stamp(e.At), e.Action, e.Stage)
	if e.Detail != "" {
		fmt.Fprintf(w, "  %s", plain(short(e.Detail, 120)))
	}
	fmt.Fprintln(w)
}

func (a *app) planWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a question task to its end",
		Args:  cobra.ExactArgs(1),
		RunE: a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Watch(ctx, args[0], func(s *stage.State) {
				if a.json {
					_ = a.printJSON(s.Task)
					return
				}
				fmt.Fprintf(a.stdout, "%s  %-11s %3d%%  %s\n", stamp(s.UpdatedAt), s.Status, s.Progress, s.Current)
			}, nil)
			if err != nil {
				return err
			}
			if s.Response != nil && !a.json {
				fmt.Fprintln(a.stdout)
				printResponse(a.stdout, s.Response)
			}
			return nil
		}),
	}
}

func (a *app) planAbortCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "abort ID",
		Short: "Stop a question task for good",
		Args:  cobra.ExactArgs(1),
		RunE: a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Apply(ctx, args[0], stage.Event{Kind: stage.Abort, Reason: reason})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s.Task)
			}
			fmt.Fprintf(a.stdout, "%s is aborted\n", plain(s.ID))
			return nil
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}
