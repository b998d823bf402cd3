package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/task/taskgraph"
	"cairn/internal/toolbox"
)

// TestFamilies provokes failures that a transcript cannot, in the format of each
// family, by both ways of calling.
func TestFamilies(t *testing.T) {
	failing := func(err error) func(context.Context, struct{}) (any, error) {
		return func(context.Context, struct{}) (any, error) { return nil, err }
	}
	graph := func(code string) handler {
		return graphHandler(func(context.Context, struct{}) *taskgraph.StatsAnswer {
			return &taskgraph.StatsAnswer{Outcome: taskgraph.Outcome{Message: "m", Error: "e", ErrorCode: code}}
		})
	}
	lock := &files.LockError{Path: "/w", PID: 7}
	for name, c := range map[string]struct {
		handler      handler
		body, direct string
	}{
		"a card that changed": {codeHandler(failing(&task.Error{Number: task.CodeStale, Message: "Stale Cache", Data: map[string]any{"path": "p"}})),
			`{"code":1006,"message":"Stale Cache","data":{"path":"p"}}`, `1006 Stale Cache {"path":"p"}`},
		"a card that is locked": {codeHandler(failing(fmt.Errorf("a: %w", &task.Error{Number: task.CodeLock, Message: "Lock Error", Err: lock}))),
			`{"code":1007,"message":"Lock Error"}`, `1007 Lock Error `},
		"a cancelled card":     {codeHandler(failing(context.Canceled)), `{"code":-32603,"message":"cancelled"}`, `-32603 cancelled `},
		"a cancelled document": {documentHandler(failing(context.Canceled)), `{"code":"OPERATION_FAILED","context":{},"error":"cancelled","success":false}`, `-32603 cancelled {"code":"OPERATION_FAILED","context":{}}`},
		"a locked document": {documentHandler(failing(&task.Error{Code: task.ResourceExhausted, Message: "busy", Err: lock})),
			`{"code":"RESOURCE_EXHAUSTED","context":{},"error":"busy","success":false}`, `-32603 busy {"code":"RESOURCE_EXHAUSTED","context":{}}`},
		"another error of a document": {documentHandler(failing(errors.New("disk"))), `{"code":"OPERATION_FAILED","context":{},"error":"disk","success":false}`, `-32603 disk {"code":"OPERATION_FAILED","context":{}}`},
		"inside a graph": {graph(taskgraph.CodeInternal),
			`{"success":false,"stats":null,"summary":{"nodes":0,"edges":0,"ready":0,"blocked":0,"completed":0,"depth":0},"message":"m","error":"e","errorCode":"INTERNAL_ERROR"}`,
			`-32603 m {"error":"e","errorCode":"INTERNAL_ERROR"}`},
	} {
		_, err := c.handler.call(t.Context(), nil)
		f := FailureOf(err)
		body, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		w := f.wire()
		if direct := fmt.Sprintf("%d %s %s", w.Code, w.Message, w.Data); string(body) != c.body || direct != c.direct {
			t.Errorf("%s:\ngot  %s\nand  %s\nwant %s\nand  %s", name, body, direct, c.body, c.direct)
		}
	}
	if a, err := graph(taskgraph.CodeCycle).call(t.Context(), nil); err != nil || a == nil {
		t.Errorf("a cycle: %v, %v, want an answer", a, err)
	}
}

// TestUnreadableBoard: a file in place of the folder of cards is an internal error in
// every family, and the next call succeeds once the folder is back.
func TestUnreadableBoard(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".cairn", "cards")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := New((&fake{}).folder(), &Options{Groups: []Group{All}, Tasks: openTasks(t, root, true)})
	for _, name := range []string{"list_tasks", "dag_get_stats"} {
		tool, _ := s.find(name)
		if a, f := s.do(t.Context(), "t", tool, call{}); f == nil || f.Code != CodeInternal {
			t.Errorf("%s over a file in the place of the folder: %v, %v, want an internal error", name, a, f)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"list_tasks", "dag_get_stats"} {
		tool, _ := s.find(name)
		if _, f := s.do(t.Context(), "t", tool, call{}); f != nil {
			t.Errorf("%s afterwards: %v", name, f)
		}
	}
}

// TestInstructionsTellWhatThereIs: cards, documents with tasks and the
// catalogue, each where tools for it are offered.
func TestInstructionsTellWhatThereIs(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# A\n\n## Tasks\n\n### One\n", "b.md": "# B\n\n```\n## Tasks\n```\n", "c.md": "# C\n\n## TASKS ##\n", "d.md": "# D\n",
		".cairn/cards/aaaaaa.md": "---\ntitle: A\nstatus: done\n---\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	o := &Options{Groups: []Group{All}, Tasks: openTasks(t, root, true), Toolbox: openBox(t)}
	got := New((&fake{}).folder(), o).describe(t.Context(), true)
	known, err := toolbox.ListOp.Call(t.Context(), o.Toolbox, toolbox.ListRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"It has 1 task cards: 0 todo, 0 active, 1 done.", "2 documents have tasks: /a.md, /c.md.", fmt.Sprintf("Its catalogue has %d tools", known.Total)} {
		if !strings.Contains(got, want) {
			t.Errorf("the instructions say %q, want %q in it", got, want)
		}
	}
	o.Groups = []Group{Docs}
	if got := New((&fake{}).folder(), o).describe(t.Context(), true); got != "" {
		t.Errorf("without tools for it the instructions say %q", got)
	}
}
