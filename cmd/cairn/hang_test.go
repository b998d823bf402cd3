//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"cairn/internal/base/testutil"
)

// TestOwnerThatHangs runs two servers on one folder and stops the first, which owns it.
// Meanwhile the other server, a new one and the commands answer without it and say so. Calls
// that write the index fail and name the process to end. Writes of tasks still succeed.
// Everything works again when the owner continues. Then the test kills the owner, and the
// other server becomes the owner.
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
	const search = `{"query":"rotate a token","format":"json"}`
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
	var refused struct {
		Code int
		Data struct {
			Pid        int `json:"holder_pid"`
			Suggestion string
		}
	}
	if failed := second.call(t, "index", "{}", &refused); !failed || refused.Code != 1007 || refused.Data.Pid != pid || !strings.Contains(refused.Data.Suggestion, fmt.Sprintf("kill -KILL %d", pid)) {
		t.Errorf("index: %+v, want 1007 with process %d", refused, pid)
	}
	third := startStdio(t, cairn, root, "--tools", "core,catalog")
	third.initialize(t)
	for _, s := range []*stdioSession{second, third} {
		for tool, arguments := range map[string]string{"read_context": search, "read_doc": `{"path":"index.md","format":"json"}`, "status": `{}`} {
			var answer struct{ Degraded []string }
			if failed := s.call(t, tool, arguments, &answer); failed || !slices.Equal(answer.Degraded, []string{"owner"}) {
				t.Errorf("%s while the owner hangs: failed %v, %+v", tool, failed, answer)
			}
		}
	}
	var tools struct{ Degraded []string }
	if failed := third.call(t, "search_tools", `{"query":"deploy"}`, &tools); failed || !slices.Equal(tools.Degraded, []string{"owner"}) {
		t.Errorf("search_tools while the owner hangs: failed %v, %+v", failed, tools)
	}
	third.end(t)
	if failed := second.call(t, "create_task", `{"title":"Of the lively one"}`, &doc); failed {
		t.Errorf("creating a task while the owner hangs: %v", doc)
	}
	for _, command := range []struct {
		args []string
		want string // part of the output
	}{
		{[]string{"search", "rotate a token"}, "without the process that updates it"},
		{[]string{"read", "index.md"}, "#"},
		{[]string{"status"}, fmt.Sprintf("kill -KILL %d", pid)},
	} {
		out, err := exec.Command(cairn, append(command.args, "-C", root)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), command.want) {
			t.Errorf("cairn %v while the owner hangs: %v, want %q\n%s", command.args, err, command.want, out)
		}
	}
	out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("process %d (cairn mcp", pid)) || !strings.Contains(string(out), fmt.Sprintf("kill -KILL %d", pid)) {
		t.Errorf("cairn index while the owner hangs: %v\n%s", err, out)
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

// TestOwnerStops stops the owner of a folder again and again while other processes search
// and read. No answer fails: those of other processes name the owner that is missing, until
// it continues. CAIRN_STOPS is how often to stop it, 2 if it is not set.
func TestOwnerStops(t *testing.T) {
	stops := 2
	if n, err := strconv.Atoi(os.Getenv("CAIRN_STOPS")); err == nil {
		stops = n
	}
	cairn, root := binary(t), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	owner := startStdio(t, cairn, root)
	owner.ask(t)
	var whole, degraded [4]atomic.Int64 // answers of each client
	var failed atomic.Pointer[string]
	var clients sync.WaitGroup
	end := make(chan struct{})
	for i := range whole {
		s := startStdio(t, cairn, root)
		s.ask(t)
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				request := `{"jsonrpc":"2.0","id":1,"method":"read_doc","params":{"path":"index.md"}}`
				if n%2 == 0 {
					request = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate token %d"}}`, n)
				}
				fmt.Fprintln(s.in, request)
				line, err := s.out.ReadString('\n')
				switch {
				case err != nil || strings.Contains(line, `"error":`) || !strings.Contains(line, "token"):
					line = fmt.Sprintf("%v: %.500s", err, line)
					failed.Store(&line)
				case strings.Contains(line, `"owner"`):
					degraded[i].Add(1)
				default:
					whole[i].Add(1)
				}
			}
		})
	}
	// more waits until each client has received n more answers.
	more := func(count *[4]atomic.Int64, n int64) {
		t.Helper()
		var goal [4]int64
		for i := range count {
			goal[i] = count[i].Load() + n
		}
		testutil.Await(t, func() string {
			for i := range count {
				if at := count[i].Load(); at < goal[i] && failed.Load() == nil {
					return fmt.Sprintf("client %d has %d answers, want %d", i, at, goal[i])
				}
			}
			return ""
		})
	}
	for n := range stops {
		more(&whole, 10)
		if err := owner.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		more(&degraded, 10)
		page := filepath.Join(root, fmt.Sprintf("page%d.md", n))
		if err := os.WriteFile(page, []byte("# A page about a token\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	more(&whole, 10)
	close(end)
	clients.Wait()
	var answers, without int64
	for i := range whole {
		answers, without = answers+whole[i].Load(), without+degraded[i].Load()
	}
	if line := failed.Load(); line != nil {
		t.Errorf("an answer failed: %s", *line)
	}
	t.Logf("%d stops: %d answers of the owner, %d without it, none failed", stops, answers, without)
}
