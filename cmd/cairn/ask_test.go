package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAskShowsItsStage has a model that answers once the person has seen that it is asked.
func TestAskShowsItsStage(t *testing.T) {
	shown := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-shown:
		case <-time.After(20 * time.Second):
			t.Error("the command does not show that it asks the model")
		}
		fmt.Fprint(w, `{"choices":[{"message":{"content":"{\"not_found\":true}"}}]}`)
	}))
	defer model.Close()
	t.Setenv("CAIRN_LLM_URL", model.URL)
	t.Setenv("CAIRN_LLM_MODEL", "m")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("# On call\n\nAnn is called at night.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	notes, stderr := io.Pipe()
	go func() {
		for lines := bufio.NewScanner(notes); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "executor_reasoning") {
				close(shown)
				break
			}
		}
		_, _ = io.Copy(io.Discard, notes)
	}()
	if code := run([]string{"ask", "-C", dir, "who is called at night?"}, strings.NewReader(""), io.Discard, stderr); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}
