package cards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

// TestClaimTask: of several processes that claim a task of Claude Code, one succeeds.
func TestClaimTask(t *testing.T) {
	list := t.TempDir()
	tree, err := walk.Open(walk.Root{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for n := range 20 {
		if err := os.WriteFile(filepath.Join(list, fmt.Sprintf("%d.json", n)), []byte(`{"subject":"Plan it","status":"pending"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		var claims sync.WaitGroup
		var claimed atomic.Int32
		for i := range 8 {
			claims.Go(func() {
				updates := map[string]json.RawMessage{"status": json.RawMessage(`"active"`), "assignee": fmt.Appendf(nil, `"@a%d"`, i)}
				s := New(files.New(tree, nil), &Options{Claude: list})
				if _, err := s.Update(t.Context(), UpdateRequest{ID: claudeID(uint64(n)), Updates: updates}); err == nil {
					claimed.Add(1)
				}
			})
		}
		claims.Wait()
		if got := claimed.Load(); got != 1 {
			t.Fatalf("%d claims of task %d succeeded, want 1", got, n)
		}
	}
}

// TestClaudeTasks: tasks of Claude Code are cards, and a change of one keeps every byte around the
// changed value.
func TestClaudeTasks(t *testing.T) {
	list := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(list, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const second = "{\n  \"unknown\": {\"b\": 1.50, \"a\": [1,2]},\n  \"id\": \"2\",\n  \"status\":   \"pending\",\n  \"subject\": \"Write\\nit\",\n  \"blockedBy\": [\n    \"1\"\n  ],\n  \"description\": \"<b>\u00e9\"\n}"
	put("1.json", `{"id":"1","subject":"Plan it","status":"in_progress","owner":"ann","blocks":["2"],"blockedBy":[]}`)
	put("2.json", second)
	put("3.json", `{"id":"3","subject":"hidden","metadata":{"_internal":true}}`)
	put("4.json", "no JSON")
	put("notes.json", "{}")
	if err := os.Symlink(filepath.Join(list, "1.json"), filepath.Join(list, "5.json")); err != nil {
		t.Log(err)
	}
	tree, err := walk.Open(walk.Root{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	s := New(files.New(tree, nil), &Options{Claude: list, EnforceStart: true})
	b, err := s.Board()
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Cards) != 2 || len(b.Unusable) != 1 || b.Live().Graph.IsReady("c00002") {
		t.Fatalf("%d cards, problems %v, want 2 and 1, and task 2 waits", len(b.Cards), b.Unusable)
	}
	update := func(id, updates string) error {
		t.Helper()
		var r UpdateRequest
		if err := json.Unmarshal(fmt.Appendf(nil, `{"id":%q,"updates":%s}`, id, updates), &r); err != nil {
			t.Fatal(err)
		}
		_, err := s.Update(t.Context(), r)
		return err
	}
	for _, refused := range []string{`{"status":"archived"}`, `{"priority":"high"}`, `{"depends_on":[]}`, `{"status":"active"}`} {
		if err := update("c00002", refused); err == nil {
			t.Errorf("%s is accepted", refused)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(list, "2.json")); string(text) != second {
		t.Errorf("a refused change writes %s", text)
	}
	if err := update("c00001", `{"status":"done","assignee":null}`); err != nil {
		t.Fatal(err)
	}
	if b, err = s.Board(); err != nil || !b.Live().Graph.IsReady("c00002") {
		t.Errorf("task 2 waits although task 1 is done: %v", err)
	}
	if err := update("c00002", `{"status":"active","title":"Write it all","assignee":"bob"}`); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"pending"`, `"in_progress"`, `"Write\nit"`, `"Write it all"`, "\u00e9\"\n}", "\u00e9\",\n  \"owner\": \"bob\"\n}").Replace(second)
	if text, _ := os.ReadFile(filepath.Join(list, "2.json")); string(text) != want {
		t.Errorf("changed to\n%s\nwant\n%s", text, want)
	}
	if text, _ := os.ReadFile(filepath.Join(list, "1.json")); string(text) != `{"id":"1","subject":"Plan it","status":"completed","blocks":["2"],"blockedBy":[]}` {
		t.Errorf("task 1 is %s", text)
	}
	found, _, err := s.List(ListRequest{Status: "active", Assignee: "bob"})
	if err != nil || len(found) != 1 || found[0].ID != "c00002" {
		t.Fatalf("found %+v, %v", found, err)
	}
	if b, err = s.Board(); err != nil || b.byID["c00002"].Body != "<b>\u00e9" || !slices.Equal(b.byID["c00002"].DependsOn, []string{"c00001"}) {
		t.Errorf("the card is %+v, %v", b.byID["c00002"], err)
	}
	if err := os.RemoveAll(list); err != nil {
		t.Fatal(err)
	}
	if b, err = s.Board(); err != nil || len(b.Cards) != 0 {
		t.Errorf("without the folder: %d cards, %v", len(b.Cards), err)
	}
}
