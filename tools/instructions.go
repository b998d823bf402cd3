package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
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
	return b.String()
}
