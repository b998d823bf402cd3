package client

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestServerEndsWithAKilledParent: the server holds a pipe open, which ends when it does.
func TestServerEndsWithAKilledParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLIENT_TEST_PIPE", path)
	parent := exec.Command(command(t, "parent").Command[0])
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := io.Copy(io.Discard, pipe); err != nil {
		t.Error(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent was not killed")
	}
}
