//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/base/testutil"
)

// TestOwnerThatHangs runs two servers on one folder and stops the first, which owns it. Every
// call of the other that needs the index, and every command, fails while the owner is stopped
// and names the process to end. Writes of tasks still succeed. Everything works again when the owner
// continues. Then the test kills the owner, and the other server becomes the owner.
func TestOwnerThatHangs(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	owner := startStdio(t, cairn, root, "--tools", "core,tasks")
	owner.ask(t)
	pid := owner.cmd.Process.Pid
	second := startStdio(t, cairn, root, "--tools", "core,tasks")
	second.ask(t)
	second.initialize(t)

	halt := func() {
		t.Helper()
		if err := owner.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
			t.Fatalf("stopping the owner: %v, %v", state, err)
		}
	}
	const search = `{"query":"rotate a token"}`
	type found struct {
		Results  []struct{ Path string }
		Degraded []string
	}
	recovered := func() {
		t.Helper()
		testutil.Await(t, func() string {
			var a found
			if failed := second.call(t, "read_context", search, &a); failed || len(a.Results) == 0 || len(a.Degraded) > 0 {
				return fmt.Sprintf("%+v", a)
			}
			return ""
		})
	}
	recovered()

	halt()
	fmt.Fprintln(owner.in, `{"jsonrpc":"2.0","id":7,"method":"create_task","params":{"title":"Of the halted one"}}`)
	var doc map[string]any
	for tool, arguments := range map[string]string{"read_context": search, "read_doc": `{"path":"README.md"}`, "index": `{}`, "status": `{}`} {
		var refused struct {
			Code int
			Data struct {
				Pid        int `json:"holder_pid"`
				Suggestion string
			}
		}
		if failed := second.call(t, tool, arguments, &refused); !failed || refused.Code != 1007 || refused.Data.Pid != pid || !strings.Contains(refused.Data.Suggestion, fmt.Sprintf("kill -KILL %d", pid)) {
			t.Errorf("%s: %+v, want 1007 with process %d", tool, refused, pid)
		}
	}
	if failed := second.call(t, "create_task", `{"title":"Of the lively one"}`, &doc); failed {
		t.Errorf("creating a task while the owner hangs: %v", doc)
	}
	for _, args := range [][]string{{"search", "rotate a token"}, {"read", "README.md"}, {"index"}, {"status"}} {
		out, err := exec.Command(cairn, append(args, "-C", root)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), fmt.Sprintf("process %d (cairn mcp", pid)) || !strings.Contains(string(out), fmt.Sprintf("kill -KILL %d", pid)) {
			t.Errorf("cairn %v while the owner hangs: %v\n%s", args, err, out)
		}
	}

	if err := owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line, err := owner.out.ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
		t.Errorf("the owner goes on with %s, %v", line, err)
	}
	recovered()
	cards, err := filepath.Glob(filepath.Join(root, ".cairn", "cards", "*.md"))
	if err != nil || len(cards) != 2 {
		t.Errorf("the cards are %q, %v, want one of each agent", cards, err)
	}
	var report map[string]any
	if failed := second.call(t, "index", `{}`, &report); failed {
		t.Errorf("indexing after the owner went on: %v", report)
	}

	halt()
	if err := owner.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	owner.cmd.Wait()
	recovered()
	var status struct{ Owner struct{ Pid int } }
	if second.call(t, "status", `{}`, &status); status.Owner.Pid != second.cmd.Process.Pid {
		t.Errorf("the owner is %d, want %d, which is left", status.Owner.Pid, second.cmd.Process.Pid)
	}
	second.end(t)
}

// initialize begins an MCP session, which tools/call needs.
func (s *stdioSession) initialize(t *testing.T) {
	t.Helper()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, "serverInfo") {
		t.Fatalf("initialize answers %s, %v", line, err)
	}
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// call calls a tool, reads its structured content into v, and says whether it failed.
func (s *stdioSession) call(t *testing.T, tool, arguments string, v any) (failed bool) {
	t.Helper()
	fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, arguments)
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		var reply struct {
			ID     any
			Error  any
			Result struct {
				IsError           bool
				StructuredContent json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			t.Fatalf("%s answers %s: %v", tool, line, err)
		}
		if reply.ID == nil { // a notification
			continue
		}
		if reply.Error != nil {
			t.Fatalf("%s answers %s", tool, line)
		}
		if err := json.Unmarshal(reply.Result.StructuredContent, v); err != nil {
			t.Fatalf("%s answers %s: %v", tool, line, err)
		}
		return reply.Result.IsError
	}
}
