package tools

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
	"cairn/retriever"
)

// team is a library whose every section names the members of a team.
type team struct{ fake }

func (l *team) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	all, err := l.fake.ReadAll(ctx, r)
	for i := range all.Documents {
		all.Documents[i].Content = "# Auth\n\nAnn and Bob are the members."
	}
	return all, err
}

func openStages(t *testing.T) *workspace.Stages {
	t.Helper()
	// The clock stands still: nothing times out, and every answer has the same time.
	now := func() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }
	st, err := workspace.OpenStages(config.Selection{Root: t.TempDir()}, &workspace.StageOptions{WorkOptions: stage.WorkOptions{Library: &team{}}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// drawn is the random name of a worker.
var drawn = regexp.MustCompile(`worker-[A-Z0-9]{8}`)

// TestStageTranscripts plays testdata/stages/*.txt: "> TOOL ARGUMENTS" goes
// through tools/call, "< " is the answer and "! " a failure; other lines are
// prose. Every answer fits the tool's schema.
func TestStageTranscripts(t *testing.T) {
	playAll(t, "testdata/stages/*.txt", playStages)
}

func playStages(t *testing.T, ar *txtar.Archive) string {
	o := &Options{NoRateLimit: true, Groups: []Group{Stages}, Stages: openStages(t)}
	if n := len(New((&fake{}).folder(), o).tools); n != 5 {
		t.Fatalf("%d tools are offered, want 5", n)
	}
	return playCalls(t, string(ar.Comment), o, playing{
		// Transcripts abbreviate a long query.
		args: func(args string) string { return strings.ReplaceAll(args, "$MEGABYTE", strings.Repeat("a", 1<<20)) },
		text: func(text string) string { return drawn.ReplaceAllString(text, "worker-XXXXXXXX") },
	})
}

// TestStageTools: each says when to use it and when not, and the five together stay small.
func TestStageTools(t *testing.T) {
	for _, tool := range New((&fake{}).folder(), &Options{Groups: []Group{Stages}, Stages: &workspace.Stages{}}).tools {
		if !strings.Contains(tool.description, "Use it ") || !strings.Contains(tool.description, "Not ") {
			t.Errorf("%s does not say when to use it and when not: %q", tool.name, tool.description)
		}
		if _, err := argumentSchema(tool.args).Resolve(nil); err != nil {
			t.Errorf("%s: %v", tool.name, err)
		}
	}
}

// TestReadDocTakesHits: read_doc takes the names of what a task found.
func TestReadDocTakesHits(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), nil)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, args := range []string{`{"path":"doc:docs/auth.md"}`, `{"paths":["doc:docs/auth.md"]}`} {
		s.send(request(i+1, "tools/call", fmt.Sprintf(`{"name":"read_doc","arguments":%s}`, args)))
		if got := s.receive(); !strings.Contains(got, `"text":"@@ docs/auth.md`) {
			t.Errorf("%s: %s", args, got)
		}
	}
	s.close()
}
