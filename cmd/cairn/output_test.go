package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// broken is a stream whose writes fail.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// A failed write is an error of the command, unless the reader has closed the output.
func TestOutputThatCannotBeWritten(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := run([]string{"index", "--no-embed", "-C", root}, strings.NewReader(""), &said, &said); code != exitDone {
		t.Fatalf("cairn index: %d, %s", code, &said)
	}
	for _, line := range []string{
		"status", "status --json", "read index.md", "search --mode keyword token", "search --mode keyword --json token", "explain --mode keyword token",
		"config", "config get core.token_limit", "card new A card", "card list", "doctor", "open --list", "scene --no-copy index.md", "version", "version --json",
		"help", "help read", "read --help", "tools list --json", "grep --json token", "backup -", "graph", "dag order --json", "connect --print claude-code",
	} {
		for _, c := range []struct {
			err  error
			says string
		}{{syscall.ENOSPC, syscall.ENOSPC.Error()}, {syscall.EPIPE, ""}} {
			said.Reset()
			code := run(append(strings.Fields(line), "-C", root), strings.NewReader(""), broken{&os.PathError{Op: "write", Path: "out", Err: c.err}}, &said)
			told := said.String()
			want := exitFailed
			if strings.Contains("search explain open grep", strings.Fields(line)[0]) {
				want = exitUsage
			}
			if c.says != "" && (code != want || strings.Count(told, c.says) != 1) {
				t.Errorf("cairn %s, with %v: %d and %q, want %d and a line on it", line, c.err, code, told, want)
			}
			if c.says == "" && strings.Contains(told, syscall.EPIPE.Error()) {
				t.Errorf("cairn %s, whose reader has left, says %q", line, told)
			}
		}
	}
}
