package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostilePlaces are paths and anchors that lead out of the workspace, or to files that tools
// must not read. OUT stands for the absolute path of a folder outside.
var hostilePlaces = []string{
	"../secret.md", "../../secret.md", "/../secret.md", "docs/../../secret.md", "docs/./../../secret.md", "./../secret.md", "//secret.md", "..", "../", "/..",
	"OUT/secret.md", "/OUT/secret.md", "file://OUT/secret.md", "file:///OUT/secret.md", "//localhostOUT/secret.md", "~/secret.md", "$HOME/secret.md",
	"..\\secret.md", "docs\\..\\..\\secret.md", "\\\\server\\share\\secret.md", "C:/secret.md", "C:secret.md", "C:\\secret.md", "a.md:stream", "a.md::$DATA", "NUL.md", "con.md",
	"%2e%2e/secret.md", "..%2fsecret.md", "%252e%252e/secret.md", "..%c0%afsecret.md", "\uff0e\uff0e/secret.md", "\u2025/secret.md",
	"link.md", "linked/secret.md", "docs/up/secret.md", "loop/a.md", "hard/../../secret.md", ".git/config.md", ".env.md", ".cairn/index/secret.md", ".cairn/cards/../../../secret.md",
	"a.md\x00.md", "a.md\n../secret.md", "../secret.md\x00", " ../secret.md", "../secret.md ", "a.md/../../secret.md", "a.md/", strings.Repeat("../", 300) + "secret.md", strings.Repeat("a/", 3000) + "x.md",
	"a.md#../../secret.md", "a.md#/../secret", "/../secret.md#secret", "link.md#secret", "#../secret.md", "a.md:1-2/../../secret.md", "../secret.md:1-3", "a.md#a#b", "a.md#%2e%2e%2fsecret",
	"cards/../../../secret.md", "cards", "--help", "|cat", "`id`", "${IFS}", "*", "[a-z].md", "{a,b}.md", "",
}

// hostileArguments are the arguments of tools that name a place; %s is the place
// as a JSON string.
var hostileArguments = []struct{ tool, argument, args string }{
	{"read_doc", "path", `{"path":%s}`},
	{"read_doc", "paths", `{"paths":[%s]}`},
	{"read_doc", "anchor", `{"path":"a.md","anchor":%s}`},
	{"create_task", "depends_on", `{"title":"x","depends_on":[%s]}`},
	{"update_task", "id", `{"id":%s,"updates":{"status":"done"}}`},
	{"get_task_dependencies", "id", `{"id":%s}`},
	{"validate_task_graph", "id", `{"id":%s}`},
	{"view_task", "document", `{"document":%s,"task":"secret"}`},
	{"view_task", "task", `{"document":"/a.md","task":%s}`},
	{"start_task", "document", `{"document":%s,"task":"secret"}`},
	{"start_task", "task", `{"document":"/a.md","task":%s}`},
	{"complete_task", "document", `{"document":%s,"task":"secret","note":"written"}`},
	{"complete_task", "task", `{"document":"/a.md","task":%s,"note":"written"}`},
	{"task", "document", `{"document":%s,"operation":"create","title":"written","content":"written"}`},
	{"task", "task", `{"document":"/a.md","operation":"edit","task":%s,"content":"written"}`},
	{"view_section", "document", `{"document":%s,"section":"secret"}`},
	{"view_section", "section", `{"document":"/a.md","section":%s}`},
	{"section", "document", `{"document":%s,"operations":[{"section":"secret","operation":"append","content":"written"}]}`},
	{"section", "operations", `{"document":"/a.md","operations":[{"section":%s,"operation":"append","content":"written"}]}`},
	{"browse_documents", "path", `{"path":%s}`},
	{"search_documents", "scope", `{"query":"TOP-SECRET","scope":%s}`},
	{"check_receipts", "path", `{"path":%s}`},
	{"check_receipts", "receipts", `{"receipts":[%s]}`},
	{"remember", "rests_on", `{"text":"x","rests_on":[%s]}`},
	{"remember", "id", `{"id":%s,"drop":true}`},
	{"read_context", "filters", `{"query":"TOP-SECRET","mode":"keyword","filters":{"path_prefix":%s}}`},
	{"read_context", "context", `{"query":"nothing","mode":"keyword","context":[%s]}`},
	{"context", "card", `{"card":%s}`},
	{"context", "context", `{"query":"nothing","context":[%s]}`},
	{"refs", "symbol", `{"symbol":%s}`},
	{"dag_get_ready_tasks", "channelId", `{"channelId":%s,"details":true}`},
	{"dag_validate_dependency", "channelId", `{"channelId":%s,"dependentTaskId":"secret","dependencyTaskId":"more"}`},
	{"dag_validate_dependency", "dependentTaskId", `{"channelId":"/a.md","dependentTaskId":%s,"dependencyTaskId":"one"}`},
	{"dag_validate_dependency", "dependencyTaskId", `{"channelId":"/a.md","dependentTaskId":"one","dependencyTaskId":%s}`},
	{"dag_get_execution_order", "channelId", `{"channelId":%s,"details":true}`},
	{"dag_get_blocking_tasks", "channelId", `{"channelId":%s,"taskId":"secret","details":true}`},
	{"dag_get_blocking_tasks", "taskId", `{"channelId":"/a.md","taskId":%s,"details":true}`},
	{"dag_get_parallel_groups", "channelId", `{"channelId":%s,"details":true}`},
	{"dag_get_critical_path", "channelId", `{"channelId":%s,"details":true}`},
	{"dag_get_stats", "channelId", `{"channelId":%s,"details":true}`},
}

// harmless are the other arguments of tools that take text: they name no place.
var harmless = map[string]string{
	"browse_documents": "query", "call_tool": "tool arguments", "read_result": "id uri", "run_plan": "plan repeat", "complete_task": "note if_hash if_mtime", "create_task": "title tags assignee", "get_tool": "name",
	"list_tasks": "assignee tags created updated", "context": "query", "read_context": "query cursor", "read_doc": "next expected_hash", "record_usage": "intent calls",
	"related_tools": "tool", "remember": "text title tags by answer", "search_documents": "query", "search_tools": "query context_tools", "section": "if_hash if_mtime",
	"suggest_dag": "intent context_tools tools", "task": "title content status if_hash if_mtime", "task_dag_abort": "task_id reason",
	"task_dag_advance": "task_id reason worker event_id output", "task_dag_create": "query user_id plan task_id", "task_dag_get": "task_id",
	"task_dag_list": "user_id", "update_task": "updates", "verify_plan": "plan intent",
}

// takesText reports whether a value with this schema can hold text of the caller's choice.
func takesText(schema json.RawMessage) bool {
	var s struct{ Enum []any }
	return json.Unmarshal(schema, &s) != nil || s.Enum == nil && (bytes.Contains(schema, []byte(`"string"`)) || !bytes.Contains(schema, []byte(`"type"`)))
}

// TestHostilePlaces calls every tool that takes a path, an anchor or an id with each hostile
// place, through a real server on an indexed folder with links that lead out. No answer shows
// a file outside, and no file outside or inside changes.
func TestHostilePlaces(t *testing.T) {
	if len(hostilePlaces) < 40 {
		t.Fatalf("%d hostile places, want at least 40", len(hostilePlaces))
	}
	top := t.TempDir()
	root := filepath.Join(top, "root")
	const secret = "# Secret\n\n## Tasks\n\n### Secret\n\nTOP-SECRET\n\n### More\n"
	for name, text := range map[string]string{
		"secret.md": secret, "root/a.md": "# A\n\n## Tasks\n\n### One\n", "root/docs/b.md": "# B\n", "root/hard/c.md": "# C\n", "root/.cairn/cards/aaaaaa.md": "---\ntitle: A\n---\n",
		"root/.git/config.md": secret, "root/.env.md": secret,
	} {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link.md": "../secret.md", "linked": "..", "docs/up": "../..", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(link))); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	cairn := binary(t)
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := snapshot(t, top)

	cmd := exec.Command(cairn, "mcp", "-C", root, "--no-index", "--no-record", "--tools", "all")
	cmd.Env = append(os.Environ(), "TASK_DAG_ENABLED=true", "HOME="+top)
	cmd.Stderr = os.Stderr
	w := startSession(t, cmd)
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal(w.ask("tools/list", "{}"), &list); err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, a := range hostileArguments {
		covered[a.tool+" "+a.argument] = true
	}
	for _, tool := range list.Tools {
		for name, schema := range tool.InputSchema.Properties {
			if takesText(schema) && !covered[tool.Name+" "+name] && !slices.Contains(strings.Fields(harmless[tool.Name]), name) {
				t.Errorf("%s takes %s, which is neither among hostileArguments, where it names a place, nor harmless", tool.Name, name)
			}
		}
	}
	asked := 0
	for _, place := range hostilePlaces {
		place = strings.ReplaceAll(place, "OUT", top)
		text, err := json.Marshal(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range hostileArguments {
			if a.tool == "browse_documents" && place == "" || a.argument == "channelId" && (place == "" || place == "cards") || a.tool == "validate_task_graph" && place == "" {
				continue // means the whole folder or its cards
			}
			asked++
			params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, a.tool, strings.Replace(a.args, "%s", string(text), 1))
			if answer := w.ask("tools/call", params); bytes.Contains(answer, []byte("TOP-SECRET")) && !bytes.Contains(text, []byte("TOP-SECRET")) && !strings.Contains(a.args, "TOP-SECRET") || bytes.Contains(answer, []byte(`"more"`)) {
				t.Errorf("%s %.300s shows what lies outside: %.500s", a.tool, params, answer)
			} else if strings.Contains(a.args, "TOP-SECRET") && bytes.Contains(answer, []byte("match_text")) {
				t.Errorf("%s %.300s finds what lies outside: %.500s", a.tool, params, answer)
			}
		}
	}
	w.end()
	if after := snapshot(t, top); after != before {
		t.Errorf("files have changed:\n%s\nwant\n%s", after, before)
	}
	t.Logf("%d places, %d arguments, %d calls", len(hostilePlaces), len(hostileArguments), asked)
}

// snapshot returns every file below a folder with its content.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s: %q\n", strings.TrimPrefix(path, dir), text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// asking is a session in which each request is answered before the next.
type asking struct {
	session
	id int
}

func startSession(t *testing.T, cmd *exec.Cmd) *asking {
	t.Helper()
	m, err := newSessionOf(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{session: *m}
	a.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	a.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return a
}

// ask returns the result or the error of a request.
func (a *asking) ask(method, params string) json.RawMessage {
	a.t.Helper()
	a.id++
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.id, method, params))
	for a.lines.Scan() {
		var m struct {
			ID            int
			Method        string
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(a.lines.Bytes(), &m); err != nil {
			a.t.Fatalf("on standard output: %.200q", a.lines.Bytes())
		}
		if m.Method != "" {
			continue
		}
		if m.ID != a.id {
			a.t.Fatalf("%s is answered %.300q", method, a.lines.Bytes())
		}
		return append(m.Result, m.Error...)
	}
	a.t.Fatalf("%s %.300s is not answered: %v", method, params, a.lines.Err())
	return nil
}
