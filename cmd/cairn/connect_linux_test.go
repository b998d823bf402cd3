package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestConnectAsks: without a client, connect lists those that it finds, and asks before
// it writes into a file for models.
func TestConnectAsks(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".codex"), 0o755), os.Mkdir(filepath.Join(home, ".kiro"), 0o755), os.Mkdir(filepath.Join(folder, ".cairn"), 0o755)); err != nil {
		t.Fatal(err)
	}
	screen, end := terminal(t)
	cmd := exec.Command(binary(t), "connect", "-C", folder)
	cmd.Env = []string{"HOME=" + home, "PATH=" + home, "TERM=dumb"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = end, end, end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	if _, err := io.WriteString(screen, "2\nn\n"); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(screen)
	if err := cmd.Wait(); err != nil {
		t.Errorf("cairn connect: %v\n%s", err, out)
	}
	for _, want := range []string{"1  Codex", "2  Kiro", "Connect which?", "+<!-- cairn: begin", "Write this? [Y/n]", "for Kiro"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the terminal does not show %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, ".kiro", "settings", "mcp.json")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{filepath.Join(folder, "AGENTS.md"), filepath.Join(home, ".codex", "config.toml")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}
