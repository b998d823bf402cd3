package bench

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cairn/benchmarks"
	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

func (a *app) benchAskCommand() *cli.Command {
	var file string
	cmd := cli.NewCommand("ask --queries FILE", "Collect questions for bench self: search, and mark the relevant results",
		a.WithWorkspace("bench ask", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			r, err := a.Refresh(ctx, w, retriever.Hybrid, 30*time.Second)
			if err != nil {
				return err
			}
			if err := a.collect(ctx, w, file); err != nil {
				return err
			}
			return r.Finish(ctx)
		}))
	cmd.Flags().StringVar(&file, "queries", "", "file to add the questions to")
	_ = cmd.MarkFlagRequired("queries")
	a.AddModel(cmd)
	return cmd
}

// collect reads questions, and marks for their results, until the input ends.
func (a *app) collect(ctx context.Context, w *workspace.Workspace, file string) error {
	in := bufio.NewScanner(a.Stdin)
	read := func(prompt string) (string, bool) {
		a.Out.Notes.Printf("%s", prompt)
		if ctx.Err() != nil || !in.Scan() {
			return "", false
		}
		text := strings.TrimSpace(in.Text())
		return text, text != "q"
	}
	added, paths := 0, a.Paths(w.Selection())
	for {
		text, ok := read("question> ")
		if !ok {
			break
		}
		if text == "" {
			continue
		}
		answer, err := index.SearchOp.Call(ctx, w.Folder, retriever.Query{Text: text, Limit: 9}, nil)
		if err != nil {
			a.Out.Notes.Warn("%v", err)
			continue
		}
		a.Out.Results(answer, text, 0, paths)
		marks, ok := read("right results (numbers or path#anchor; Enter for none)> ")
		if !ok {
			break
		}
		for _, mark := range strings.Fields(marks) {
			place, err := markedPlace(ctx, w, answer, mark, paths)
			if err == nil {
				err = benchmarks.Question{Text: text, Place: place}.Append(file)
			}
			if err != nil {
				a.Out.Notes.Warn("%v", err)
				continue
			}
			added++
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("reading questions: %w", err)
	}
	return a.Out.Line(struct {
		File  string `json:"file"`
		Added int    `json:"added"`
	}{file, added}, "%s added to %s", view.Count(added, "line"), file)
}

// markedPlace returns the place that a mark names: the number of a result, or a place that
// can be read.
func markedPlace(ctx context.Context, w *workspace.Workspace, answer *retriever.Answer, mark string, paths term.Places) (string, error) {
	n, err := strconv.Atoi(mark)
	if err != nil {
		mark = paths.Document(mark)
		_, err := index.ReadOp.Call(ctx, w.Folder, retriever.ReadRequest{Path: mark}, nil)
		return mark, err
	}
	if n < 1 || n > len(answer.Results) {
		return "", fmt.Errorf("%d is not the number of a result, want 1 to %d", n, len(answer.Results))
	}
	return answer.Results[n-1].Place(), nil
}
