package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/index"
)

// TestWatchCommand runs cairn watch and a search as two processes.
func TestWatchCommand(t *testing.T) {
	cairn := binary(t)
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), cairn, "watch", "--json", "-C", root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	next := func(what string, ok func(index.WatchEvent) bool) {
		t.Helper()
		for lines.Scan() {
			var e index.WatchEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.At.IsZero() {
				t.Fatalf("line %q: %v", lines.Text(), err)
			}
			if ok(e) {
				return
			}
		}
		t.Fatalf("the command ended before it told of %s", what)
	}
	next("the first look", func(e index.WatchEvent) bool { return e.Changed > 0 })
	if err := os.WriteFile(filepath.Join(root, "okapi.md"), []byte("# Okapi\n\nA quagga is no okapi.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	next("the new file", func(e index.WatchEvent) bool { return e.Changed == 1 && strings.Join(e.Paths, " ") == "okapi.md" })
	found, err := exec.Command(cairn, "search", "--mode", "keyword", "-C", root, "quagga").CombinedOutput()
	if err != nil || !strings.Contains(string(found), "okapi.md") {
		t.Errorf("search beside watch: %v\n%s", err, found)
	}
	next("its vectors", func(e index.WatchEvent) bool { return e.Vectors })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after a signal: %v", err)
	}
}
