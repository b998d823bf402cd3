package tasks

import (
	"context"
	"fmt"
	"os"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/job"
	"cairn/internal/face/host"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
	"cairn/internal/task/notes"
	"cairn/retriever"
)

// Ask returns the command that answers a question.
func Ask(c *cli.App) *cli.Command {
	a := &app{App: c}
	var template, user string
	var budget int
	var keep bool
	cmd := cli.NewCommand("ask [flags] QUESTION", "Answer a question from the folder, with sources",
		a.WithWorkspace("ask", workspace.Owning, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			if _, err := a.Refresh(ctx, w, retriever.Hybrid, cli.VectorsLimit); err != nil {
				return err
			}
			st, err := host.OpenStages(ctx, w, a.Logger(), &host.StageOptions{StageOptions: workspace.StageOptions{Rules: stage.Rules{WebWait: askWebWait}}})
			if err != nil {
				return err
			}
			defer st.Close()
			s, err := st.Create(ctx, stage.Request{UserID: user, Query: args[0], Template: template})
			if err != nil {
				return err
			}
			if err := a.awaitAnswer(ctx, st, s, budget); err != nil || !keep {
				return err
			}
			t, err := w.Tasks(&workspace.TaskOptions{Person: true})
			if err != nil {
				return err
			}
			defer t.Close()
			made, err := t.Remember(ctx, st, "", notes.Request{Answer: s.ID})
			if err != nil {
				return fmt.Errorf("%w; keep it later with cairn remember --answer %s", err, s.ID)
			}
			a.Out.Notes.Lines(made.Text())
			return nil
		}))
	fs := cmd.Flags()
	fs.StringVar(&template, "template", "", "plan: standard_query (default), simple_lookup, complex_research, web_enhanced or quick_answer")
	fs.StringVar(&user, "user", "local", "name of the user")
	cli.IntVar(fs, &budget, "max-tokens", stage.DefaultBudget, retriever.MinBudget, retriever.MaxBudget, "most tokens of passages in the brief")
	fs.BoolVar(&keep, "remember", false, "keep the answer as a note that rests on the sections it cites")
	a.AddModel(cmd)
	return cmd
}

// askWebWait is how long a task of cairn ask waits for a client that searches the web. A
// client that works in the folder takes the task immediately.
const askWebWait = 5 * time.Second

// awaitAnswer waits until a task has ended or needs an answer, and prints the response or
// the brief. It also waits for a web search, which the task skips after askWebWait.
func (a *app) awaitAnswer(ctx context.Context, st *workspace.Stages, s *stage.State, budget int) error {
	s, err := cli.WithProgress(a.App, func(bar *term.Progress) (*stage.State, error) {
		return st.Watch(ctx, s.ID, func(s *stage.State) {
			step := job.Progress{Phase: string(s.Current), Done: len(s.Completed), Total: len(s.Plan)}
			if s.Status == stage.Waiting && s.Current == stage.WebSearch && stage.Delegated(s) {
				step = job.Progress{Phase: fmt.Sprintf("waiting up to %v for a client that searches the web", s.Machine.Rules.WebWait)}
			}
			bar.Show(step)
		}, func(s *stage.State) bool { return stage.NeedsCaller(s) && s.Current != stage.WebSearch })
	})
	if err != nil {
		return err
	}
	b, err := st.Brief(ctx, s, budget)
	if err != nil {
		return err
	}
	report := struct {
		Task  *stage.Task  `json:"task"`
		Brief *stage.Brief `json:"brief,omitempty"`
	}{&s.Task, b}
	err = a.Out.Print(report, func() {
		if b != nil {
			if b.Stage == stage.ExecutorReasoning && os.Getenv("CAIRN_LLM_URL") == "" {
				a.Out.Notes.Dim("No language model is set. This is what a model would get: the question and the passages found for it.")
				a.Out.Notes.Dim("Set CAIRN_LLM_URL and CAIRN_LLM_MODEL for an answer (see cairn ask --help), or answer with the command at the end.")
			}
			a.Out.Brief(b)
		} else if s.Response != nil {
			a.Out.Response(s.Response)
		}
	})
	if err == nil && (s.Status == stage.Failed || s.Status == stage.Aborted) {
		err = fmt.Errorf("the task %s is %s: %s", s.ID, s.Status, *s.Error)
	}
	return err
}
