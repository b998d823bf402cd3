//go:build unix

package tools

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPollable(t *testing.T) {
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	in, out := os.NewFile(uintptr(pipe[0]), "in"), os.NewFile(uintptr(pipe[1]), "out")
	defer in.Close()
	if err := in.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Fatalf("a pipe as a process gets it: %v, want %v", err, os.ErrNoDeadline)
	}
	r, undo := pollable(in)
	// Only a file in the poller has deadlines.
	if err := r.(*os.File).SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Errorf("pollable: %v", err)
	}
	if _, err := out.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); string(text) != "one\ntwo\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	undo()
	if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(pipe[0]), syscall.F_GETFL, 0); errno != 0 || flags&syscall.O_NONBLOCK != 0 {
		t.Errorf("afterwards the flags are %#x (%v), want a blocking file", flags, errno)
	}

	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := strings.NewReader("x")
	for _, other := range []io.Reader{file, text} {
		got, undo := pollable(other)
		if got != other {
			t.Errorf("%T was replaced by %T", other, got)
		}
		undo()
	}
}
