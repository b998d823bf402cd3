package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/task/doctask"
	"cairn/internal/task/taskgraph"
	"cairn/internal/task/workflow"
	"cairn/internal/workspace"
)

func (a *app) taskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Work with the tasks inside documents, below a heading Tasks",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.taskViewCommand(), a.taskStartCommand(), a.taskCompleteCommand())
	return cmd
}

func (a *app) taskViewCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "view DOCUMENT [TASK...]",
		Short:   "Show tasks of a document; without a task, list them",
		Example: "  cairn task view /project/setup.md initialize-config",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			if len(args) == 1 {
				return a.listDocumentTasks(ctx, t, args[0])
			}
			v, err := t.Documents.ViewTask(ctx, doctask.ViewTaskRequest{Document: args[0], Task: args[1:]})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(v)
			}
			s := styleOf(a.stdout)
			for i, d := range v.Tasks {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				fmt.Fprintf(a.stdout, "%s  %s\n", s.paint(bold, plain(d.Slug)), plain(d.Status))
				for _, row := range [][2]string{{"parent", d.Parent}, {"workflow", d.WorkflowName}, {"main workflow", d.MainWorkflowName}, {"links to", d.LinkedDocument}} {
					if row[1] != "" {
						fmt.Fprintf(a.stdout, "  %-13s  %s\n", row[0], plain(row[1]))
					}
				}
				for _, r := range d.ReferencedDocuments {
					gone := ""
					if r.Missing {
						gone = " (there is none)"
					}
					fmt.Fprintf(a.stdout, "  %-13s  %s%s\n", "refers to", strings.Repeat("  ", r.Depth)+plain(r.Path), gone)
				}
				a.printText(d.Content)
			}
			return nil
		}),
	}
}

func (a *app) listDocumentTasks(ctx context.Context, t *workspace.Tasks, document string) error {
	list, err := t.Documents.Task(ctx, doctask.TaskRequest{Document: document})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	rows := [][]string{}
	if list.Tasks != nil {
		for _, l := range *list.Tasks {
			rows = append(rows, []string{plain(l.Slug), plain(l.Status), plain(l.Title)})
		}
	}
	a.rows(rows)
	if list.NextTask != nil {
		fmt.Fprintf(a.stderr, "next: cairn task start %s %s\n", list.Document, plain(list.NextTask.Slug))
	}
	return nil
}

// printText prints text of a document, without what would steer a terminal.
func (a *app) printText(text string) {
	fmt.Fprintln(a.stdout)
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintln(a.stdout, cut(strings.TrimRight(line, "\r\n"), 1<<20))
	}
}

func (a *app) taskStartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "start DOCUMENT TASK",
		Short: "Print a task with its workflow and the text of what it refers to",
		Args:  cobra.ExactArgs(2),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			v, err := t.Documents.StartTask(ctx, doctask.StartTaskRequest{Document: args[0], Task: args[1]})
			if err != nil {
				return err
			}
			if blocked, ok := errors.AsType[*taskgraph.BlockedError](t.Graph.CheckStart(ctx, v.Document, v.Task.Slug)); ok {
				v.Warnings = append(v.Warnings, blocked.Error())
			}
			if a.json {
				return a.printJSON(v)
			}
			a.printWork(&v.Task)
			for _, w := range v.Warnings {
				fmt.Fprintf(a.stderr, "cairn: warning: %s\n", plain(w))
			}
			return nil
		}),
	}
}

func (a *app) printWork(w *doctask.TaskToWork) {
	s := styleOf(a.stdout)
	fmt.Fprintf(a.stdout, "%s  %s\n", s.paint(bold, plain(w.Slug)), plain(w.Status))
	a.printText(w.Content)
	for _, flow := range []*workflow.Workflow{w.Workflow, w.MainWorkflow} {
		if flow != nil {
			fmt.Fprintf(a.stdout, "\n%s\n", s.paint(dim, "workflow "+plain(flow.Name)))
			a.printText(flow.Content)
		}
	}
	a.printLoaded(s, w.ReferencedDocuments)
}

func (a *app) printLoaded(s style, list []doctask.LoadedDocument) {
	for _, d := range list {
		fmt.Fprintf(a.stdout, "\n%s\n", s.paint(dim, plain(d.Path)))
		switch {
		case d.Missing:
			fmt.Fprintln(a.stdout, "(there is no such document)")
		case d.Omitted:
			fmt.Fprintln(a.stdout, "(left out: the answer is full)")
		default:
			a.printText(d.Content)
		}
		a.printLoaded(s, d.Children)
	}
}

func (a *app) taskCompleteCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "complete [flags] DOCUMENT TASK",
		Short: "Set a task completed, and show the next one",
		Args:  cobra.ExactArgs(2),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			v, err := t.Documents.CompleteTask(ctx, doctask.CompleteTaskRequest{Document: args[0], Task: args[1], Note: note})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.stdout, "%s  completed %s\n", plain(v.CompletedTask.Slug), v.CompletedTask.CompletedDate)
			for _, w := range v.Warnings {
				fmt.Fprintf(a.stderr, "cairn: warning: %s\n", plain(w))
			}
			if v.NextTask == nil {
				fmt.Fprintln(a.stdout, "nothing left to do in this document")
				return nil
			}
			fmt.Fprintf(a.stdout, "next: %s  %s\n", plain(v.NextTask.Slug), plain(v.NextTask.Title))
			return nil
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "what is to be said about it, up to 1,000 characters")
	return cmd
}
