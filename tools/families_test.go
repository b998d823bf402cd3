package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/task/cards"
	"cairn/internal/task/dagtools"
	"cairn/internal/task/files"
	"cairn/internal/task/mdtask"
)

// TestFamilies provokes what a transcript cannot: failures of others, which
// each family tells in its own words, by both ways of calling.
func TestFamilies(t *testing.T) {
	failing := func(err error) func(context.Context, struct{}) (any, error) {
		return func(context.Context, struct{}) (any, error) { return nil, err }
	}
	graph := func(code string) func(context.Context, call) (any, error) {
		return graphCall(func(context.Context, struct{}) *dagtools.StatsAnswer {
			return &dagtools.StatsAnswer{Message: "m", Error: "e", ErrorCode: code}
		}, func(a *dagtools.StatsAnswer) (string, string, string) { return a.ErrorCode, a.Message, a.Error })
	}
	lock := &files.LockError{Path: "/w", PID: 7}
	for name, c := range map[string]struct {
		call         func(context.Context, call) (any, error)
		body, direct string
	}{
		"a card that changed": {typed(failing(&cards.Error{Code: cards.CodeStale, Message: "Stale Cache", Data: map[string]any{"path": "p"}})),
			`{"code":1006,"message":"Stale Cache","data":{"path":"p"}}`, `1006 Stale Cache {"path":"p"}`},
		"a card that is locked": {typed(failing(fmt.Errorf("a: %w", &cards.Error{Code: cards.CodeLock, Message: "Lock Error", Err: lock}))),
			`{"code":1007,"message":"Lock Error"}`, `1007 Lock Error `},
		"a cancelled card":     {typed(failing(context.Canceled)), `{"code":-32603,"message":"cancelled"}`, `-32603 cancelled `},
		"a cancelled document": {document(failing(context.Canceled)), `{"code":"OPERATION_FAILED","context":{},"error":"cancelled","success":false}`, `-32603 cancelled {"code":"OPERATION_FAILED","context":{}}`},
		"a locked document": {document(failing(&mdtask.Error{Code: mdtask.ResourceExhausted, Message: "busy", Err: lock})),
			`{"code":"RESOURCE_EXHAUSTED","context":{},"error":"busy","success":false}`, `-32603 busy {"code":"RESOURCE_EXHAUSTED","context":{}}`},
		"another error of a document": {document(failing(errors.New("disk"))), `{"code":"OPERATION_FAILED","context":{},"error":"disk","success":false}`, `-32603 disk {"code":"OPERATION_FAILED","context":{}}`},
		"inside a graph": {graph(dagtools.CodeInternal),
			`{"success":false,"stats":null,"summary":{"nodes":0,"edges":0,"ready":0,"blocked":0,"completed":0,"depth":0},"message":"m","error":"e","errorCode":"INTERNAL_ERROR"}`,
			`-32603 m {"error":"e","errorCode":"INTERNAL_ERROR"}`},
	} {
		_, err := c.call(t.Context(), call{})
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
	if a, err := graph(dagtools.CodeCycle)(t.Context(), call{}); err != nil || a == nil {
		t.Errorf("a cycle: %v, %v, want an answer", a, err)
	}
}

// TestUnreadableBoard: a folder of cards that is none is an internal error of
// every family, and the next call answers again once it is one.
func TestUnreadableBoard(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".cairn", "cards")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := New(&fake{}, &Options{Groups: []Group{All}, Tasks: openTasks(t, root, true)})
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
