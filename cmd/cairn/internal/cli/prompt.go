package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"cairn/internal/face/term"
)

// Asks reports whether the command can ask the user a question.
func (a *App) Asks() bool {
	return !a.Out.JSON && a.Out.IsTerminal() && term.FromTerminal(a.Stdin)
}

// Agrees asks a question that the user answers with y or n, and reports whether the answer
// is yes. An empty answer is no.
func (a *App) Agrees(question string) (bool, error) {
	answer, err := a.Prompt(question + " [y/N] ")
	return strings.HasPrefix(strings.ToLower(answer), "y"), err
}

// maxReply bounds the answer to a question in bytes.
const maxReply = 1000

// Prompt prints a question and returns the line that the user types, without surrounding
// spaces.
func (a *App) Prompt(question string) (string, error) {
	a.Out.Printf("%s", question)
	// A reader per question loses no input, because a terminal returns one line at a time.
	line, err := bufio.NewReader(io.LimitReader(a.Stdin, maxReply)).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}
