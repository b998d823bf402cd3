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

	"cairn/internal/testutil"
)

func TestHeeding(t *testing.T) {
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

// TestInterrupted: a signal while the vectors are made ends the command with
// 130 within two seconds, and what was made is found by the next run.
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
	var signalled time.Time
	for buffer := make([]byte, 4096); ; {
		n, err := stderr.Read(buffer)
		said.Write(buffer[:n])
		if signalled.IsZero() && strings.Contains(said.String(), "vectors") {
			signalled = time.Now()
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
	if took := time.Since(signalled); !ok || exit.ExitCode() != exitInterrupted || took > 2*time.Second {
		t.Errorf("interrupted: %v after %v, want exit status 130 within 2 s\n%s", err, took, said.String())
	}
	if !strings.HasSuffix(said.String(), "cairn: interrupted\n") {
		t.Errorf("said %q, want it to end with being interrupted", said.String())
	}
}

// TestUnwritableFolder takes the right to write away: an existing index is searched
// and served, and an index that cannot be built or read gives a clear error.
func TestUnwritableFolder(t *testing.T) {
	top, cairn := others(t)
	root := filepath.Join(top, "handbook")
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	permit := func(dir, all fs.FileMode) { // dir for root itself, all for the rest
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path == root {
				return os.Chmod(path, dir)
			}
			if e.IsDir() {
				return os.Chmod(path, all)
			}
			return os.Chmod(path, all&0o666)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { permit(0o755, 0o755) }) // so that it can be removed
	readable := fs.FileMode(0o500)             // what others may read, the owner closes to them
	if os.Getuid() == 0 {
		readable = 0o555
	}
	check := func(stdin string, code int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(cairn, append(args, "-C", root)...)
		cmd.Dir = top
		var out answered
		cmd.Stdout, cmd.Stderr = &out, &out
		if stdin != "" { // the input ends when the answer is there: a server that has little time then may cancel it
			var in io.Reader
			in, out.in = io.Pipe()
			cmd.Stdin, cmd.WaitDelay = io.MultiReader(strings.NewReader(stdin), in), time.Second
		}
		if os.Getuid() == 0 { // who may write anywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		err := cmd.Run()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(out.said.String(), want) {
			t.Errorf("cairn %s: exit %d, %s\nwant exit %d and %q", strings.Join(args, " "), got, out.said.String(), code, want)
		}
	}
	permit(readable, readable)
	check("", 1, "cannot write the index in "+root, "index")
	check("", 1, "cannot write the index in "+root, "search", "token")
	const ask = `{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate a token"}}` + "\n"
	const run = `{"jsonrpc":"2.0","id":1,"method":"index","params":{}}` + "\n"
	const look = `{"jsonrpc":"2.0","id":1,"method":"status","params":{}}` + "\n"
	for _, call := range []string{ask, run, look} {
		check(call, 0, "there is none to search: ", "mcp")
		check(call, 0, "choose the copy with -C\"", "mcp", "--no-index")
	}

	permit(0o755, 0o755)
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	permit(readable, readable)
	check("", 0, "access/rotate-a-token.md#planned-rotation", "search", "rotate a token")
	check("", 0, "ready", "status")
	check("", 1, "cannot write the index in "+root, "index")
	check(ask, 0, `"path":"access/rotate-a-token.md"`, "mcp")
	check(run, 0, "cannot write the index in "+root, "mcp")

	if err := os.Chmod(filepath.Join(root, ".cairn", "index"), 0); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "search", "read"} {
		args := map[string][]string{"search": {"token"}, "read": {"index.md"}}[command]
		check("", 1, "cannot read the index in "+root, append([]string{command}, args...)...)
	}
	if err := os.Chmod(filepath.Join(root, ".cairn", "index"), 0o700); err != nil {
		t.Fatal(err)
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

// answered keeps what a server says, and ends its input when it has answered
// the request 1.
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
