package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/folder/index"
	"cairn/internal/task/cards"
	"cairn/internal/toolbox"
)

//go:embed instructions.md
var instructions string

// instructionsWait bounds the wait for the state of the index at the start of a session:
// the instructions are useful without the state.
const instructionsWait = 150 * time.Millisecond

// instructions returns the instructions for a client: how to use the tools, and the
// current state of the index and of the workspace.
func (s *Server) instructions(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, instructionsWait)
	defer cancel()
	st, err := index.StatusOp.Call(ctx, s.folder, s.options.Status, nil)
	if err != nil {
		return instructions
	}
	var b strings.Builder
	b.WriteString(instructions)
	fmt.Fprintf(&b, "\nWorkspace: %s (chosen by: %s). ", st.Workspace.Root, st.Workspace.Rule)
	switch st.State {
	case "missing":
		b.WriteString("It has no index yet; the server builds one when it starts, or the `index` tool does.")
	case "building":
		fmt.Fprintf(&b, "Its index is being built: %d files so far. Keyword search works already; `status` reports the progress.", st.Files)
	case "partial":
		fmt.Fprintf(&b, "Its index holds %d files; %d chunks have no vector yet, so only keyword search finds them. The `index` tool completes it.", st.Files, st.Pending)
	default:
		fmt.Fprintf(&b, "Its index is ready: %d files, %d sections.", st.Files, st.Sections)
	}
	if s.auto() {
		b.WriteString(" Call tools that are not in your list with `more_tools`.")
	}
	b.WriteString(s.describe(ctx, st.Tasks > 0))
	return b.String()
}

// describe describes the cards, the tasks in documents and the tools of the workspace, if
// clients can call the tools for them. It omits a kind that is not counted before ctx ends.
// tasks reports whether a document has tasks.
func (s *Server) describe(ctx context.Context, tasks bool) string {
	kinds := []struct {
		tool  string // the tool that clients must be able to call
		count func(context.Context) string
	}{{"list_tasks", s.cardState}, {"view_task", s.documentState}, {"search_tools", s.catalogState}}
	counted := make([]chan string, len(kinds))
	for i, k := range kinds {
		counted[i] = make(chan string, 1)
		if _, ok := s.find(k.tool); !ok || k.tool == "view_task" && !tasks {
			counted[i] <- ""
			continue
		}
		go func() { counted[i] <- k.count(ctx) }()
	}
	var b strings.Builder
	for _, c := range counted {
		select {
		case text := <-c:
			b.WriteString(text)
		case <-ctx.Done():
		}
	}
	return b.String()
}

func (s *Server) cardState(context.Context) string {
	list, _, err := s.options.Tasks.Cards.List(cards.ListRequest{})
	if err != nil {
		return ""
	}
	if len(list) == 0 {
		return " It has no task cards yet; `create_task` creates one."
	}
	by := map[string]int{}
	for _, c := range list {
		by[c.Status]++
	}
	return fmt.Sprintf(" It has %d task cards: %d todo, %d active, %d done. `list_tasks` lists them; update them with `update_task` while you work.",
		len(list), by["todo"], by["active"], by["done"])
}

// namedDocuments is the maximum number of documents with tasks in the instructions.
const namedDocuments = 3

// isPlainPath reports whether the instructions may name a path. A path with spaces could
// be a sentence, with which a folder would instruct the model.
func isPlainPath(path string) bool {
	return path != "" && utf8.RuneCountInString(path) <= 80 && !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_./-", r)
	})
}

func (s *Server) documentState(ctx context.Context) string {
	found, err := s.options.Tasks.Documents.WithTasks(ctx)
	if err != nil || len(found) == 0 {
		return ""
	}
	var named []string
	for _, path := range found {
		if len(named) < namedDocuments && isPlainPath(path) {
			named = append(named, path)
		}
	}
	names := strings.Join(named, ", ")
	if more := len(found) - len(named); more > 0 && len(named) > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if names != "" {
		names = ": " + names
	}
	return fmt.Sprintf(" %d documents have tasks%s. `task` lists the tasks of one, `start_task` starts a task.", len(found), names)
}

func (s *Server) catalogState(ctx context.Context) string {
	known, err := toolbox.StatsOp.Call(ctx, s.options.Toolbox, struct{}{}, nil)
	if err != nil || known.Tools == 0 {
		return ""
	}
	return fmt.Sprintf(" Its catalogue has %d tools of other servers; `search_tools` finds tools for an intent.", known.Tools)
}
