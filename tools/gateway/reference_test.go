//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
	"cairn/models/bpe"
	"cairn/tools/client"
)

// references are the reference servers of MCP, with a call and a part of its result. DIR is a
// folder with a file a.md in a git repository.
var references = []struct {
	program                     string // from npm or PyPI, in PATH
	args                        []string
	tool, arguments, want, file string // a file that the call writes
}{
	{"mcp-server-filesystem", []string{"DIR"}, "write_file", `{"path":"DIR/new.md","content":"written"}`, "Successfully", "new.md"},
	{"mcp-server-memory", nil, "create_entities", `{"entities":[{"name":"Ann","entityType":"person","observations":["leads"]}]}`, "Ann", "memory.json"},
	{"mcp-server-everything", nil, "echo", `{"message":"hello"}`, "hello", ""},
	{"mcp-server-sequential-thinking", nil, "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtNumber", ""},
	{"mcp-server-git", []string{"--repository", "DIR"}, "git_status", `{"repo_path":"DIR"}`, "a.md", ""},
	{"mcp-server-time", nil, "get_current_time", `{"timezone":"Europe/Berlin"}`, "Europe/Berlin", ""},
	{"mcp-server-fetch", nil, "", "", "", ""},
	{"mcp-server-calculator", nil, "calculate", `{"expression":"6 * 7"}`, "42", ""},
	{"mcp-server-sqlite", []string{"--db-path", "DIR/log.db"}, "create_table", `{"query":"CREATE TABLE a (b TEXT)"}`, "Table created", "log.db"},
}

// openReference returns a gateway to the reference server i, approved, and allowed to write.
func openReference(t *testing.T, i int) (g *Gateway, dir, arguments string) {
	t.Helper()
	r := references[i]
	if _, err := exec.LookPath(r.program); err != nil {
		t.Skipf("%s is not installed", r.program)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("# A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Skipf("git: %s", out)
	}
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(dir, "memory.json"))
	command := []string{r.program}
	for _, arg := range r.args {
		command = append(command, strings.ReplaceAll(arg, "DIR", dir))
	}
	g = open(t, "", func(s *Server, _ *Options) {
		*s = Server{Name: "test", Command: command, Env: []string{"MEMORY_FILE_PATH"}, Permissions: map[string]Permission{r.tool: Allow}}
	})
	approve(t, g)
	return g, dir, strings.ReplaceAll(r.arguments, "DIR", dir)
}

// TestReferenceServers calls the reference servers that are installed, and checks what they do.
func TestReferenceServers(t *testing.T) {
	for i, r := range references {
		t.Run(r.program, func(t *testing.T) {
			g, dir, arguments := openReference(t, i)
			if r.tool == "" {
				return // it would use the network
			}
			got, err := call(t, g, r.tool, arguments)
			if err != nil || !strings.Contains(got, r.want) {
				t.Errorf("%s(%s) = %q, %v, want %q in it", r.tool, arguments, got, err, r.want)
			}
			if r.file != "" {
				if text, err := os.ReadFile(filepath.Join(dir, r.file)); err != nil || len(text) == 0 {
					t.Errorf("the call did not write %s: %v", r.file, err)
				}
			}
		})
	}
}

// TestMeasure prints the figures of benchmarks/gateway.md. CAIRN_MEASURE is the program cairn.
func TestMeasure(t *testing.T) {
	program := os.Getenv("CAIRN_MEASURE")
	if program == "" {
		t.Skip("CAIRN_MEASURE is not set")
	}
	t.Run("tokens", func(t *testing.T) {
		counter, total, tools := &bpe.Counter{}, 0, 0
		for i, r := range references {
			t.Run(r.program, func(t *testing.T) {
				g, _, _ := openReference(t, i)
				s, _ := g.Store().Server("test")
				l, _ := g.server(s)
				listed, err := l.session.ClientSession.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := json.Marshal(listed.Tools)
				n := counter.CountTokens(string(text))
				total, tools = total+n, tools+len(listed.Tools)
				t.Logf("%d tools, %d tokens", len(listed.Tools), n)
			})
		}
		t.Logf("all: %d tools, %d tokens", tools, total)
	})
	t.Run("overhead", func(t *testing.T) { measureOverhead(t, program) })
	t.Run("chaos", measureChaos)
	t.Run("tasks", func(t *testing.T) { measureTasks(t, program) })
}

// throughCairn starts cairn mcp in an empty folder, with the server of open.
func throughCairn(t *testing.T, program string) *client.Session {
	t.Helper()
	s, err := client.Connect(t.Context(), client.Target{Command: []string{program, "mcp", "--no-index", "-C", t.TempDir()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if listed, err := s.ClientSession.ListTools(t.Context(), nil); err == nil {
		text, _ := json.Marshal(listed.Tools)
		t.Logf("cairn: %d tools, %d tokens", len(listed.Tools), (&bpe.Counter{}).CountTokens(string(text)))
	}
	return s
}

func measureOverhead(t *testing.T, program string) {
	g := open(t, "plain", nil)
	approve(t, g)
	t.Setenv(home.Variable, os.Getenv(home.Variable))
	self, _ := os.Executable()
	direct, err := client.Connect(t.Context(), client.Target{Command: []string{self}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	cairn := throughCairn(t, program)
	arguments := json.RawMessage(`{"text":"hello"}`)
	ways := []struct {
		name string
		call func() error
		took []time.Duration
	}{
		{name: "direct", call: func() error {
			_, err := direct.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: arguments})
			return err
		}},
		{name: "gateway in the process", call: func() error {
			_, err := g.Call(t.Context(), Call{Server: "test", Tool: "echo", Arguments: arguments})
			return err
		}},
		{name: "cairn mcp", call: func() error {
			r, err := cairn.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"tool": "test:echo", "arguments": arguments}})
			if err == nil && textOf(r) != "hello" {
				err = fmt.Errorf("answer %q", textOf(r))
			}
			return err
		}},
	}
	for i := range 2200 {
		for k := range ways {
			start := time.Now()
			if err := ways[k].call(); err != nil {
				t.Fatal(ways[k].name, err)
			}
			if i >= 200 {
				ways[k].took = append(ways[k].took, time.Since(start))
			}
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		t.Logf("%s: p50 %v, p95 %v, p99 %v", w.name, w.took[1000], w.took[1900], w.took[1980])
	}
}

// measureChaos makes 1,000 calls by 8 clients, while the server is killed and stopped.
func measureChaos(t *testing.T) {
	g := open(t, "plain", func(_ *Server, o *Options) { o.Timeout, o.Probe = 2*time.Second, time.Second })
	approve(t, g)
	const clients, each = 8, 125
	var mu sync.Mutex
	outcomes, answered := map[string]int{}, map[string]bool{}
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := 0; i < each; {
				id := fmt.Sprintf("%d-%d", c, i)
				if i%25 == 12 {
					disturb(t.Context(), g, (c+i)%3)
				}
				r, err := g.Call(t.Context(), Call{Server: "test", Tool: "echo", Arguments: []byte(`{"text":"` + id + `"}`)})
				mu.Lock()
				outcomes[outcome(r, err)]++
				answered[id] = err == nil && textOf(r) == id
				mu.Unlock()
				if outcome(r, err) == Down { // it has not run
					time.Sleep(50 * time.Millisecond)
					continue
				}
				i++
			}
		})
	}
	wg.Wait()
	ran, wrong := map[string]int{}, 0
	for _, id := range lines(t) {
		ran[id]++
	}
	for id, ok := range answered {
		if ran[id] > 1 || ok && ran[id] != 1 {
			wrong++
		}
	}
	t.Logf("outcomes %v; %d calls lost or doubled", outcomes, wrong)
	if wrong > 0 {
		t.Error("calls were lost or doubled")
	}
}

// disturb kills the server, stops it, or makes it write noise.
func disturb(ctx context.Context, g *Gateway, how int) {
	if how == 2 {
		_, _ = g.Call(ctx, Call{Server: "test", Tool: "talk"})
		return
	}
	r, err := g.Call(ctx, Call{Server: "test", Tool: "pid"})
	var pid int
	if _, scanErr := fmt.Sscan(textOf(r), &pid); err == nil && scanErr == nil {
		_ = syscall.Kill(pid, []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[how])
	}
}
