//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServersLeaveNothing starts 100 servers on standard input and output while
// another server owns the folder, and ends them by the end of their input, by a signal, or by
// killing them. They leave no process, socket or temporary file, and the owner does not hold
// more descriptors than after the first few. The last server owns the folder itself.
func TestServersLeaveNothing(t *testing.T) {
	starts := 100
	if testing.Short() {
		starts = 15
	}
	const few = 6 // the owner has opened all it keeps by then
	cairn, root, tmp := binary(t), t.TempDir(), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := startStdio(t, cairn, root) // makes the files that last, such as the locks
	first.ask(t)
	first.end(t)
	before := list(t, root)
	owner := startStdio(t, cairn, root)
	owner.ask(t)
	proc := fmt.Sprintf("/proc/%d", owner.cmd.Process.Pid)
	held := 0
	for i := range starts {
		s := startStdio(t, cairn, root)
		s.ask(t)
		switch i % 3 {
		case 0:
			s.end(t)
		case 1:
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			s.end(t)
		case 2:
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait() // it says that it was killed
			s.alone(t)
		}
		if i == few {
			held = descriptors(t, proc)
		}
	}
	owner.ask(t) // it has seen the others go
	if now := descriptors(t, proc); now > held+few {
		t.Errorf("the owner holds %d descriptors after %d sessions of others, and %d after %d", now, starts, held, few)
	}
	owner.end(t)
	if after := list(t, root); after != before {
		t.Errorf("in the folder are\n%s\nand after the first server\n%s", after, before)
	}
	if left := list(t, tmp); left != "" {
		t.Errorf("temporary files are left:\n%s", left)
	}
}

// stdioSession is a running `cairn mcp`, in a process group of its own.
type stdioSession struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startStdio(t *testing.T, cairn, root string, flags ...string) *stdioSession {
	t.Helper()
	s := &stdioSession{cmd: exec.Command(cairn, append([]string{"mcp", "-C", root, "--no-record"}, flags...)...)}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.cmd.Process.Kill()
			s.cmd.Wait()
		}
	})
	return s
}

// ask searches, by keyword: that reaches the owner of the folder.
func (s *stdioSession) ask(t *testing.T) {
	t.Helper()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate a token","mode":"keyword"}}`)
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, "rotate-a-token.md") {
		t.Fatalf("answer %.200q, %v", line, err)
	}
}

// end waits for the process after the end of its input.
func (s *stdioSession) end(t *testing.T) {
	t.Helper()
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("a server ends with %v", err)
	}
	s.alone(t)
}

// alone checks that no process of the group remains.
func (s *stdioSession) alone(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process group %d after its server ended: %v, want nobody", s.cmd.Process.Pid, err)
	}
}

// list returns the files, sockets and pipes below dir, one per line. It omits the segments of
// stores, which maintenance renames.
func list(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() != "keywords" && d.Name() != "vectors" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v\n", filepath.ToSlash(rel), d.Type())
		if d.IsDir() {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
