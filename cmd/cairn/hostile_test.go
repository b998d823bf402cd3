package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hostile lists lines that a client should not send.
func hostile() []string {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	call := func(tool, args string) string {
		return `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	}
	bare := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":"x","method":"` + method + `","params":` + params + `}`
	}
	return []string{
		"", " \t ", "null", "0", `"text"`, "{}", "[]", "[[]]", "[1,2]", "{", "}", "\x00", "\xff\xfe\xfd", "GET / HTTP/1.1", "Content-Length: 10",
		strings.Repeat("x", 1<<16), strings.Repeat(" ", 1<<20), "{\"a\":\"" + strings.Repeat("y", 5<<20) + "\"}",
		deep("[", "]", 9000), deep("[", "]", 200_000), deep(`{"a":`, "}", 100_000), bare("read_context", deep(`{"query":`, "}", 9000)),
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":2,"id":"x","method":"ping"}`, `{"id":"x","method":"ping"}`, `{"jsonrpc":"2.0","id":"x","method":7}`, `{"jsonrpc":"2.0","id":"x","method":""}`,
		`{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":"no"}}`, `{"jsonrpc":"2.0","id":"x","method":"ping","params":"text"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/no/such"}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_doc"}}`,
		`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":7}}`, `{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"cursor":{}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call"}`, call("", "{}"), call("no_such_tool", "{}"), call("read_context", "[]"), call("read_context", `"q"`),
		call("read_context", `{"query":7}`), call("read_context", `{"query":"a","limit":1e300}`), call("read_context", `{"query":"a","limit":"5"}`), call("read_context", `{"query":"a","nope":1}`),
		call("read_context", `{"query":"\ud800"}`), call("read_context", "{\"query\":\"\xff\xfe\"}"), call("read_context", `{"query":"\u0000\u202e"}`), call("read_context", `{"query":"`+strings.Repeat("\\\"", 90)+`"}`),
		call("read_context", `{"query":"a","filters":{"tags":"x"}}`), call("read_context", `{"query":"a","cursor":"`+strings.Repeat("A", 10_000)+`"}`),
		bare("read_doc", `{"path":"../../etc/passwd"}`), bare("read_doc", `{"path":"`+strings.Repeat("a/", 50_000)+`"}`), bare("read_doc", `{"path":"index.md:0-99999999999999999999"}`),
		bare("read_doc", `{"paths":[`+strings.Repeat(`"a",`, 5000)+`"a"]}`), bare("read_doc", `{"path":"index.md\u0000"}`), bare("read_doc", `[]`), bare("index", `{"wait_seconds":-1}`), bare("status", `{"x":1}`),
		`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 300) + `1]`, `[` + strings.Repeat(`{"jsonrpc":"2.0","id":"same","method":"ping"},`, 20) + `1]`,
	}
}

// TestHostileClient sends the hostile lines before and after the handshake, each followed by a
// ping. The server answers each ping, standard output is only JSON-RPC, and the process ends
// as usual.
func TestHostileClient(t *testing.T) {
	s := serveHandbook(t)
	for _, stage := range []string{"before", "after"} {
		if stage == "after" {
			s.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
			s.await("hello")
			s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		for i, line := range hostile() {
			id := fmt.Sprintf("%s-%d", stage, i)
			s.send(line)
			s.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}`)
			s.await(id)
		}
	}
	s.end()
}

// TestEndlessLine: the server refuses a line of 256 MiB and does not hold it in memory.
func TestEndlessLine(t *testing.T) {
	s := serveHandbook(t)
	s.send(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	s.await("a")
	before := s.peak()
	for range 256 {
		if _, err := io.WriteString(s.in, strings.Repeat("[", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	s.send("")
	s.send(`{"jsonrpc":"2.0","id":"b","method":"ping"}`)
	s.await("b")
	// The process also loads the encoder meanwhile, and its heap may grow by the reserve of package host.
	if after := s.peak(); after > before+80<<10 {
		t.Errorf("peak memory grew from %d to %d KiB over a line of 256 MiB, want at most 80 MiB more", before, after)
	}
	s.end()
}

// TestClientStopsReading: the process ends if a client closes the output and leaves the input
// open.
func TestClientStopsReading(t *testing.T) {
	s := serveHandbook(t)
	s.send(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	s.await("a")
	if err := s.out.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // these answers are not read
		fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":"b","method":"read_doc","params":{"path":"index.md"}}`)
	}
	s.wait()
}

// session is a server process over the sample folder.
type session struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	lines *bufio.Scanner
}

func serveHandbook(t *testing.T) *session {
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "mcp", "-C", root, "--no-index")
	cmd.Stderr = os.Stderr
	s, err := newSessionOf(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newSessionOf starts a server and the streams that lead to it.
func newSessionOf(t *testing.T, cmd *exec.Cmd) (*session, error) {
	s := &session{t: t, cmd: cmd}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	s.lines = bufio.NewScanner(s.out)
	s.lines.Buffer(nil, 16<<20)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		// This has no effect on a process that has ended.
		_ = cmd.Process.Kill()
	})
	return s, nil
}

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatalf("the server has stopped reading before %.100q: %v", line, err)
	}
}

// await reads answers up to the result with that id.
func (s *session) await(id string) {
	s.t.Helper()
	for s.lines.Scan() {
		text := s.lines.Bytes()
		if !json.Valid(text) {
			s.t.Fatalf("on standard output: %.200q, want JSON", text)
		}
		if text[0] == '[' {
			continue
		}
		var m struct {
			JSONRPC string
			ID      any
			Result  json.RawMessage
			Error   *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(text, &m); err != nil || m.JSONRPC != "2.0" || m.Error != nil && (m.Error.Code == 0 || m.Error.Message == "") {
			s.t.Errorf("answer %.200q: %v, want JSON-RPC", text, err)
		}
		if m.ID == id {
			if m.Result == nil {
				s.t.Errorf("%s is answered with %.200q", id, text)
			}
			return
		}
	}
	s.t.Fatalf("no answer to %s: %v", id, s.lines.Err())
}

func (s *session) end() {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Error(err)
	}
	for s.lines.Scan() {
		if !json.Valid(s.lines.Bytes()) {
			s.t.Errorf("at the end: %.200q, want JSON", s.lines.Bytes())
		}
	}
	s.wait()
}

func (s *session) wait() {
	s.t.Helper()
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the server ended with %v", err)
	}
}

// peak returns the maximum memory of the server so far, in KiB.
func (s *session) peak() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skipf("this system does not tell a process's memory: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	s.t.Skip("this system does not tell a process's peak memory")
	return 0
}
