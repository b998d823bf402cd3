package tools

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

// provoked is a call that has to fail with a code. setup changes the folder first
// and may return a function that restores it.
type provoked struct {
	code, tool, args string
	setup            func(t *testing.T, root string) (undo func())
}

// provocations returns one call for each code that the tools can answer with. A code
// that two families share has two.
func provocations() []provoked {
	slugs := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%q", "s"+strconv.Itoa(i))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	op := func(fields string) string { return `{"document":"/plan.md","operations":[{` + fields + `}]}` }
	lock := func(t *testing.T, root string) func() {
		tree, err := walk.Open(walk.Root{Dir: root})
		if err != nil {
			t.Fatal(err)
		}
		unlock, err := files.New(tree, nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return func() { unlock(); tree.Close() }
	}
	write := func(name, text string) func(*testing.T, string) func() {
		return func(t *testing.T, root string) func() {
			path := filepath.Join(root, filepath.FromSlash(name))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return func() { os.Remove(path) }
		}
	}
	return []provoked{
		{"1001", "read_doc", `{"path":"docs/missing.md"}`, nil},
		{"1001", "update_task", `{"id":"zzzzz9","updates":{"status":"done"}}`, nil},
		{`1001 "kind":"DependencyNotFound"`, "create_task", `{"title":"x","depends_on":["zzzzz9"]}`, nil},
		{`1002 "kind":"CircularDependency"`, "update_task", `{"id":"aaaaaa","updates":{"depends_on":["bbbbbb"]}}`, nil},
		// The same code for references, worded as in the specification.
		{`1002 "cycle_path":["docs/api.md","docs/guide.md","docs/api.md"],"suggestion":"Remove reference from docs/api.md"`, "validate_task_graph", `{"references":true}`, nil},
		{"1003", "read_doc", `{"path":"docs/huge.md"}`, nil},
		{"1006", "read_doc", `{"path":"docs/auth.md","expected_hash":"ffff"}`, nil},
		{"1007", "read_doc", `{"path":"docs/locked.md"}`, nil},
		{"1007", "create_task", `{"title":"x"}`, lock},
		{`1010 "kind":"INVALID_STATUS_TRANSITION"`, "update_task", `{"id":"bbbbbb","updates":{"status":"active"}}`, nil},
		{"1010", "update_task", `{"id":"broken","updates":{"status":"done"}}`, write(".cairn/cards/broken.md", "---\ntitle: [\n---\n")},
		{"-32602", "list_tasks", `{"status":"open"}`, nil},
		{"-32603", "list_tasks", `{}`, func(t *testing.T, root string) func() {
			cards, away := filepath.Join(root, ".cairn", "cards"), filepath.Join(root, ".cairn", "away")
			if err := errors.Join(os.Rename(cards, away), os.WriteFile(cards, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			return func() { os.Remove(cards); os.Rename(away, cards) }
		}},

		{"DOCUMENT_NOT_FOUND", "view_task", `{"document":"/none.md","task":"one"}`, nil},
		{"SECTION_NOT_FOUND", "view_section", `{"document":"/plan.md","section":"none"}`, nil},
		{"INVALID_ADDRESS", "view_task", `{"document":"/../plan.md","task":"one"}`, nil},
		{"INVALID_PARAMETER", "search_documents", `{"query":"x","context_lines":11}`, nil},
		{"MISSING_PARAMETER", "search_documents", `{"query":" "}`, nil},
		{"TOO_MANY_TASKS", "view_task", `{"document":"/plan.md","task":` + slugs(11) + `}`, nil},
		{"TOO_MANY_SECTIONS", "view_section", `{"document":"/plan.md","section":` + slugs(11) + `}`, nil},
		{"NO_TASKS_SECTION", "start_task", `{"document":"/docs/api.md","task":"one"}`, nil},
		{"TASK_NOT_FOUND", "view_task", `{"document":"/plan.md","task":"none"}`, nil},
		{"NOT_A_TASK", "view_task", `{"document":"/plan.md","task":"plan"}`, nil},
		{"EMPTY_TASK_SLUG", "start_task", `{"document":"/plan.md","task":"#"}`, nil},
		{"MISSING_OPERATIONS", "section", `{"document":"/plan.md"}`, nil},
		{"EMPTY_OPERATIONS", "section", `{"document":"/plan.md","operations":[]}`, nil},
		{"BATCH_TOO_LARGE", "section", `{"document":"/plan.md","operations":[` + strings.Repeat(`{"section":"one"},`, 100) + `{"section":"one"}]}`, nil},
		{"INVALID_OPERATION", "task", `{"document":"/plan.md","operation":"drop"}`, nil},
		{"DUPLICATE_HEADING", "section", op(`"section":"one","operation":"insert_after","title":"One","content":"x"`), nil},
		{"INVALID_SLUG", "section", op(`"section":"a\\b","content":"x"`), nil},
		{"INVALID_TITLE", "section", op(`"section":"one","operation":"insert_after","title":"!?","content":"x"`), nil},
		{"INVALID_SECTION_CONTENT", "section", op(`"section":"one","content":"` + strings.Repeat("x", 101<<10) + `"`), nil},
		{"INVALID_REGEX", "search_documents", `{"query":"(","type":"regex"}`, nil},
		{"INVALID_SCOPE", "search_documents", `{"query":"x","scope":"/none/"}`, nil},
		{"PRECONDITION_FAILED", "complete_task", `{"document":"/plan.md","task":"one","if_hash":"00"}`, nil},
		{"FILE_TOO_LARGE", "view_section", `{"document":"/large.md","section":"one"}`, write("large.md", strings.Repeat("large\n", 2<<20))},
		{"RESOURCE_EXHAUSTED", "complete_task", `{"document":"/plan.md","task":"one"}`, lock},
		{"OPERATION_FAILED", "search_documents", `{"query":"fail"}`, nil},

		{"CYCLE_DETECTED", "dag_get_execution_order", `{"channelId":"/ring.md"}`, nil},
		{"CYCLE_DETECTED", "dag_validate_dependency", `{"channelId":"/plan.md","dependentTaskId":"one","dependencyTaskId":"two"}`, nil},
		{"MISSING_NODE", "dag_get_blocking_tasks", `{"channelId":"/plan.md","taskId":"none"}`, nil},
		{"DUPLICATE_EDGE", "dag_validate_dependency", `{"channelId":"/plan.md","dependentTaskId":"two","dependencyTaskId":"one"}`, nil},
		{"SELF_DEPENDENCY", "dag_validate_dependency", `{"channelId":"/plan.md","dependentTaskId":"one","dependencyTaskId":"one"}`, nil},
		{"INTERNAL_ERROR", "dag_get_stats", `{"channelId":"/large.md"}`, write("large.md", strings.Repeat("large\n", 2<<20))},
		{"HIGH_IN_DEGREE", "dag_get_stats", `{"channelId":"/wide.md","details":true}`, nil},
		{"HIGH_OUT_DEGREE", "dag_get_stats", `{"channelId":"/wide.md","details":true}`, nil},
		{"LONG_CHAIN", "dag_get_stats", `{"channelId":"/long.md","details":true}`, nil},
		{"ORPHANED_NODE", "dag_get_stats", `{"channelId":"/wide.md","details":true}`, nil},
	}
}

// failingSearcher is cancelled at one query and finds nothing for others.
type failingSearcher struct{}

func (failingSearcher) Documents(_ context.Context, query, _ string, _ int) ([]string, error) {
	if query == "fail" {
		return nil, context.Canceled
	}
	return nil, nil
}

// TestEveryCode provokes each code that a tool can answer with, on real files, and
// fails for a declared code that no call provokes.
func TestEveryCode(t *testing.T) {
	root := t.TempDir()
	wide := "# Wide\n\n## Tasks\n\n### Alone\n\n### Root\n"
	for i := range 11 {
		wide += fmt.Sprintf("\n### N%d\n* Dependencies: root\n", i)
	}
	wide += "\n### End\n* Dependencies: n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10\n"
	long := "# Long\n\n## Tasks\n"
	for i := range 21 {
		long += fmt.Sprintf("\n### L%d\n* Dependencies: l%d\n", i, i-1)
	}
	for name, text := range map[string]string{
		"plan.md": "# Plan\n\n## Tasks\n\n### One\n\n### Two\n* Dependencies: one\n",
		"ring.md": "# Ring\n\n## Tasks\n\n### A\n* Dependencies: b\n\n### B\n* Dependencies: a\n",
		"wide.md": wide, "long.md": long,
		"docs/api.md": "# API\n\nSee @/docs/guide.md.\n", "docs/guide.md": "---\ntitle: Guide\nrefs: [docs/api.md#api]\n---\n# Guide\n",
		".cairn/cards/aaaaaa.md": "---\ntitle: A\n---\n", ".cairn/cards/bbbbbb.md": "---\ntitle: B\ndepends_on: [aaaaaa]\n---\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.DAG.Enabled = true
	tasks, err := workspace.OpenTasks(config.Selection{Root: root}, cfg, &workspace.TaskOptions{LockWait: time.Millisecond, Searcher: failingSearcher{}})
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	s := New((&fake{}).folder(), &Options{Groups: []Group{All}, Tasks: tasks})
	seen := map[string]bool{"429": true, "503": true} // TestTaskRateLimits, TestStoreIsAway
	for _, p := range provocations() {
		tool, ok := s.find(p.tool)
		if !ok {
			t.Fatalf("there is no tool %s", p.tool)
		}
		undo := func() {}
		if p.setup != nil {
			undo = p.setup(t, root)
		}
		answer, f := s.do(t.Context(), p.code+p.args, tool, call{args: []byte(p.args)})
		undo()
		var body any = answer
		if f != nil {
			body = f
		}
		text, err := marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		code, rest, _ := strings.Cut(p.code, " ")
		seen[code] = true
		has := strings.Contains(string(text), `"code":"`+code+`"`) || strings.Contains(string(text), `"errorCode":"`+code+`"`) || strings.Contains(string(text), `"code":`+code+`,`)
		if !has || !strings.Contains(string(text), rest) {
			t.Errorf("%s %.200s answers %.400s, want %s", p.tool, p.args, text, p.code)
		}
	}
	for file, keep := range map[string]func(name string) bool{
		"failure.go":                              func(name string) bool { return strings.HasPrefix(name, "Code") },
		"../internal/task/errors.go":              func(string) bool { return true },
		"../internal/task/taskgraph/taskgraph.go": func(name string) bool { return strings.HasPrefix(name, "Code") },
		"../internal/base/taskdag/validate.go":    func(string) bool { return true },
	} {
		for name, code := range constants(t, file) {
			if keep(name) && !seen[code] {
				t.Errorf("%s: nothing provokes %s (%s): return it somewhere, or remove it", file, name, code)
			}
		}
	}
}

// constants returns the constants of a file that have a literal value.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{"CodeInvalidParams": strconv.Itoa(CodeInvalidParams)}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, value := range v.Values {
				sign := ""
				if u, ok := value.(*ast.UnaryExpr); ok {
					sign, value = u.Op.String(), u.X
				}
				if lit, ok := value.(*ast.BasicLit); ok {
					text := lit.Value
					if lit.Kind == token.STRING {
						text, _ = strconv.Unquote(text)
					}
					found[v.Names[i].Name] = sign + text
				}
			}
		}
	}
	if len(found) < 3 {
		t.Errorf("%s declares %v only", file, found)
	}
	return found
}
