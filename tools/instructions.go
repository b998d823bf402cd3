package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"cairn/internal/task/cards"
)

//go:embed instructions.md
var instructions string

// instructionsWait bounds the wait for the index state at the start of a
// session: the instructions are worth having without it.
const instructionsWait = 150 * time.Millisecond

// instructions returns what a client is told at the start: how to use the
// tools, and the state of the index at that moment.
func (s *Server) instructions(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, instructionsWait)
	defer cancel()
	st, err := s.engine.Status(ctx)
	if err != nil {
		return instructions
	}
	var b strings.Builder
	b.WriteString(instructions)
	fmt.Fprintf(&b, "\nWorkspace: %s (chosen by: %s). ", st.Workspace.Root, st.Workspace.Rule)
	switch st.State {
	case "missing":
		b.WriteString("It has no index yet; one is made when the server starts, or by the `index` tool.")
	case "building":
		fmt.Fprintf(&b, "Its index is being built: %d files so far. Keyword search answers already; `status` tells how far it is.", st.Files)
	case "partial":
		fmt.Fprintf(&b, "Its index holds %d files; %d pieces have no vector yet and are found by keyword only. The `index` tool completes it.", st.Files, st.Pending)
	default:
		fmt.Fprintf(&b, "Its index is ready: %d files, %d sections.", st.Files, st.Sections)
	}
	b.WriteString(s.taskState(ctx))
	return b.String()
}

// taskState says how many task cards there are, where their tools are offered.
// Many cards take longer to read than anybody waits; the answer goes without.
func (s *Server) taskState(ctx context.Context) string {
	if _, offered := s.find("list_tasks"); !offered {
		return ""
	}
	counted := make(chan string, 1)
	go func() {
		list, err := s.options.Tasks.Cards.List(cards.ListRequest{})
		if err != nil {
			counted <- ""
			return
		}
		if len(list) == 0 {
			counted <- " It has no task cards yet; `create_task` makes one for work to be remembered."
			return
		}
		by := map[string]int{}
		for _, c := range list {
			by[c.Status]++
		}
		counted <- fmt.Sprintf(" It has %d task cards: %d todo, %d active, %d done. `list_tasks` shows them; `update_task` keeps them true while you work.",
			len(list), by["todo"], by["active"], by["done"])
	}()
	select {
	case text := <-counted:
		return text
	case <-ctx.Done():
		return ""
	}
}
