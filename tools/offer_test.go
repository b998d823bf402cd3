package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/models/bpe"
	"cairn/tools/gateway"
)

// auto returns a server that chooses its tools itself, over a folder with the files.
func auto(t *testing.T, files map[string]string) *Server {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return New((&fake{tasks: len(files)}).folder(), &Options{Groups: []Group{Auto}, NoRateLimit: true, Tasks: openTasks(t, root, true), Toolbox: openBox(t), Stages: openStages(t), Proxy: &Proxy{Gateway: openGateway(t)}})
}

// openGateway returns a gateway without servers.
func openGateway(t *testing.T) *gateway.Gateway {
	t.Helper()
	store, err := gateway.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return gateway.New(store, gateway.Options{})
}

// TestAutoBudget: whatever a folder holds, the list has fewer than 12 tools and at most
// 3,000 tokens, with servers 2,500, and every other tool can be called by name and through more_tools.
func TestAutoBudget(t *testing.T) {
	s, counter := auto(t, nil), &bpe.Counter{}
	for i := range 32 {
		c := contents{cards: i&1 > 0, documents: i&2 > 0, catalogue: i&4 > 0, graph: i&8 > 0, servers: i&16 > 0}
		list := s.offered(c)
		var definitions []*mcp.Tool
		for _, tool := range list {
			definitions = append(definitions, tool.definition())
		}
		text, err := marshal(&mcp.ListToolsResult{Tools: definitions})
		if err != nil {
			t.Fatal(err)
		}
		tokens := counter.CountTokens(string(text))
		t.Logf("%+v: %d tools of %d tokens: %v", c, len(list), tokens, names(list))
		most := 3000
		if c.servers {
			most = 2500
		}
		if len(list) >= 12 || tokens > most {
			t.Errorf("%+v offers %d tools of %d tokens, want fewer than 12 of at most %d", c, len(list), tokens, most)
		}
		if start := tokens + counter.CountTokens(instructions); c == (contents{}) && start > 2150 { // the state of the index adds some 50
			t.Errorf("the tools and the instructions of a plain folder have %d tokens, want at most 2150", start)
		}
		more := list[len(list)-1]
		for _, tool := range s.tools {
			if offered := slices.Contains(names(list), tool.name); !offered && !strings.Contains(more.description, tool.name) {
				t.Errorf("%+v: %s is neither offered nor named by %s", c, tool.name, more.name)
			}
		}
		for want, yes := range map[string]bool{
			"read_context": true, "create_task": !c.servers, "get_task_dependencies": c.cards && !c.servers, "validate_task_graph": c.cards && !c.servers,
			"view_task": c.documents && !c.servers, "search_tools": c.catalogue || c.servers, "suggest_dag": c.catalogue || c.servers, "call_tool": c.servers, "read_result": c.servers, "run_plan": c.servers, "list_tasks": c.cards || !c.servers,
		} {
			if yes && !slices.Contains(names(list), want) {
				t.Errorf("%+v does not offer %s", c, want)
			}
		}
	}
	if got := names(s.offered(contents{catalogue: true})); !slices.Contains(got, "get_tool") || !slices.Contains(got, "record_usage") || !slices.Contains(got, "related_tools") {
		t.Errorf("a catalogue offers %v, want the group tools", got)
	}
}

// TestExplicitToolsAreAdded: a group that is chosen with auto is listed as a whole.
func TestExplicitToolsAreAdded(t *testing.T) {
	s := auto(t, nil)
	s.options.Groups = []Group{Auto, DAG}
	got := names(s.offered(contents{}))
	for _, tool := range everyTool() {
		if slices.Contains(tool.groups, DAG) && !slices.Contains(got, tool.name) {
			t.Errorf("auto,dag offers %v, without %s", got, tool.name)
		}
	}
	for _, want := range []string{"read_context", "read_doc", "list_tasks", "create_task", "update_task", "index", "status", moreTools} {
		if !slices.Contains(got, want) {
			t.Errorf("auto,dag offers %v, without %s", got, want)
		}
	}
}

// TestUnlistedToolsAreCalled: by name in both ways of calling, and through more_tools,
// which describes a tool that lacks arguments.
func TestUnlistedToolsAreCalled(t *testing.T) {
	server := auto(t, map[string]string{"plan.md": "# Plan\n\n## Tasks\n\n### First\n\n- Status: pending\n"})
	s := startSession(t, server)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	if line := s.receive(); !strings.Contains(line, "more_tools") {
		t.Errorf("the instructions do not name more_tools: %s", line)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, c := range []struct{ method, params, want string }{
		{"tools/list", `{}`, `"name":"view_task"`},
		{"tools/call", `{"name":"dag_get_stats","arguments":{"channelId":"/plan.md"}}`, `"structuredContent":{"success":true`},
		{"dag_get_stats", `{"channelId":"/plan.md"}`, `"result":{"success":true`},
		{"tools/call", `{"name":"more_tools","arguments":{"action":"dag_get_stats","arguments":{"channelId":"/plan.md"}}}`, `"structuredContent":{"success":true`},
		{"more_tools", `{"action":"task","arguments":{"document":"/plan.md"}}`, `"slug":"first"`},
		{"more_tools", `{"action":"task"}`, `"input_schema":{"type":"object","properties":{"document"`},
		{"more_tools", `{}`, `"action":"dag_get_critical_path"`},
		{"more_tools", `{"action":"nothing"}`, `no tool \"nothing\"`},
		{"more_tools", `{"action":"more_tools"}`, `no tool \"more_tools\"`},
		{"more_tools", `{"action":"view_tasks"}`, `did you mean \"view_task\"?`},
		{"tools/call", `{"name":"mcp__cairn__read_context","arguments":{"query":"x"}}`, `did you mean \"read_context\"?`},
		{"more_tools", `{"action":"dag_get_stats","arguments":"{\"channelId\":\"/plan.md\"}"}`, `"result":{"success":true`},
		{"more_tools", `{"action":"task","arguments":null}`, `"input_schema":{"type":"object","properties":{"document"`},
		{"more_tools", `{"action":"task_dag_create","arguments":{"task_id":"q","query":"Who are the members?"}}`, `"stage":"executor_reasoning"`},
		{"tools/call", `{"name":"more_tools","arguments":{"action":"task_dag_get","arguments":{"task_id":"q"}}}`, `"task_id":"q"`},
		{"task_dag_list", `{}`, `"count":1`},
	} {
		s.send(request(i+1, c.method, c.params))
		if line := s.receive(); !strings.Contains(line, c.want) {
			t.Errorf("%s %s is answered with %s, want %s in it", c.method, c.params, line, c.want)
		}
	}
	s.close()
}

// TestChosenToolsAreTheOnlyOnes: a choice without auto is a restriction, and says how to
// lift it.
func TestChosenToolsAreTheOnlyOnes(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), &Options{Groups: []Group{"status"}, Tasks: openTasks(t, t.TempDir(), true)})
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, c := range [][2]string{{"section", `{}`}, {"tools/call", `{"name":"section","arguments":{}}`}} {
		s.send(request(i+1, c[0], c[1]))
		if line := s.receive(); !strings.Contains(line, "`--tools status,docs`") || !strings.Contains(line, "`cairn config set mcp.tools status,docs`") {
			t.Errorf("%s of a tool that was not chosen: %s", c[0], line)
		}
	}
	s.close()
}

// TestMoreToolsKeepsLimits: a call through more_tools counts as one of the tool that it
// names.
func TestMoreToolsKeepsLimits(t *testing.T) {
	server := auto(t, nil)
	server.options.NoRateLimit = false
	tool, _ := server.find(moreTools)
	refused := 0
	for range 40 {
		inner, args, f := server.unwrap(tool, json.RawMessage(`{"action":"list_tasks","arguments":{}}`))
		if f == nil {
			_, f = server.do(t.Context(), "c", inner, call{args: args})
		}
		if f != nil && f.Code == CodeRateLimit {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 40 calls are refused, want 10", refused)
	}
}

// TestMoreToolsKeepsScopes: what reads through more_tools is allowed to callers that may
// only read, and what writes is not.
func TestMoreToolsKeepsScopes(t *testing.T) {
	server := auto(t, nil)
	tool, _ := server.find(moreTools)
	for args, reads := range map[string]bool{
		`{}`: true, `{"action":"section"}`: true, `{"action":"dag_get_stats"}`: true, `{"action":"nothing"}`: true,
		`{"action":"section","arguments":{}}`: false, `{"action":"index"}`: false,
	} {
		if inner, _, _ := server.unwrap(tool, json.RawMessage(args)); inner.readOnly != reads {
			t.Errorf("%s calls %s, which only reads: %v, want %v", args, inner.name, inner.readOnly, reads)
		}
	}
}

// TestListFollowsTheFolder: the first card adds the tools for cards.
func TestListFollowsTheFolder(t *testing.T) {
	server := auto(t, nil)
	l := &listing{server: server}
	l.tools(t.Context())
	if l.changed(t.Context()) {
		t.Error("the list changed by itself")
	}
	create, _ := server.find("create_task")
	if _, f := server.do(t.Context(), "c", create, call{args: json.RawMessage(`{"title":"One"}`)}); f != nil {
		t.Fatal(f)
	}
	if !l.changed(t.Context()) || l.changed(t.Context()) {
		t.Error("the first card does not change the list once")
	}
	var got []string
	for _, d := range l.tools(t.Context()) {
		got = append(got, d.Name)
	}
	if !slices.Contains(got, "get_task_dependencies") {
		t.Errorf("with a card the tools are %v", got)
	}
}
