// Package tasks holds the commands for cards, tasks in documents and question tasks.
package tasks

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/doctask"
)

// app adds the commands of this package to cli.App.
type app struct {
	*cli.App
	servers cli.Servers // of cairn plan
}

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{App: c}
	list := a.cardListCommand() // with its name in CueDeck
	list.Short += "; the same as card list"
	return []*cli.Command{a.cardCommand(), a.rememberCommand(), list, a.graphCommand(), a.taskCommand(), a.dagCommand(), a.planCommand(), a.workerCommand()}
}

func (a *app) taskCommand() *cli.Command {
	view := cli.NewCommand("view DOCUMENT [TASK...]", "Show tasks of a document; without a task, list them",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			if len(args) == 1 {
				return term.Show(a.Out, (*term.Output).TaskList)(t.Documents.Task(ctx, doctask.TaskRequest{Document: args[0]}))
			}
			return term.Show(a.Out, (*term.Output).DocumentTasks)(t.Documents.ViewTask(ctx, doctask.ViewTaskRequest{Document: args[0], Task: args[1:]}))
		}))
	start := cli.NewCommand("start DOCUMENT TASK", "Print a task, its workflow and the documents it refers to",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			return term.Show(a.Out, (*term.Output).StartedTask)(t.Documents.StartTask(ctx, doctask.StartTaskRequest{Document: args[0], Task: args[1]}))
		}))
	var note string
	complete := cli.NewCommand("complete [flags] DOCUMENT TASK", "Set a task completed, and show the next one",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			return term.Show(a.Out, (*term.Output).CompletedTask)(t.Documents.CompleteTask(ctx, doctask.CompleteTaskRequest{Document: args[0], Task: args[1], Note: note}))
		}))
	complete.Flags().StringVar(&note, "note", "", "note to store with the task, up to 1,000 characters")
	return cli.Group("task", "Work with the tasks in documents, below a heading Tasks", view, start, complete)
}

// withDocument opens the folder's tasks for fn. The first argument names a document from
// the current folder.
func (a *app) withDocument(fn func(context.Context, *workspace.Tasks, []string) error) func(*cli.Command, []string) error {
	return a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		sel, err := a.Selection()
		if err != nil {
			return err
		}
		args[0] = a.Paths(sel).Document(args[0])
		return fn(ctx, t, args)
	})
}
