package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/host"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
)

func (a *app) planAnswerCommand() *cli.Command {
	var cite []string
	var notFound, web bool
	cmd := cli.NewCommand("answer ID", "Answer a question task that waits for an answer",
		a.Command(func(ctx context.Context, args []string) error {
			flags := stage.Answered{Draft: stage.Draft{Citations: cite, NotFound: notFound}, NeedsWebSearch: web}
			servers, err := a.servers.Addresses()
			if err != nil {
				return err
			}
			w, err := a.Open(ctx, "plan answer", workspace.Owning, nil)
			if err != nil {
				return err
			}
			defer w.Close()
			st, err := host.OpenStages(ctx, w, a.Logger(), &host.StageOptions{Servers: servers, StageOptions: workspace.StageOptions{Remote: true}})
			if err != nil {
				return err
			}
			defer st.Close()
			args[0] = fullID(ctx, st, args[0])
			// Complete the lookup first if an earlier process has left it.
			s, err := st.Watch(ctx, args[0], nil, func(s *stage.State) bool {
				return s.Current != stage.IntentAnalysis && s.Current != stage.EmbeddingLookup
			})
			if err != nil {
				return err
			}
			b, err := st.Brief(ctx, s, 0)
			if err != nil {
				return err
			}
			if b == nil || b.Stage != stage.ExecutorReasoning {
				return fmt.Errorf("task %s is %s at %s and does not wait for an answer", args[0], s.Status, s.Current)
			}
			text, err := a.answerText(ctx, b, flags)
			if err != nil {
				return err
			}
			answer, err := b.ReadAnswer(text, flags)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if s, err = st.Answer(ctx, args[0], answer, stage.Event{Run: b.Run}); err != nil {
				return err
			}
			return a.awaitAnswer(ctx, st, s, 0)
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&cite, "cite", nil, "ids of passages that support the answer")
	fs.BoolVar(&notFound, "not-found", false, "the passages do not contain the answer; the text may be empty")
	fs.BoolVar(&web, "needs-web-search", false, "request a web search; possible once per task")
	a.AddModel(cmd)
	return cmd
}

// maxAnswerInput bounds the text of an answer, in bytes.
const maxAnswerInput = 1 << 20

// answerText reads the answer from standard input. If that is a terminal, the user writes the
// answer in the editor.
func (a *app) answerText(ctx context.Context, b *stage.Brief, flags stage.Answered) (string, error) {
	if !term.FromTerminal(a.Stdin) {
		text, err := io.ReadAll(io.LimitReader(a.Stdin, maxAnswerInput))
		return string(text), err
	}
	if flags.NotFound || flags.NeedsWebSearch {
		return "", nil
	}
	editor, err := cli.Editor("write the answer to standard input")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "cairn-answer")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "answer.md")
	var form strings.Builder
	fmt.Fprintf(&form, "\n%s\n%s\n\nCite passages by number, such as [1], or by id.\n", answerCut, b.Query)
	for _, p := range b.Problems {
		fmt.Fprintf(&form, "Refused before: %s\n", p)
	}
	for i, p := range b.Passages {
		fmt.Fprintf(&form, "\n[%d] %s  %s\n%s\n", i+1, p.ID, p.Heading, p.Text)
	}
	if err := os.WriteFile(name, []byte(form.String()), 0o600); err != nil {
		return "", err
	}
	if err := a.Edit(ctx, editor, name, 1); err != nil {
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
