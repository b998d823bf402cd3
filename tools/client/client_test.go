package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/toolbox/catalog"
)

// TestMain is also the server: a test starts this binary with CLIENT_TEST_SERVER set.
func TestMain(m *testing.M) {
	if role := os.Getenv("CLIENT_TEST_SERVER"); role != "" {
		os.Exit(serve(role))
	}
	os.Exit(m.Run())
}

func testServer(tools int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test server", Version: "1"}, &mcp.ServerOptions{PageSize: 7})
	for i := range tools {
		s.AddTool(&mcp.Tool{Name: fmt.Sprintf("tool_%02d", i), Description: fmt.Sprintf("Does %d.", i), Annotations: &mcp.ToolAnnotations{Title: "T", ReadOnlyHint: true},
			InputSchema: map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}, "required": []string{"x"}}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	}
	return s
}

func serve(role string) int {
	fmt.Fprintln(os.Stderr, "the server \x1b[31mstarts")
	switch role {
	case "breaks":
		fmt.Fprintln(os.Stderr, "no configuration")
		return 3
	case "silent": // reads its input to no end, and does not stop when it ends
		signalled := make(chan struct{})
		<-signalled
	case "talks": // not the protocol
		fmt.Println("Welcome!")
		time.Sleep(time.Hour) // longer than go test waits
	case "parent": // starts a server that does not end by itself, and is killed
		os.Setenv("CLIENT_TEST_SERVER", "stays")
		self, _ := os.Executable()
		if _, err := Connect(context.Background(), Target{Command: []string{self}}, nil); err == nil {
			process, _ := os.FindProcess(os.Getpid())
			_ = process.Kill()
		}
		return 1
	case "stays":
		if _, err := os.OpenFile(os.Getenv("CLIENT_TEST_PIPE"), os.O_WRONLY, 0); err == nil {
			_ = testServer(1).Run(context.Background(), &mcp.StdioTransport{})
		}
		signalled := make(chan struct{})
		<-signalled
	case "child": // with a child that would outlive it
		pipe, err := os.OpenFile(os.Getenv("CLIENT_TEST_PIPE"), os.O_WRONLY, 0)
		if err != nil {
			return 1
		}
		child := exec.Command("sleep", "60")
		child.Stdout = pipe
		if err := child.Start(); err != nil {
			return 1
		}
	}
	if err := testServer(20).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

func command(t *testing.T, role string) Target {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLIENT_TEST_SERVER", role)
	return Target{Command: []string{self}}
}

func check(t *testing.T, b *catalog.Batch, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Tools) != 20 {
		t.Fatalf("%d tools, want 20", len(b.Tools))
	}
	got := b.Tools[19]
	if got.ID != "test server:tool_19" || got.Title != "T" || got.Description != "Does 19." || len(got.Takes) != 1 || !got.Takes[0].Required {
		t.Errorf("the last tool is %+v", got)
	}
}

func TestImportOverStdio(t *testing.T) {
	b, err := Import(t.Context(), command(t, "works"), "")
	check(t, b, err)
	b, err = Import(t.Context(), command(t, "works"), "mine")
	if err != nil || b.Tools[0].ID != "mine:tool_00" {
		t.Errorf("%v, %+v, want the server called mine", err, b)
	}
}

func TestImportOverHTTP(t *testing.T) {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return testServer(20) }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer sesame" || r.Header.Get("X-Api-Key") != "key":
			http.Error(w, "who are you", http.StatusUnauthorized)
		case r.URL.Path == "/sse":
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer s.Close()
	header := http.Header{"X-Api-Key": {"key"}}
	b, err := Import(t.Context(), Target{URL: s.URL, Token: "sesame", Header: header}, "")
	check(t, b, err)
	for name, c := range map[string]struct {
		target Target
		bad    string
	}{
		"no token":  {Target{URL: s.URL, Header: header}, "Unauthorized"},
		"no header": {Target{URL: s.URL, Token: "sesame"}, "Unauthorized"},
		"away":      {Target{URL: s.URL + "/away", Token: "sesame", Header: header}, "redirects to"},
		"older":     {Target{URL: s.URL + "/sse", Token: "sesame", Header: header}, "older transport HTTP+SSE"},
		"scheme":    {Target{URL: "ftp://host/"}, "want http"},
		"no host":   {Target{URL: "http://"}, "want http"},
		"both":      {Target{URL: s.URL, Command: []string{"x"}}, "want one"},
		"neither":   {Target{}, "want http"},
		"no server": {Target{URL: "http://127.0.0.1:1/"}, "connecting to http://127.0.0.1:1/"},
	} {
		if _, err := Import(t.Context(), c.target, ""); err == nil || !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.bad)
		}
	}
}

func TestFailureShowsWhatTheServerSaid(t *testing.T) {
	_, err := Import(t.Context(), command(t, "breaks"), "")
	if err == nil || !strings.Contains(err.Error(), "no configuration") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("error %q, want the server's own words without escapes", err)
	}
	if _, err := Import(t.Context(), Target{Command: []string{filepath.Join(t.TempDir(), "absent")}}, ""); err == nil || !strings.Contains(err.Error(), "starting") {
		t.Errorf("absent program: %v", err)
	}
}

func TestServersThatDoNotAnswerAreEnded(t *testing.T) {
	for _, role := range []string{"silent", "talks"} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := Import(ctx, command(t, role), "")
		cancel()
		if err == nil {
			t.Errorf("%s: no error", role)
		}
	}
}

func TestLimit(t *testing.T) {
	l := &limit{ReadCloser: http.NoBody, left: 0}
	if _, err := l.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "more than 48 MiB") {
		t.Errorf("read beyond the limit: %v", err)
	}
}

// TestOutput: lines that are no messages do not end a session, and hide no message.
func TestOutput(t *testing.T) {
	const a, b = `{"jsonrpc":"2.0","id":1,"result":{"x":{}}}`, `{"result":[],"jsonrpc":"2.0","id":2}`
	for _, c := range []struct{ output, messages, log string }{
		{a + "\n" + b + "\r\n", a + "\n" + b + "\n", ""},
		{a, a + "\n", ""},
		{"[INFO] starts\n{ port: 80 }\n[1]\n{\"level\":30}\n" + a + "\n", a + "\n", "[INFO] starts\n{ port: 80 }\n[1]\n{\"level\":30}\n"},
		{"{\"got\":" + a + "}\n", "", "{\"got\":" + a + "}\n"},
		{"Loading…" + a + b + " done\n", a + "\n" + b + "\n", "Loading… done\n"},
		{`{"jsonrpc":"2.0","method":"notif` + a + "\n", a + "\n", `{"jsonrpc":"2.0","method":"notif` + "\n"},
		{"[" + a + "," + b + "]\n", a + "\n" + b + "\n", ""},
		{`{"jsonrpc":"2.0","id":1,"result":NaN}` + "\n", `{"jsonrpc":"2.0","id":1,"result":NaN}` + "\n", ""},
		{strings.Repeat("{[", 1<<20) + "\n", "", strings.Repeat("{[", 1<<20) + "\n"},
	} {
		var log strings.Builder
		m := &messages{lines: bufio.NewReader(strings.NewReader(c.output)), log: &log}
		got, err := io.ReadAll(m)
		if err != nil || string(got) != c.messages || log.String() != c.log {
			t.Errorf("%.100q: messages %.200q, log %.100q, %v, want %.200q and %.100q", c.output, got, &log, err, c.messages, c.log)
		}
	}
	long := &messages{lines: bufio.NewReader(strings.NewReader(`{"result":"` + strings.Repeat("x", maxMessage)))}
	if got, err := io.ReadAll(long); len(got) > 0 || err == nil || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Errorf("a long message: %.100q, %v", got, err)
	}
}
