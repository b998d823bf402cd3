package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/models/bpe"
)

// openTasks opens the tasks of a folder. Its clock advances a second at each reading,
// so that cards have an order that does not depend on their ids.
func openTasks(t *testing.T, root string, dag bool) *workspace.Tasks {
	t.Helper()
	cfg := config.Default()
	cfg.DAG.Enabled = dag
	var calls atomic.Int64
	now := func() time.Time {
		return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(calls.Add(1)) * time.Second)
	}
	tasks, err := workspace.OpenTasks(config.Selection{Root: root}, cfg, &workspace.TaskOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tasks.Close() })
	return tasks
}

// TestTaskTranscripts plays testdata/tasks/*.txtar: a folder, and above it the
// requests. "> TOOL ARGUMENTS" goes through tools/call, "~ TOOL ARGUMENTS"
// is the bare method; "< " is the answer and "! " a failure. Ids that
// create_task makes are written $1, $2 and so on; times of files $mtime.
func TestTaskTranscripts(t *testing.T) {
	playAll(t, "testdata/tasks/*.txtar", playTasks)
}

var fileTime = regexp.MustCompile(`"mtime":"[^"]*"`)

func playTasks(t *testing.T, ar *txtar.Archive) string {
	root := t.TempDir()
	for _, f := range ar.Files {
		name := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	disabled := strings.HasPrefix(string(ar.Comment), "# disabled")
	server := &Options{NoRateLimit: true, Groups: []Group{All}, Tasks: openTasks(t, root, !disabled)}
	var made []string
	return playCalls(t, string(ar.Comment), server, playing{
		args: func(args string) string {
			for i, id := range made {
				args = strings.ReplaceAll(args, fmt.Sprintf("$%d", i+1), id)
			}
			return args
		},
		answered: func(name string, answer []byte) {
			if name != "create_task" && name != "remember" {
				return
			}
			var card struct{ ID string }
			if err := json.Unmarshal(answer, &card); err != nil {
				t.Fatal(err)
			}
			made = append(made, card.ID)
		},
		text: func(text string) string {
			for i, id := range made {
				text = strings.ReplaceAll(text, id, fmt.Sprintf("$%d", i+1))
			}
			return fileTime.ReplaceAllString(text, `"mtime":"$$mtime"`)
		},
	})
}

// TestManual: the table of groups in the manual names the tools of each group.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([a-z_]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(manual), -1)[:len(groups)-1] {
		group, err := ParseGroups(row[1])
		if err != nil {
			t.Fatal(err)
		}
		var have, want []string
		for _, m := range name.FindAllStringSubmatch(row[2], -1) {
			have = append(have, m[1])
		}
		for _, tool := range everyTool() {
			if tool.offeredBy(group) {
				want = append(want, tool.name)
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("docs/agents.md lists %v for group %s, which has %v", have, row[1], want)
		}
	}
}

// TestCoreBudget: the tools offered by default stay small; every tool says when to
// use it and when not.
func TestCoreBudget(t *testing.T) {
	o := &Options{Tasks: openTasks(t, t.TempDir(), true), Toolbox: openBox(t)}
	core, counter, tokens := New((&fake{}).folder(), o).tools, &bpe.Counter{}, 0
	for _, tool := range core {
		text, err := marshal(tool.definition())
		if err != nil {
			t.Fatal(err)
		}
		n := counter.CountTokens(string(text))
		t.Logf("%s: %d", tool.name, n)
		tokens += n
	}
	if len(core) > 12 || tokens > 3000 {
		t.Errorf("the core has %d tools of %d tokens, want at most 12 of 3000", len(core), tokens)
	}
	o.Groups = []Group{All}
	all := New((&fake{}).folder(), o).tools
	seen := map[string]bool{}
	for _, tool := range all {
		if seen[tool.name] {
			t.Errorf("%s is offered twice", tool.name)
		}
		seen[tool.name] = true
		outputSchema(t, tool)
		if _, err := argumentSchema(tool.args).Resolve(nil); err != nil {
			t.Errorf("%s: input schema: %v", tool.name, err)
		}
		if !strings.Contains(tool.description, "Use it ") || !strings.Contains(tool.description, "Not ") {
			t.Errorf("%s does not say when to use it and when not: %q", tool.name, tool.description)
		}
		if d := tool.definition().Annotations; d.ReadOnlyHint && (d.DestructiveHint != nil || !d.IdempotentHint) {
			t.Errorf("%s only reads, and yet destroys or counts", tool.name)
		}
	}
	for _, c := range []struct {
		list        string
		has, hasNot string
	}{
		{"core", "update_task", "dag_get_stats"}, {"tasks", "task", "read_doc"}, {"dag", "dag_get_stats", "list_tasks"},
		{"docs", "section", "status"}, {"docs", "read_doc", "view_task"}, {"dag,query_graph", "query_graph", "view_task"},
	} {
		var err error
		if o.Groups, err = ParseGroups(c.list); err != nil {
			t.Fatal(err)
		}
		s := New((&fake{}).folder(), o)
		_, has := s.find(c.has)
		if _, no := s.find(c.hasNot); !has || no {
			t.Errorf("--tools %s: %s %v, %s %v, want true, false", c.list, c.has, has, c.hasNot, no)
		}
	}
}

// TestTaskRateLimits: both ways of calling share the count.
func TestTaskRateLimits(t *testing.T) {
	o := &Options{Tasks: openTasks(t, t.TempDir(), true)}
	s := newSession(t, (&fake{}).folder(), o)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	sent := 0
	for tool, burst := range map[string]int{"list_tasks": 30, "update_task": 15} {
		for i := range burst + 1 {
			method, params := tool, `{}`
			if i%2 == 1 {
				method, params = "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool)
			}
			if i == burst {
				method, params = tool, `{}`
			}
			sent++
			s.send(request(sent, method, params))
			if refused := strings.Contains(s.receive(), "Rate Limit Exceeded"); refused != (i == burst) {
				t.Errorf("%s, call %d: refused %v", tool, i+1, refused)
			}
		}
	}
	s.close()
}

// TestTaskContext: the tools on tasks add the context of a task if its size is given.
func TestTaskContext(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"plan.md":                "# Plan\n\n## Tasks\n\n### Read it\n\nTwice.\n",
		".cairn/cards/aaaaaa.md": "---\ntitle: Read a page\n---\n\nOnce.\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := New((&fake{}).folder(), &Options{Groups: []Group{All}, Tasks: openTasks(t, root, true)})
	for _, c := range []struct{ tool, args, want string }{
		{"start_task", `{"document":"/plan.md","task":"read-it"}`, ""},
		{"start_task", `{"document":"/plan.md","task":"read-it","context_tokens":300}`, `"task_context":"note: [### Read it Twice.] [] 300`},
		{"get_task_dependencies", `{"id":"aaaaaa"}`, ""},
		{"get_task_dependencies", `{"id":"aaaaaa","context_tokens":200}`, `"task_context":"note: [Read a page Once.] [.cairn/cards/aaaaaa.md] 200`},
	} {
		tool, _ := s.find(c.tool)
		answer, f := s.do(t.Context(), "t", tool, call{args: json.RawMessage(c.args)})
		if f != nil {
			t.Fatal(f)
		}
		text, err := marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && strings.Contains(string(text), `"task_context"`) || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: %s, want %s", c.tool, c.args, text, c.want)
		}
	}
}

// TestLargeReference: a task that refers to a page of a megabyte is answered within the
// token limit of the configuration, and within max_tokens.
func TestLargeReference(t *testing.T) {
	root, counter := t.TempDir(), &bpe.Counter{}
	for name, text := range map[string]string{
		"page.md": "# Page\n\n" + strings.Repeat("A sentence of a page that is far too long.\n", 25_000),
		"plan.md": "# Plan\n\n## Tasks\n\n### Read it\n\nSee @/page.md\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := New((&fake{}).folder(), &Options{Groups: []Group{All}, Tasks: openTasks(t, root, true)})
	start, _ := s.find("start_task")
	for args, most := range map[string]int{
		`{"document":"/plan.md","task":"read-it"}`: config.Default().Core.TokenLimit, `{"document":"/plan.md","task":"read-it","max_tokens":1000}`: 1000,
	} {
		answer, f := s.do(t.Context(), "t", start, call{args: json.RawMessage(args)})
		if f != nil {
			t.Fatal(f)
		}
		text, err := marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if n := counter.CountTokens(string(text)); n > most || n < most*9/10 {
			t.Errorf("%s: %d tokens, want nearly %d", args, n, most)
		}
		if !regexp.MustCompile(`"content_rest":"page.md:[0-9]+-25002"`).Match(text) {
			t.Errorf("%s: the answer does not say where the rest is: ...%s", args, text[len(text)-300:])
		}
	}
}
