//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/base/home"
	"cairn/internal/base/testutil"
)

func TestWithGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := errors.New("done")
		if err := withGracePeriod(t.Context(), time.Second, func() error { return done }); err != done {
			t.Errorf("without a signal: %v, want %v", err, done)
		}
		for _, c := range []struct {
			needs time.Duration
			want  error
			took  time.Duration
		}{
			{900 * time.Millisecond, done, 900 * time.Millisecond},
			{time.Hour, context.Canceled, time.Second},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			begin := time.Now()
			err := withGracePeriod(ctx, time.Second, func() error {
				cancel()
				time.Sleep(c.needs)
				return done
			})
			if took := time.Since(begin); err != c.want || took != c.took {
				t.Errorf("a command that needs %v after the signal: %v after %v, want %v after %v", c.needs, err, took, c.want, c.took)
			}
		}
		time.Sleep(time.Hour) // for the command that was left
	})
}

// TestInterrupted: a signal while cairn makes vectors ends the command with 130.
func TestInterrupted(t *testing.T) {
	root := t.TempDir()
	if err := testutil.WriteFolder(root, 200, 1); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "index", "-C", root)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	signalled := false
	for buffer := make([]byte, 4096); ; {
		n, err := stderr.Read(buffer)
		said.Write(buffer[:n])
		if !signalled && strings.Contains(said.String(), "vectors") {
			signalled = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitInterrupted {
		t.Errorf("interrupted: %v, want exit status 130\n%s", err, said.String())
	}
	if !strings.HasSuffix(said.String(), "cairn: interrupted\n") {
		t.Errorf("said %q, want it to end with being interrupted", said.String())
	}
}

// TestUnwritableFolder: cairn indexes, searches and serves a folder that it cannot write, and
// does not change it. A private directory that it cannot write is a clear error.
func TestUnwritableFolder(t *testing.T) {
	top, cairn := others(t)
	root, private := filepath.Join(top, "handbook"), filepath.Join(top, "private")
	if err := errors.Join(os.CopyFS(root, handbook()), os.Mkdir(private, 0o700)); err != nil {
		t.Fatal(err)
	}
	other := os.Getuid()
	if other == 0 { // who may write anywhere
		other = 65534
		if err := os.Chown(private, other, other); err != nil {
			t.Fatal(err)
		}
	}
	permit := func(dir fs.FileMode) {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			return os.Chmod(path, dir)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	permit(0o555)
	t.Cleanup(func() { permit(0o755) }) // so that it can be removed
	before := snapshot(t, root)
	check := func(stdin string, code int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(cairn, append(args, "-C", root)...)
		cmd.Dir, cmd.Env = top, append(os.Environ(), home.Variable+"="+private)
		var out answered
		cmd.Stdout, cmd.Stderr = &out, &out
		if stdin != "" { // the input ends when the answer is there: a server that has little time then may cancel it
			var in io.Reader
			in, out.in = io.Pipe()
			cmd.Stdin, cmd.WaitDelay = io.MultiReader(strings.NewReader(stdin), in), time.Second
		}
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(other), Gid: uint32(other)}}
		}
		err := cmd.Run()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(out.said.String(), want) {
			t.Errorf("cairn %s: exit %d, %s\nwant exit %d and %q", strings.Join(args, " "), got, out.said.String(), code, want)
		}
	}
	const ask = `{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate a token"}}` + "\n"
	check("", 0, "indexed", "index")
	check("", 0, "access/rotate-a-token.md:10 #planned-rotation", "search", "rotate a token")
	check("", 0, "ready", "status")
	check(ask, 0, `"path":"access/rotate-a-token.md"`, "mcp")
	if after := snapshot(t, root); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}

	if err := errors.Join(os.RemoveAll(filepath.Join(private, "cache")), os.Chmod(private, 0o500)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"index"}, {"search", "token"}, {"status"}, {"tools", "list"}} {
		code := 1
		if args[0] == "search" {
			code = 2
		}
		check("", code, "set CAIRN_HOME to a directory that cairn can write", args...)
	}
}

// others returns a folder that every user can enter, with the command in it.
func others(t *testing.T) (dir, cairn string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cairn-test")
	if err != nil {
		t.Skipf("no folder for all users: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	cairn = filepath.Join(dir, "cairn")
	if err := os.WriteFile(cairn, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, cairn
}

// answered collects the output of a server, and ends its input after the answer to request 1.
type answered struct {
	said strings.Builder
	in   *io.PipeWriter // nil without an input
}

func (a *answered) Write(p []byte) (int, error) {
	if a.said.Write(p); a.in != nil && strings.Contains(a.said.String(), `"id":1`) {
		a.in.Close()
	}
	return len(p), nil
}
