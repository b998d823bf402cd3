package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"cairn/internal/host"
	"cairn/internal/index"
	"cairn/internal/stage"
	"cairn/internal/term"
	"cairn/internal/workspace"
	"cairn/retriever"
)

func (a *app) askCommand() *cobra.Command {
	var template, user string
	var budget int
	cmd := &cobra.Command{
		Use:   "ask [flags] QUESTION",
		Short: "Answer a question from the folder, with sources",
		Long: `Answer a question from the folder, with sources. Cairn searches for passages, a
language model answers from them, and cairn checks its citations.

The model is served by an OpenAI-compatible endpoint:

  CAIRN_LLM_URL      such as http://127.0.0.1:11434/v1
  CAIRN_LLM_MODEL    such as qwen3
  CAIRN_LLM_API_KEY  the key of the endpoint, if it needs one (default: OPENAI_API_KEY)
  CAIRN_LLM_JUDGE    "1": the model also judges its answers

Without an endpoint the brief is printed, for a person or agent to answer.`,
		Example: `  cairn ask "who do I call at night?"
  cairn ask --template simple_lookup "rotate a token"`,
		Args: cobra.ExactArgs(1),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.ask(ctx, stage.Request{UserID: user, Query: args[0], Template: template}, budget)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&template, "template", "", "plan: standard_query (default), simple_lookup, complex_research, web_enhanced or quick_answer")
	fs.StringVar(&user, "user", "local", "name of the person who asks")
	intVar(fs, &budget, "max-tokens", stage.DefaultBudget, retriever.MinBudget, retriever.MaxBudget, "most tokens of passages in the brief")
	a.addModel(cmd)
	return cmd
}

func (a *app) ask(ctx context.Context, r stage.Request, budget int) error {
	w, err := a.open(ctx, "ask", workspace.Owning, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	status, err := w.Status(ctx)
	if err != nil {
		return err
	}
	if status.State == "missing" {
		err := a.withProgress(func(bar *term.Progress) error {
			_, err := w.Index(ctx, index.IndexRequest{Join: true}, bar.Show)
			return err
		})
		if err != nil {
			return err
		}
	}
	st, err := host.OpenStages(ctx, w, a.logger(slog.LevelWarn), nil)
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := st.Create(ctx, r)
	if err != nil {
		return stageError(err)
	}
	if s, err = st.Watch(ctx, s.ID, nil, stage.NeedsCaller); err != nil {
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

// stageError turns the errors of a wrong request into usage errors.
func stageError(err error) error {
	for _, c := range []stage.Code{stage.CodeParameter, stage.CodeTemplate, stage.CodePlan} {
		if errors.Is(err, stage.Is(c)) {
			return &usageError{err}
		}
	}
	return err
}
