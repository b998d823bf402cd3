package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/stage"
	"cairn/internal/workspace"
	"cairn/retriever"
)

func (a *app) askCommand() *cobra.Command {
	var template, user string
	var budget int
	cmd := &cobra.Command{
		Use:   "ask [flags] QUESTION",
		Short: "Answer a question from the folder, with sources",
		Long: `Answer a question from the folder, with sources. Passages are looked up, a
language model answers from them, and its citations are checked.

The model is that of an OpenAI-compatible endpoint:

  CAIRN_LLM_URL      such as http://127.0.0.1:11434/v1
  CAIRN_LLM_MODEL    such as qwen3
  CAIRN_LLM_API_KEY  where the endpoint wants one, else OPENAI_API_KEY
  CAIRN_LLM_JUDGE    "1": the model also judges its answers

Without an endpoint the brief is printed: give it to whoever can answer.`,
		Example: `  cairn ask "who do I call at night?"
  cairn ask --template simple_lookup "rotate a token"`,
		Args: cobra.ExactArgs(1),
		RunE: a.command(func(ctx context.Context, args []string) error {
			if budget < retriever.MinBudget || budget > retriever.MaxBudget {
				return badUsage("--max-tokens %d, want %d to %d", budget, retriever.MinBudget, retriever.MaxBudget)
			}
			return a.ask(ctx, stage.Request{UserID: user, Query: args[0], Template: template}, budget)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&template, "template", "", "plan: standard_query (default), simple_lookup, complex_research, web_enhanced or quick_answer")
	fs.StringVar(&user, "user", "local", "whose question it is")
	fs.IntVar(&budget, "max-tokens", stage.DefaultBudget, "tokens of passages in the brief")
	a.model.add(cmd)
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
		p := a.newProgress()
		_, err := w.Index(ctx, workspace.IndexRequest{Join: true}, p.show)
		p.end()
		if err != nil {
			return err
		}
	}
	st, err := a.openStages(ctx, w, a.logger(slog.LevelWarn), stageFlags{})
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := st.Create(ctx, r)
	if err != nil {
		return a.stageError(err)
	}
	if s, err = st.Watch(ctx, s.ID, nil, stage.NeedsCaller); err != nil {
		return err
	}
	b, err := st.Brief(ctx, s, budget)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(struct {
			Task  *stage.Task  `json:"task"`
			Brief *stage.Brief `json:"brief,omitempty"`
		}{&s.Task, b}); err != nil {
			return err
		}
	} else if b != nil {
		printBrief(a.stdout, b)
	} else if s.Response != nil {
		printResponse(a.stdout, s.Response)
	}
	if s.Status == stage.Failed || s.Status == stage.Aborted {
		return fmt.Errorf("the task %s is %s: %s", s.ID, s.Status, *s.Error)
	}
	return nil
}

// stageError makes wrong usage of what is the caller's fault.
func (a *app) stageError(err error) error {
	for _, c := range []stage.Code{stage.CodeParameter, stage.CodeTemplate, stage.CodePlan} {
		if stageIs(err, c) {
			return &usageError{err}
		}
	}
	return err
}

func printResponse(w io.Writer, r *stage.Response) {
	fmt.Fprintln(w, plainLines(r.Answer))
	if len(r.Sources) > 0 {
		fmt.Fprintln(w)
	}
	for i, s := range r.Sources {
		fmt.Fprintf(w, "[%d] %s", i+1, plain(strings.TrimPrefix(s.ID, "doc:")))
		if s.Title != "" {
			fmt.Fprintf(w, "  %s", plain(s.Title))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nconfidence %.2f\n", r.Confidence)
	for _, line := range r.How {
		fmt.Fprintf(w, "  %s\n", plain(line))
	}
}

func printBrief(w io.Writer, b *stage.Brief) {
	fmt.Fprintf(w, "task %s waits for %s\n\n%s\n\nQuery: %s\n", b.TaskID, b.Stage, b.Instructions, plainLines(b.Query))
	for _, p := range b.Problems {
		fmt.Fprintf(w, "Refused before: %s\n", plain(p))
	}
	for _, p := range b.Passages {
		fmt.Fprintf(w, "\n--- %s  %s\n%s\n", plain(p.ID), plain(p.Heading), plainLines(p.Text))
	}
	for _, id := range b.Omitted {
		fmt.Fprintf(w, "\n--- %s  (left out: beyond --max-tokens)\n", plain(id))
	}
}

// plainLines is plain for text of several lines.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = plain(l)
	}
	return strings.Join(lines, "\n")
}

// stamp is a time for people.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
