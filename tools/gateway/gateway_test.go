//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
	"cairn/internal/toolbox/catalog"
)

func TestCall(t *testing.T) {
	t.Setenv("SECRET_OF_ANOTHER", "x")
	g := open(t, "talks", nil)
	if _, err := call(t, g, "echo", `{"text":"hi"}`); !strings.Contains(fmt.Sprint(err), "has not been approved") {
		t.Errorf("before the approval: %v", err)
	}
	approve(t, g)
	for _, c := range []struct{ tool, arguments, want string }{
		{"echo", `{"text":"hi"}`, "hi"}, {"talk", ``, "talked"}, {"refuse", ``, "refused\n{\"hint\":\"later\"}"}, {"echo", `{"text":"ho"}`, "ho"},
		{"variable", `{"text":"GATEWAY_ROLE"}`, "talks"}, {"variable", `{"text":"SECRET_OF_ANOTHER"}`, ""},
	} {
		if got, err := call(t, g, c.tool, c.arguments); err != nil || got != c.want {
			t.Errorf("%s(%s) = %.100q, %v, want %q", c.tool, c.arguments, got, err, c.want)
		}
	}
	var bad *catalog.ArgumentError
	if _, err := call(t, g, "repeat", `{"text":"a","coun":"b"}`); !errors.As(err, &bad) || len(bad.Nearest["coun"]) == 0 || bad.Nearest["coun"][0] != "count" {
		t.Errorf("wrong arguments: %v, %+v", err, bad)
	}
	if got := lines(t); len(got) != 2 {
		t.Errorf("the tool ran for %v, want two calls", got)
	}
	log, err := filepath.Glob(filepath.Join(os.Getenv(home.Variable), "data", "servers", "test-*.log"))
	if err != nil || len(log) != 1 {
		t.Fatalf("logs %v, %v", log, err)
	}
	text, err := os.ReadFile(log[0])
	if info, statErr := os.Stat(log[0]); err != nil || statErr != nil || !strings.Contains(string(text), "Welcome") || info.Mode().Perm() != 0o600 {
		t.Errorf("the log has %.200q, %v, want what the server wrote besides messages, for the user alone", text, err)
	}
}

// TestChangedDefinitionIsNotCalled: neither after the server announces it, nor after a restart.
func TestChangedDefinitionIsNotCalled(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	if _, err := call(t, g, "turn", ``); err != nil {
		t.Fatal(err)
	}
	for announced := false; !announced; {
		g.mu.Lock()
		for _, l := range g.live {
			l.mu.Lock()
			announced = announced || l.listed.IsZero()
			l.mu.Unlock()
		}
		g.mu.Unlock()
	}
	if _, err := call(t, g, "echo", `{}`); !strings.Contains(fmt.Sprint(err), "has changed since it was approved") {
		t.Errorf("after list_changed: %v", err)
	}
	if _, err := call(t, g, "pid", ``); err != nil {
		t.Errorf("another tool: %v", err)
	}
	g.Close()
	t.Setenv("GATEWAY_ROLE", "changed")
	g = New(g.Store(), Options{})
	t.Cleanup(g.Close)
	if _, err := call(t, g, "echo", `{}`); !strings.Contains(fmt.Sprint(err), "has changed since it was approved") {
		t.Errorf("after a restart: %v", err)
	}
	approve(t, g)
	if _, err := call(t, g, "echo", `{}`); err != nil {
		t.Errorf("after the approval: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	g := open(t, "plain", func(s *Server, _ *Options) { s.Permissions = map[string]Permission{"pid": Deny} })
	approve(t, g)
	if _, err := call(t, g, "delete_all", `{"text":"x"}`); outcome(nil, err) != "refused" || !strings.Contains(err.Error(), "`cairn tools permit test:delete_all allow`") {
		t.Errorf("a destructive tool: %v", err)
	}
	if _, err := call(t, g, "pid", ``); outcome(nil, err) != "denied" {
		t.Errorf("a denied tool: %v", err)
	}
	for _, yes := range []bool{false, true} {
		question := ""
		_, err := g.Call(t.Context(), Call{Server: "test", Tool: "delete_all", Arguments: []byte(`{"text":"x"}`), Peer: Peer{Confirm: func(_ context.Context, q string) (bool, error) { question = q; return yes, nil }}})
		if (err == nil) != yes || !strings.Contains(question, `{"text":"x"}`) {
			t.Errorf("answer %v to %q: %v", yes, question, err)
		}
	}
	if err := g.Store().Change(func(all map[string]Server) error {
		s := all["test"]
		s.Permissions = map[string]Permission{"delete_all": Allow}
		all["test"] = s
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, g, "delete_all", `{"text":"y"}`); err != nil {
		t.Errorf("an allowed tool: %v", err)
	}
	if got := strings.Join(lines(t), ","); got != "x,y" {
		t.Errorf("the tool ran for %s, want x,y", got)
	}
}

func TestQuestionOfAServer(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	message := ""
	r, err := g.Call(t.Context(), Call{Server: "test", Tool: "ask", Peer: Peer{Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		message = p.Message
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
	}}})
	if err != nil || textOf(r) != "accept" || message != "The server test asks: May I?" {
		t.Errorf("%q, %v, message %q", textOf(r), err, message)
	}
	if got, err := call(t, g, "ask", ``); err != nil || got != "decline" {
		t.Errorf("a client that cannot ask: %q, %v", got, err)
	}
}

func TestHTTPServer(t *testing.T) {
	sdk := testServer("plain")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" || r.Header.Get("X-Api-Key") != "key" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("TEST_TOKEN", "sesame")
	t.Setenv("TEST_KEY", "key")
	g := open(t, "", func(server *Server, _ *Options) {
		*server = Server{Name: "test", URL: s.URL, TokenEnv: "TEST_TOKEN", Headers: map[string]string{"X-Api-Key": "TEST_KEY"}}
	})
	t.Cleanup(g.Close)
	approve(t, g)
	for range 3 {
		if got, err := call(t, g, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
			t.Errorf("%q, %v", got, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(os.Getenv(home.Variable), "servers.json"))
	if err != nil || strings.Contains(string(text), "sesame") {
		t.Errorf("the file of servers has the token: %s, %v", text, err)
	}
}

// TestAudit: the log has the outcome of each call, and a hash of the arguments.
func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "calls.jsonl")
	g := open(t, "plain", func(_ *Server, o *Options) { o.Audit = path })
	_, _ = call(t, g, "echo", `{}`)
	approve(t, g)
	_, _ = call(t, g, "echo", `{"text":"sk-0123456789"}`)
	_, _ = call(t, g, "echo", `{"text":7}`)
	_, _ = call(t, g, "delete_all", ``)
	_, _ = call(t, g, "die", ``)
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "sk-") {
		t.Fatalf("%s, %v", text, err)
	}
	var outcomes []string
	for line := range strings.Lines(string(text)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || len(e.Arguments) != 64 || !strings.HasPrefix(e.Tool, "test:") {
			t.Errorf("line %s, %v", line, err)
		}
		outcomes = append(outcomes, e.Outcome)
	}
	if got := strings.Join(outcomes, ","); got != "not approved,ok,invalid,refused,lost" {
		t.Errorf("outcomes %s", got)
	}
	for range 3 {
		appendBounded(path, make([]byte, 1000), 500)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 1000 || info.Mode().Perm() != 0o600 {
		t.Errorf("the log is not bounded: %v, %v", info, err)
	}
}

func TestServers(t *testing.T) {
	t.Setenv(home.Variable, t.TempDir())
	store, err := Open([]string{"time: uvx mcp-server-time", "web: https://example.com/mcp", "mine: other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Change(func(all map[string]Server) error { all["mine"] = Server{Command: []string{"own"}}; return nil }); err != nil {
		t.Fatal(err)
	}
	all, err := store.All()
	if err != nil || len(all) != 3 || all["mine"].Folder || all["web"].URL == "" || len(all["time"].Command) != 2 || !all["time"].Folder {
		t.Errorf("servers %+v, %v", all, err)
	}
	for _, bad := range []Server{{}, {Command: []string{"x"}, URL: "http://x"}, {URL: "ftp://x"}, {URL: "https://u:p@x"}, {Command: []string{"x"}, Env: []string{"A=secret"}}, {Command: []string{"x"}, TokenEnv: "a b"},
		{Command: []string{"x"}, Headers: map[string]string{"A": "B"}}, {URL: "http://x", Headers: map[string]string{"A: b\nC": "B"}}, {URL: "http://x", Headers: map[string]string{"A": "secret value"}}} {
		if err := store.Change(func(all map[string]Server) error { all["bad"] = bad; return nil }); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	for _, name := range []string{"", "a b", "../x", "doc", "a:b"} {
		if err := store.Change(func(all map[string]Server) error { all[name] = Server{Command: []string{"x"}}; return nil }); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	path := filepath.Join(os.Getenv(home.Variable), "servers.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := store.All(); err == nil {
		t.Error("a file that others can write is read")
	}
	if _, err := Open([]string{"nothing"}); err == nil {
		t.Error("an entry without a command is accepted")
	}
}
