package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A command that draws nothing writes its answer to a terminal and nothing else:
// no question that the terminal would have to answer before the command goes on.
func TestTerminalIsNotAsked(t *testing.T) {
	screen, end := terminal(t)
	cmd := exec.Command(binary(t), "version", "--json")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = end, end, end
	// In the foreground of the terminal, as below a shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	// Reading the terminal gives EIO when the last process has closed it.
	out, _ := io.ReadAll(screen)
	if err := cmd.Wait(); err != nil {
		t.Errorf("cairn version: %v", err)
	}
	if s := string(out); !strings.HasPrefix(s, "{") || strings.Contains(s, "\x1b") {
		t.Errorf("the terminal was sent %q, want the answer alone", s)
	}
}

// terminal returns both ends of a new pseudo terminal: what a person sees, and
// what a process is given.
func terminal(t *testing.T) (screen, end *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	screen = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	end, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { end.Close() })
	return screen, end
}
