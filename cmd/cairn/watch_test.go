package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/folder/index"
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
	lines := startLines(t, cmd, cmd.StdoutPipe)
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

// startLines starts a command, which is killed when the test ends, and returns the lines
// of one of its outputs.
func startLines(t *testing.T, cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) *bufio.Scanner {
	t.Helper()
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return bufio.NewScanner(out)
}

// TestWatchScene: the clipboard and SCENE.md hold the scene from the start, and again
// after a card has changed.
func TestWatchScene(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the clipboard is a program only there")
	}
	cairn := binary(t)
	root, bin := t.TempDir(), t.TempDir()
	clipboard := filepath.Join(bin, "clipboard")
	program := "#!/bin/sh\ncat > " + clipboard + ".new && mv " + clipboard + ".new " + clipboard + "\n"
	card := filepath.Join(root, ".cairn", "cards", "aaa111.md")
	for name, text := range map[string]string{
		filepath.Join(bin, "xclip"): program, card: "---\ntitle: Build it\nstatus: active\n---\nFirst words.\n",
		filepath.Join(root, "a.md"): "# A\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), cairn, "watch", "--scene", "-C", root)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	lines := startLines(t, cmd, cmd.StderrPipe)
	wait := func(want string) {
		t.Helper()
		for lines.Scan() {
			if !strings.Contains(lines.Text(), "SCENE.md and the clipboard") {
				continue
			}
			held, _ := os.ReadFile(clipboard)
			written, _ := os.ReadFile(filepath.Join(root, ".cairn", "SCENE.md"))
			if strings.Contains(string(held), want) && strings.Contains(string(written), want) {
				return
			}
		}
		t.Fatalf("the command ended before the scene had %q", want)
	}
	wait("First words.")
	if err := os.WriteFile(card, []byte("---\ntitle: Build it\nstatus: active\n---\nSecond words.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wait("Second words.")
}
