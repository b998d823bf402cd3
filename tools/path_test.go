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
	"cairn/internal/folder/workspace"
	"cairn/models"
)

// TestPathOfAQuery counts the calls of functions of this module from the transport
// to the keyword index of a folder that this process owns.
func TestPathOfAQuery(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.md"), []byte("# Deploy\n\nRun the release script.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(t.Context(), config.Selection{Root: root, Rule: config.RuleFlag}, config.Default(), workspace.Owning, workspace.Options{
		Model: func() (models.Embedder, error) { return &testutil.HashEmbedder{}, nil }, Description: (&testutil.HashEmbedder{}).Description(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var listener pathListener
	s := newSession(t, w, &Options{Listener: &listener})
	for i, line := range []string{
		request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`),
		request(2, "tools/call", `{"name":"index","arguments":{}}`),
		request(3, "read_context", `{"query":"release"}`),
		request(4, "tools/call", `{"name":"read_context","arguments":{"query":"script"}}`),
	} {
		s.send(line)
		answer := s.receive()
		if i < 2 {
			continue
		}
		if path := listener.take(); len(path) == 0 || len(path) > 10 {
			t.Errorf("%s\n%s\ntakes %d calls, want 1 to 10:\n%s", line, answer, len(path), strings.Join(path, "\n"))
		}
	}
	s.close()
}

// pathListener keeps the calls that led to the last search of a keyword index.
type pathListener struct {
	observe.Silent
	mu   sync.Mutex
	path []string
}

// Stage implements observe.Listener.
func (l *pathListener) Stage(_ context.Context, stage observe.Stage, _ time.Time, _ time.Duration) {
	if stage != observe.Keyword { // measured by the function that searches
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
