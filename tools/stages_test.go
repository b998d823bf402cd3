package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/workspace"
)

func openStages(t *testing.T) *workspace.Stages {
	t.Helper()
	// A clock that stands still: nothing times out, and every answer has one time.
	now := func() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }
	st, err := workspace.OpenStages(workspace.Selection{Root: t.TempDir()}, &workspace.StageOptions{Library: &fake{}, Now: now})
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

// drawn is the name of a worker, which is drawn by lot.
var drawn = regexp.MustCompile(`worker-[A-Z0-9]{8}`)

// TestStageTranscripts plays testdata/stages/*.txt: "> TOOL ARGUMENTS" goes
// through tools/call, "< " is the answer and "! " a failure; other lines are
// prose. Every answer fits the tool's schema.
func TestStageTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/stages/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := drawn.ReplaceAllString(playStages(t, string(want)), "worker-XXXXXXXX")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the server says something else (-want +got); rewrite with -update if that is right:\n%s", diff)
			}
		})
	}
}

func playStages(t *testing.T, script string) string {
	o := &Options{NoRateLimit: true, Groups: []Group{Stages}, Stages: openStages(t)}
	schemas := map[string]*jsonschema.Resolved{}
	for _, tool := range New(&fake{}, o).tools {
		schemas[tool.name] = outputSchema(t, tool)
	}
	if len(schemas) != 5 {
		t.Fatalf("%d tools are offered, want 5", len(schemas))
	}
	s := newSession(t, &fake{}, o)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var out strings.Builder
	sent := 0
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "! ") {
			continue
		}
		out.WriteString(line)
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		name, args, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
		// A long query does not have to be written out.
		args = strings.ReplaceAll(args, "$MEGABYTE", strings.Repeat("a", 1<<20))
		sent++
		s.send(request(sent, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)))
		var reply struct {
			Error  json.RawMessage
			Result struct {
				IsError           bool            `json:"isError"`
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
		}
		text := s.receive()
		if err := json.Unmarshal([]byte(text), &reply); err != nil || reply.Error != nil {
			t.Fatalf("%s: %.300s", line, text)
		}
		var v any
		if err := json.Unmarshal(reply.Result.StructuredContent, &v); err != nil {
			t.Fatal(err)
		}
		if err := schemas[name].Validate(v); err != nil {
			t.Errorf("%s: %s, which the schema refuses: %v", line, reply.Result.StructuredContent, err)
		}
		mark := "< "
		if reply.Result.IsError {
			mark = "! "
		}
		out.WriteString(mark + string(reply.Result.StructuredContent) + "\n")
	}
	if rest := s.close(); rest != "" {
		t.Errorf("the server said more than it was asked:\n%s", rest)
	}
	return out.String()
}

// TestStageTools: each says when to use it and when not, and the five together stay small.
func TestStageTools(t *testing.T) {
	for _, tool := range New(&fake{}, &Options{Groups: []Group{Stages}, Stages: &workspace.Stages{}}).tools {
		if !strings.Contains(tool.description, "Use it ") || !strings.Contains(tool.description, "Not ") {
			t.Errorf("%s does not say when to use it and when not: %q", tool.name, tool.description)
		}
		if err := json.Unmarshal([]byte(tool.input), new(jsonschema.Schema)); err != nil {
			t.Errorf("%s: %v", tool.name, err)
		}
	}
}

// TestReadDocTakesHits: what a task found is read as it is named.
func TestReadDocTakesHits(t *testing.T) {
	s := newSession(t, &fake{}, nil)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, args := range []string{`{"path":"doc:docs/auth.md"}`, `{"paths":["doc:docs/auth.md"]}`} {
		s.send(request(i+1, "tools/call", fmt.Sprintf(`{"name":"read_doc","arguments":%s}`, args)))
		if got := s.receive(); !strings.Contains(got, `"path":"docs/auth.md"`) {
			t.Errorf("%s: %s", args, got)
		}
	}
	s.close()
}
