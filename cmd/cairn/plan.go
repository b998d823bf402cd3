package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/host"
	"cairn/internal/stage"
	"cairn/internal/term"
	"cairn/internal/workspace"
	"cairn/retriever"
)

func (a *app) planCommand() *cobra.Command {
	cmd := group("plan", "Show question tasks, answer and stop them", a.planListCommand(), a.planShowCommand(), a.planWatchCommand(), a.planAnswerCommand(), a.planAbortCommand())
	a.servers.add(cmd.PersistentFlags())
	return cmd
}

// withStages opens the question tasks of the folder for fn. It works on no stage.
func (a *app) withStages(fn func(ctx context.Context, st *workspace.Stages, args []string) error) func(*cobra.Command, []string) error {
	open := func(ctx context.Context) (*workspace.Stages, error) {
		sel, _, err := a.choose()
		if err != nil {
			return nil, err
		}
		servers, err := a.servers.addresses()
		if err != nil {
			return nil, err
		}
		servers.AMQP = "" // these commands send nothing
		o := &workspace.StageOptions{Workers: -1, Logger: a.logger()}
		if o.Store, _, err = servers.Open(ctx, o.Logger); err != nil {
			return nil, err
		}
		return workspace.OpenStages(sel, o)
	}
	return with(a, open, func(ctx context.Context, st *workspace.Stages, args []string) error {
		return stageError(fn(ctx, st, args))
	})
}

func (a *app) planListCommand() *cobra.Command {
	var q stage.Query
	var status string
	cmd := newCommand("list", "List question tasks, newest first",
		a.withStages(func(ctx context.Context, st *workspace.Stages, _ []string) error {
			q.Status = stage.Status(status)
			list, err := st.List(ctx, q)
			if err != nil {
				return err
			}
			tasks := []stage.Task{}
			for _, s := range list {
				tasks = append(tasks, s.Task)
			}
			return a.print(tasks, func(w *term.Writer) {
				for _, s := range list {
					w.Printf("%s  %-11s %3d%%  %-18s  %s  %s\n", term.Plain(s.ID), s.Status, s.Progress, s.Current, term.Time(s.StartedAt), term.Cut(term.OneLine(s.Query), 60))
				}
			})
		}))
	cmd.Flags().StringVar(&q.UserID, "user", "", "only tasks of this user")
	choiceVar(cmd.Flags(), &status, "status", "only waiting, in_progress, complete, failed or aborted ones", "waiting", "in_progress", "complete", "failed", "aborted")
	intVar(cmd.Flags(), &q.Limit, "limit", 20, 1, 1000, "most tasks to list")
	return cmd
}

func (a *app) planShowCommand() *cobra.Command {
	return newCommand("show ID", "Show a question task with its log",
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
			return a.print(report, func(w *term.Writer) {
				w.QuestionTask(s)
				for _, e := range entries {
					w.Entry(e)
				}
				if s.Response != nil {
					w.Printf("\n")
					w.Response(s.Response)
				}
			})
		}))
}

func (a *app) planWatchCommand() *cobra.Command {
	return newCommand("watch ID", "Follow a question task to its end",
		a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Watch(ctx, args[0], func(s *stage.State) {
				_ = a.printLine(s.Task, "%s  %-11s %3d%%  %s", term.Time(s.UpdatedAt), s.Status, s.Progress, s.Current)
			}, nil)
			if err != nil {
				return err
			}
			if s.Response != nil && !a.json {
				a.stdout.Printf("\n")
				a.stdout.Response(s.Response)
			}
			return nil
		}))
}

func (a *app) planAbortCommand() *cobra.Command {
	var reason string
	cmd := newCommand("abort ID", "Stop a question task",
		a.withStages(func(ctx context.Context, st *workspace.Stages, args []string) error {
			s, err := st.Apply(ctx, args[0], stage.Event{Kind: stage.Abort, Reason: reason})
			if err != nil {
				return err
			}
			return a.printLine(s.Task, "%s is aborted", term.Plain(s.ID))
		}))
	cmd.Flags().StringVar(&reason, "reason", "", "reason to record")
	return cmd
}

func (a *app) askCommand() *cobra.Command {
	var template, user string
	var budget int
	cmd := newCommand("ask [flags] QUESTION", "Answer a question from the folder, with sources",
		a.withWorkspace("ask", workspace.Owning, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			if _, err := a.refresh(ctx, w, retriever.Hybrid, vectorsLimit); err != nil {
				return err
			}
			st, err := host.OpenStages(ctx, w, a.logger(), &host.StageOptions{WebWait: askWebWait})
			if err != nil {
				return err
			}
			defer st.Close()
			s, err := st.Create(ctx, stage.Request{UserID: user, Query: args[0], Template: template})
			if err != nil {
				return stageError(err)
			}
			return a.awaitAnswer(ctx, st, s, budget)
		}))
	fs := cmd.Flags()
	fs.StringVar(&template, "template", "", "plan: standard_query (default), simple_lookup, complex_research, web_enhanced or quick_answer")
	fs.StringVar(&user, "user", "local", "name of the user")
	intVar(fs, &budget, "max-tokens", stage.DefaultBudget, retriever.MinBudget, retriever.MaxBudget, "most tokens of passages in the brief")
	a.addModel(cmd)
	return cmd
}

// askWebWait is how long a task of cairn ask waits for a client that searches the web. A
// client that works in the folder takes the task immediately.
const askWebWait = 5 * time.Second

// awaitAnswer waits until a task has ended or needs an answer, and prints the response or
// the brief. It also waits for a web search, which the task skips after askWebWait.
func (a *app) awaitAnswer(ctx context.Context, st *workspace.Stages, s *stage.State, budget int) error {
	s, err := st.Watch(ctx, s.ID, func(s *stage.State) {
		if s.Status == stage.Waiting && s.Current == stage.WebSearch && stage.Delegated(s) {
			a.stderr.Printf("waiting up to %v for a client that searches the web\n", s.Machine.Rules.WebWait)
		}
	}, func(s *stage.State) bool { return stage.NeedsCaller(s) && s.Current != stage.WebSearch })
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
	err = a.print(report, func(w *term.Writer) {
		if b != nil {
			if b.Stage == stage.ExecutorReasoning && os.Getenv("CAIRN_LLM_URL") == "" {
				a.stderr.Dim("No language model is set. This is what a model would get: the question and the passages found for it.")
				a.stderr.Dim("Set CAIRN_LLM_URL and CAIRN_LLM_MODEL for an answer (see cairn ask --help), or answer with the command at the end.")
			}
			w.Brief(b)
		} else if s.Response != nil {
			w.Response(s.Response)
		}
	})
	if err == nil && (s.Status == stage.Failed || s.Status == stage.Aborted) {
		err = fmt.Errorf("the task %s is %s: %s", s.ID, s.Status, *s.Error)
	}
	return err
}

// stageError makes the errors of a wrong request usage errors.
func stageError(err error) error {
	for _, c := range []stage.Code{stage.CodeParameter, stage.CodeTemplate, stage.CodePlan} {
		if errors.Is(err, stage.Is(c)) {
			return &usageError{err}
		}
	}
	return err
}

func (a *app) planAnswerCommand() *cobra.Command {
	var cite []string
	var notFound, web bool
	cmd := newCommand("answer ID", "Answer a question task that waits for an answer",
		a.command(func(ctx context.Context, args []string) error {
			flags := stage.Answered{Draft: stage.Draft{Citations: cite, NotFound: notFound}, NeedsWebSearch: web}
			return a.answerTask(ctx, args[0], flags)
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&cite, "cite", nil, "ids of passages that support the answer")
	fs.BoolVar(&notFound, "not-found", false, "the passages do not contain the answer; the text may be empty")
	fs.BoolVar(&web, "needs-web-search", false, "request a web search; possible once per task")
	a.addModel(cmd)
	return cmd
}

func (a *app) answerTask(ctx context.Context, id string, flags stage.Answered) error {
	servers, err := a.servers.addresses()
	if err != nil {
		return err
	}
	w, err := a.open(ctx, "plan answer", workspace.Owning, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	st, err := host.OpenStages(ctx, w, a.logger(), &host.StageOptions{Servers: servers, Remote: true})
	if err != nil {
		return err
	}
	defer st.Close()
	// Complete the lookup first if an earlier process has left it.
	s, err := st.Watch(ctx, id, nil, func(s *stage.State) bool {
		return s.Current != stage.IntentAnalysis && s.Current != stage.EmbeddingLookup
	})
	if err != nil {
		return stageError(err)
	}
	b, err := st.Brief(ctx, s, 0)
	if err != nil {
		return err
	}
	if b == nil || b.Stage != stage.ExecutorReasoning {
		return fmt.Errorf("task %s is %s at %s and does not wait for an answer", id, s.Status, s.Current)
	}
	text, err := a.answerText(ctx, b, flags)
	if err != nil {
		return err
	}
	answer, err := b.ReadAnswer(text, flags)
	if err != nil {
		return &usageError{err}
	}
	if s, err = st.Answer(ctx, id, answer, stage.Event{Run: b.Run}); err != nil {
		return stageError(err)
	}
	return a.awaitAnswer(ctx, st, s, 0)
}

// maxAnswerInput bounds the text of an answer, in bytes.
const maxAnswerInput = 1 << 20

// answerText reads the answer from standard input. If that is a terminal, the user writes the
// answer in the editor.
func (a *app) answerText(ctx context.Context, b *stage.Brief, flags stage.Answered) (string, error) {
	if !term.FromTerminal(a.stdin) {
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxAnswerInput))
		return string(text), err
	}
	if flags.NotFound || flags.NeedsWebSearch {
		return "", nil
	}
	editor, err := editor("write the answer to standard input")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "cairn-answer")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "answer.md")
	if err := os.WriteFile(name, []byte(answerForm(b)), 0o600); err != nil {
		return "", err
	}
	if err := a.edit(ctx, editor, name, 1); err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	written, _, _ := strings.Cut(string(text), answerCut)
	if strings.TrimSpace(written) == "" {
		return "", errors.New("the answer is empty; the task still waits for one")
	}
	return written, nil
}

// answerCut separates the answer from the passages below it in the editor.
const answerCut = "\n<!-- What follows is not part of the answer. -->\n"

// answerForm is the file that the editor opens.
func answerForm(b *stage.Brief) string {
	var f strings.Builder
	fmt.Fprintf(&f, "\n%s\n%s\n\nCite passages by number, such as [1], or by id.\n", answerCut, b.Query)
	for _, p := range b.Problems {
		fmt.Fprintf(&f, "Refused before: %s\n", p)
	}
	for i, p := range b.Passages {
		fmt.Fprintf(&f, "\n[%d] %s  %s\n%s\n", i+1, p.ID, p.Heading, p.Text)
	}
	return f.String()
}
