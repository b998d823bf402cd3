package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/finder"
	"cairn/internal/host"
	"cairn/internal/stage"
	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) planAnswerCommand() *cobra.Command {
	var cite []string
	var notFound, web bool
	cmd := newCommand("answer ID", "Answer a question task that waits for an answer",
		a.command(func(ctx context.Context, args []string) error {
			flags := stage.Answered{Draft: stage.Draft{Citations: cite, NotFound: notFound}, NeedsWebSearch: web}
			return a.answerTask(ctx, args[0], flags)
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&cite, "cite", nil, "ids of passages that the answer rests on")
	fs.BoolVar(&notFound, "not-found", false, "the passages do not have the answer; the text may be empty")
	fs.BoolVar(&web, "needs-web-search", false, "ask for a web search, once a task")
	a.addModel(cmd)
	return cmd
}

func (a *app) answerTask(ctx context.Context, id string, flags stage.Answered) error {
	if err := a.servers.check(); err != nil {
		return err
	}
	w, err := a.open(ctx, "plan answer", workspace.Owning, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	st, err := host.OpenStages(ctx, w, a.logger(), &host.StageOptions{Servers: a.servers.addresses(), Remote: true})
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := st.Task(ctx, id)
	if err != nil {
		return stageError(err)
	}
	b, err := st.Brief(ctx, s, 0)
	if err != nil {
		return err
	}
	if b == nil || b.Stage != stage.ExecutorReasoning {
		return fmt.Errorf("task %s is %s at %s, and takes no answer now", id, s.Status, s.Current)
	}
	text, err := a.answerText(ctx, b, flags)
	if err != nil {
		return err
	}
	answer, err := readAnswer(text, b, flags)
	if err != nil {
		return err
	}
	if s, err = st.Answer(ctx, id, answer, stage.Event{Run: b.Run}); err != nil {
		return stageError(err)
	}
	return a.awaitAnswer(ctx, st, s, 0)
}

// maxAnswerInput bounds the text of an answer, in bytes.
const maxAnswerInput = 1 << 20

// answerText reads the answer from standard input, or has it written in the editor.
func (a *app) answerText(ctx context.Context, b *stage.Brief, flags stage.Answered) (string, error) {
	if !term.FromTerminal(a.stdin) {
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxAnswerInput))
		return string(text), err
	}
	if flags.NotFound || flags.NeedsWebSearch {
		return "", nil
	}
	editor := finder.Editor()
	if len(editor) == 0 {
		return "", badUsage("write the answer to standard input, or set EDITOR")
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
	if err := a.startProgram(ctx, append(editor, name)); err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	written, _, _ := strings.Cut(string(text), answerCut)
	if strings.TrimSpace(written) == "" {
		return "", errors.New("the answer is empty, so the task waits on")
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

// citedInText matches the citations in a text: the number of a passage or an id.
var citedInText = regexp.MustCompile(`\[(\d{1,2})\]|\[?(doc:[^\s\]()]+)\]?`)

// readAnswer makes an answer of a text and the flags.
func readAnswer(text string, b *stage.Brief, flags stage.Answered) (*stage.Answered, error) {
	a := flags
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		dec := json.NewDecoder(bytes.NewReader([]byte(text)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a); err != nil {
			return nil, badUsage("the answer looks like JSON, and is not {\"answer\", \"citations\", \"not_found\"}: %v", err)
		}
		a.Citations = append(a.Citations, flags.Citations...)
		return &a, nil
	}
	a.Answer = text
	for _, m := range citedInText.FindAllStringSubmatch(text, -1) {
		id := strings.TrimRight(m[2], ".,;:!?")
		if m[1] != "" {
			n, _ := strconv.Atoi(m[1]) // at most two digits
			if n < 1 || n > len(b.Passages) {
				return nil, badUsage("the answer cites [%d], want [1] to [%d]", n, len(b.Passages))
			}
			id = b.Passages[n-1].ID
		}
		a.Citations = append(a.Citations, id)
	}
	return &a, nil
}
