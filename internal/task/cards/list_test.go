package cards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/task"
)

func TestList(t *testing.T) {
	s, dir := board(t, nil, map[string]string{
		"aaaaa1": card("Low", "priority: low\nstatus: done\ncreated: 2024-01-01T00:00:00Z\n"),
		"aaaaa2": card("High new", "priority: HIGH\nassignee: \"@dev\"\ntags: [Auth, ui]\ncreated: 2024-01-10T00:00:00Z\nupdated: 2026-01-14T00:00:00Z\n"),
		"aaaaa3": card("High old", "priority: high\nassignee: dev\ntags: db\ncreated: 2024-01-05T00:00:00Z\nupdated: soon\n"),
		"aaaaa5": card("None", "tags:\n  - auth\n"),
		"aaaaa4": card("None either", "status: archived\n"),
		"broken": "---\ntitle: [\n---\n",
		"plain0": "# No front matter\n",
	})
	old := today.Add(-48 * time.Hour)
	os.Chtimes(filepath.Join(dir, ".cairn/cards/aaaaa5.md"), old, old)
	for _, c := range []struct {
		r    ListRequest
		want string
	}{
		{ListRequest{}, "aaaaa3 aaaaa2 aaaaa4 aaaaa5 aaaaa1"},
		{ListRequest{Status: "done"}, "aaaaa1"},
		{ListRequest{Status: "archived"}, "aaaaa4"},
		{ListRequest{Assignee: "dev"}, "aaaaa3"},
		{ListRequest{Assignee: "@DEV"}, "aaaaa2"},
		{ListRequest{Tags: []string{"AUTH", "nope"}}, "aaaaa2 aaaaa5"},
		{ListRequest{Priority: "High"}, "aaaaa3 aaaaa2"},
		{ListRequest{Priority: "medium", Tags: []string{"ui"}}, ""},
		{ListRequest{Created: ">2024-01-02"}, "aaaaa3 aaaaa2"},
		{ListRequest{Updated: "2d"}, "aaaaa2 aaaaa5"},
		{ListRequest{Updated: ">2024"}, "aaaaa2 aaaaa4 aaaaa5 aaaaa1"},
	} {
		list, _, err := s.List(c.r)
		if err != nil {
			t.Errorf("%+v: %v", c.r, err)
		}
		var ids []string
		for _, item := range list {
			ids = append(ids, item.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("List(%+v) = %q, want %q", c.r, got, c.want)
		}
	}
	list, _, _ := s.List(ListRequest{Status: "done"})
	if text, _ := json.Marshal(list); string(text) != `[{"id":"aaaaa1","title":"Low","priority":"low","assignee":null,"status":"done","tags":[]}]` {
		t.Errorf("shape: %s", text)
	}
	for _, r := range []ListRequest{{Status: "wip"}, {Priority: "urgent"}} {
		if _, _, err := s.List(r); code(err) != task.CodeInvalidParams {
			t.Errorf("%+v: %v, want -32602", r, err)
		}
	}
	empty := openStore(t, t.TempDir(), nil)
	if list, _, err := empty.List(ListRequest{}); err != nil || len(list) != 0 || list == nil {
		t.Errorf("no workspace folder: %v, %v, want an empty list", list, err)
	}
}

// TestCreationOrderWithinASecond: cards created within a second are ready in the order of
// creation.
func TestCreationOrderWithinASecond(t *testing.T) {
	s, dir := board(t, nil, nil)
	now := today
	s.o.Now = func() time.Time { now = now.Add(20 * time.Microsecond); return now }
	var want []string
	for i := range 20 {
		a, err := s.Create(t.Context(), CreateRequest{Title: fmt.Sprintf("Card %d", i)})
		if err != nil || a.Metadata.Created != "2026-01-15T12:00:00Z" {
			t.Fatal(a, err)
		}
		want = append(want, a.ID)
	}
	for _, s := range []*Store{s, openStore(t, dir, nil)} {
		b, err := s.Board()
		if err != nil {
			t.Fatal(err)
		}
		if got := b.All().Graph.Ready(0); !slices.Equal(got, want) {
			t.Errorf("ready %v, want the order of creation %v", got, want)
		}
	}
}

// TestIDsFold: IDs in requests and in other cards are case-insensitive.
func TestIDsFold(t *testing.T) {
	s, dir := board(t, nil, map[string]string{
		"abc123": card("One", "status: todo\n"), "def456": card("Two", "depends_on: [ABC123]\n"), "Auth-Plan": card("Three", ""), "auth-plan2": card("Four", ""),
	})
	if a, err := s.Dependencies(DependenciesRequest{ID: "DEF456"}); err != nil || a.TaskID != "def456" || a.Count != 1 || a.Tasks[0].ID != "abc123" {
		t.Errorf("dependencies: %+v, %v", a, err)
	}
	if a, err := s.Validate(ValidateRequest{ID: "Def456"}); err != nil || a.TaskID != "def456" || len(a.Missing) > 0 {
		t.Errorf("validate: %+v, %v", a, err)
	}
	if a, err := s.Update(t.Context(), update("ABC123", `{"status":"done","depends_on":["auth-PLAN"]}`)); err != nil || a.ID != "abc123" {
		t.Errorf("update: %+v, %v", a, err)
	}
	if text := read(t, dir, "abc123"); !strings.Contains(text, "depends_on: [Auth-Plan]") {
		t.Errorf("the dependency is written\n%s", text)
	}
	a, err := s.Create(t.Context(), CreateRequest{Title: "New", DependsOn: []string{"Abc123", "abc123"}})
	if err != nil || !slices.Equal(a.Metadata.DependsOn, []string{"abc123"}) {
		t.Errorf("create: %+v, %v", a, err)
	}
	if _, err := s.Update(t.Context(), update("nope99", `{"status":"done"}`)); code(err) != task.CodeNotFound {
		t.Errorf("an unknown id: %v", err)
	}
	if p, err := s.Path("AUTH-PLAN"); err != nil || p != ".cairn/cards/Auth-Plan.md" {
		t.Errorf("path %s, %v", p, err)
	}
}

// TestDependenciesAsPeopleWriteThem: depends_on may contain titles, file names and "none".
func TestDependenciesAsPeopleWriteThem(t *testing.T) {
	s, _ := board(t, nil, map[string]string{
		"abc123": card("Write the Parser", ""), "def456": card("Two", "depends_on: [write the parser, .cairn/cards/GHI789.md]\n"),
		"ghi789": card("Three", "depends_on: none\n"), "jkl012": card("Four", "tags: [x]\ndepends_on:\n  - None.\n  - No such card\n"),
	})
	if a, err := s.Dependencies(DependenciesRequest{ID: "def456"}); err != nil || a.Count != 2 || a.Tasks[0].ID != "abc123" || a.Tasks[1].ID != "ghi789" {
		t.Errorf("%+v, %v", a, err)
	}
	problems, err := s.Check()
	problems = slices.DeleteFunc(problems, func(p task.Problem) bool { return p.Kind != task.MissingTask })
	if err != nil || len(problems) != 1 || problems[0].Message != "depends on No such card, which has no card" || problems[0].Line != 4 {
		t.Errorf("%+v, %v", problems, err)
	}
}

// TestPrioritySynonyms: a card has the priority that its repair writes.
func TestPrioritySynonyms(t *testing.T) {
	s, _ := board(t, nil, map[string]string{"aaaaa1": card("A", "priority: urgent\n"), "aaaaa2": card("B", "priority: sometime\n")})
	counted := func() (all []string) {
		list, _, err := s.List(ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			all = append(all, c.ID+" "+c.Priority)
		}
		return all
	}
	want := []string{"aaaaa1 critical", "aaaaa2 medium"}
	if got := counted(); !slices.Equal(got, want) {
		t.Errorf("before the repair %v, want %v", got, want)
	}
	problems, _ := s.Check()
	if len(problems) != 2 || problems[0].Message != `unknown priority "urgent" counts as critical` {
		t.Errorf("problems %+v", problems)
	}
	if _, err := s.Repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := counted(); !slices.Equal(got, want) {
		t.Errorf("after the repair %v, want %v", got, want)
	}
}
