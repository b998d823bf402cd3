package tools

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/base/observe"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/models"
)

// TestPathOfAQuery counts the functions of this module on the stack when a query reaches
// the vector index of a folder that this process owns. The first is the goroutine in which
// the server handles the request, and the last the one that searches the vectors.
func TestPathOfAQuery(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.md"), []byte("# Deploy\n\nRun the release script.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(t.Context(), config.Selection{Root: root, Rule: config.RuleFlag}, config.Default(), workspace.Owning, workspace.Options{
		Settings: index.Settings{Model: func() (models.Embedder, error) { return &testutil.HashEmbedder{}, nil }, Description: (&testutil.HashEmbedder{}).Description()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var listener pathListener
	s := newSession(t, w.Folder, &Options{Listener: &listener})
	for _, line := range []string{
		request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`),
		request(2, "tools/call", `{"name":"index","arguments":{}}`),
	} {
		s.send(line)
		s.receive()
	}
	for _, c := range []struct{ line, server string }{
		{request(3, "read_context", `{"query":"release"}`), "cairn/tools.(*conn).acceptRequest."},
		{request(4, "tools/call", `{"name":"read_context","arguments":{"query":"script"}}`), "cairn/tools.(*conn).acceptRequest."},
	} {
		s.send(c.line)
		answer := s.receive()
		path := listener.take()
		if len(path) == 0 {
			t.Fatalf("%s\n%s\nsearches no vectors", c.line, answer)
		}
		if leg, server := path[0], path[len(path)-1]; leg != "cairn/retriever.(*search).ask" || !strings.HasPrefix(server, c.server) || len(path) > 10 {
			t.Errorf("%s\n%s\ntakes %d calls, want at most 10 from %s to the search of the vectors:\n%s", c.line, answer, len(path), c.server, strings.Join(path, "\n"))
		}
	}
	s.close()
}

// pathListener keeps the calls that led to the last search of a vector index.
type pathListener struct {
	observe.Silent
	mu   sync.Mutex
	path []string
}

// Stage implements observe.Listener.
func (l *pathListener) Stage(_ context.Context, stage observe.Stage, _ time.Time, _ time.Duration) {
	if stage != observe.Vectors { // the keyword leg has a goroutine of its own
		return
	}
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	var path []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, "cairn/") && !strings.HasPrefix(f.Function, "cairn/internal/base/observe.") && !strings.HasSuffix(f.File, "_test.go") {
			path = append(path, f.Function)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = path
}

func (l *pathListener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	path := l.path
	l.path = nil
	return path
}
