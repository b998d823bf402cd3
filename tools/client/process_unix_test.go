//go:build unix

package client

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestGrandchildrenEnd imports from a server with a child that would outlive
// it. The child holds a pipe open, which ends when the child does.
func TestGrandchildrenEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLIENT_TEST_PIPE", path)
	ended := make(chan error, 1)
	go func() {
		pipe, err := os.Open(path)
		if err == nil {
			_, err = io.Copy(io.Discard, pipe)
			pipe.Close()
		}
		ended <- err
	}()
	b, err := Import(t.Context(), command(t, "child"), "")
	check(t, b, err)
	if err := <-ended; err != nil { // the server's child has ended
		t.Error(err)
	}
}
