package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/doctask"
)

func (a *app) taskCommand() *cobra.Command {
	return group("task", "Work with the tasks in documents, below a heading Tasks",
		a.taskViewCommand(), a.taskStartCommand(), a.taskCompleteCommand())
}

// withDocument opens the folder's tasks for fn. The first argument names a document from
// the current folder.
func (a *app) withDocument(fn func(context.Context, *workspace.Tasks, []string) error) func(*cobra.Command, []string) error {
	return a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
		sel, err := a.selection()
		if err != nil {
			return err
		}
		args[0] = a.paths(sel).Document(args[0])
		return fn(ctx, t, args)
	})
}

func (a *app) taskViewCommand() *cobra.Command {
	return newCommand("view DOCUMENT [TASK...]", "Show tasks of a document; without a task, list them",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			if len(args) == 1 {
				return a.listDocumentTasks(ctx, t, args[0])
			}
			v, err := t.Documents.ViewTask(ctx, doctask.ViewTaskRequest{Document: args[0], Task: args[1:]})
			if err != nil {
				return err
			}
			return a.print(v, func(w *term.Writer) {
				for i := range v.Tasks {
					if i > 0 {
						w.Printf("\n")
					}
					w.DocumentTask(&v.Tasks[i])
				}
			})
		}))
}

func (a *app) listDocumentTasks(ctx context.Context, t *workspace.Tasks, document string) error {
	list, err := t.Documents.Task(ctx, doctask.TaskRequest{Document: document})
	if err != nil {
		return err
	}
	return a.print(list, func(w *term.Writer) {
		var rows [][]string
		if list.Tasks != nil {
			for _, l := range *list.Tasks {
				rows = append(rows, []string{term.Plain(l.Slug), term.StatusWord(l.Status), term.Plain(l.Title)})
			}
		}
		w.Rows(rows)
		if list.NextTask != nil {
			a.stderr.Printf("next: cairn task start %s %s\n", list.Document, term.Plain(list.NextTask.Slug))
		}
	})
}

func (a *app) taskStartCommand() *cobra.Command {
	return newCommand("start DOCUMENT TASK", "Print a task, its workflow and the documents it refers to",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			v, err := t.Documents.StartTask(ctx, doctask.StartTaskRequest{Document: args[0], Task: args[1]})
			if err != nil {
				return err
			}
			return a.print(v, func(w *term.Writer) {
				w.TaskToWork(&v.Task)
				a.warn(v.Warnings...)
			})
		}))
}

func (a *app) taskCompleteCommand() *cobra.Command {
	var note string
	cmd := newCommand("complete [flags] DOCUMENT TASK", "Set a task completed, and show the next one",
		a.withDocument(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			v, err := t.Documents.CompleteTask(ctx, doctask.CompleteTaskRequest{Document: args[0], Task: args[1], Note: note})
			if err != nil {
				return err
			}
			return a.print(v, func(w *term.Writer) {
				w.Printf("%s  completed %s\n", term.Plain(v.CompletedTask.Slug), v.CompletedTask.CompletedDate)
				a.warn(v.Warnings...)
				if v.NextTask == nil {
					w.Printf("nothing left to do in this document\n")
				} else {
					w.Printf("next: %s  %s\n", term.Plain(v.NextTask.Slug), term.Plain(v.NextTask.Title))
				}
			})
		}))
	cmd.Flags().StringVar(&note, "note", "", "note to store with the task, up to 1,000 characters")
	return cmd
}
