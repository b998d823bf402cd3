package cards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

var today = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// board opens cards in a new folder, made from name → content.
func board(t testing.TB, o *files.Options, cards map[string]string) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, ".cairn", "cards")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range cards {
		if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return openStore(t, dir, o), dir
}

func openStore(t testing.TB, dir string, o *files.Options) *Store {
	t.Helper()
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return New(files.New(tree, o), &Options{Now: func() time.Time { return today }})
}

func card(title, rest string) string { return "---\ntitle: " + title + "\n" + rest + "---\n\nBody\n" }

func update(id, updates string) UpdateRequest {
	r := UpdateRequest{ID: id}
	if err := json.Unmarshal([]byte(updates), &r.Updates); err != nil {
		panic(err)
	}
	return r
}

func code(err error) int {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return e.Number
	}
	return 0
}

func read(t testing.TB, dir, id string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".cairn", "cards", id+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSpecificationExample is the example of create_task.
func TestSpecificationExample(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, ".cuedeck", "cards"), 0o755)
	for _, id := range []string{"abc123", "def456"} {
		os.WriteFile(filepath.Join(dir, ".cuedeck/cards", id+".md"), []byte(card(id, "")), 0o644)
	}
	s := openStore(t, dir, nil)
	s.o.Now = func() time.Time { return time.Date(2026, 1, 2, 10, 43, 0, 99, time.UTC) }
	a, err := s.Create(context.Background(), CreateRequest{Title: "Implement login API", Tags: []string{"auth", "backend"},
		Priority: "high", Assignee: "@developer", DependsOn: []string{"abc123", "def456"}})
	if err != nil {
		t.Fatal(err)
	}
	id := a.ID
	got, _ := json.Marshal(a)
	want := `{"id":"` + id + `","path":".cuedeck/cards/` + id + `.md","metadata":{"title":"Implement login API","status":"todo","priority":"high","assignee":"@developer","tags":["auth","backend"],"depends_on":["abc123","def456"],"created":"2026-01-02T10:43:00Z"}}`
	if string(got) != want {
		t.Errorf("create_task answers\n%s\nwant\n%s", got, want)
	}
	text, _ := os.ReadFile(filepath.Join(dir, a.Path))
	wantText := `---
title: Implement login API
status: todo
priority: high
assignee: "@developer"
tags: [auth, backend]
depends_on: [abc123, def456]
created: 2026-01-02T10:43:00Z
---

# Implement login API

## Description

<!-- What is to be done, and how to tell that it is done. -->
`
	if string(text) != wantText {
		t.Errorf("the card is\n%s\nwant\n%s", text, wantText)
	}
	b, err := s.Create(context.Background(), CreateRequest{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(b.Metadata); string(got) != `{"title":"x","status":"todo","priority":"medium","assignee":null,"tags":[],"depends_on":[],"created":"2026-01-02T10:43:00Z"}` {
		t.Errorf("defaults: %s", got)
	}
}

func TestQuoting(t *testing.T) {
	s, dir := board(t, nil, nil)
	for _, title := range []string{`Fix: "a" # b`, "@developer", "- a", "true", "12", "it's", `back\slash`, "[x]", "{y}", "a: b", "#hash", "ümläut 検索", "*star", "&amp", "!bang", "%x", "`tick`", "null", "2026-01-01", "a,b", "trailing:", "? q", "| pipe", "> fold", "=", "~", "'quoted'", `"`} {
		a, err := s.Create(context.Background(), CreateRequest{Title: title, Assignee: "@developer", Tags: []string{title, "b, c"}})
		if err != nil {
			t.Errorf("Create(%q): %v", title, err)
			continue
		}
		b, _ := s.Board()
		c, ok := b.Card(a.ID)
		if !ok || c.Title != title || c.Assignee != "@developer" || !slices.Equal(c.Tags, []string{title, "b, c"}) || len(c.Problems) > 0 {
			t.Errorf("title %q comes back as %+v from\n%s", title, c, read(t, dir, a.ID))
		}
		if _, err := s.Update(context.Background(), update(a.ID, `{"assignee":"`+"a: 'b' #"+`"}`)); err != nil {
			t.Errorf("Update of %q: %v", title, err)
		}
		b, _ = s.Board()
		if c, _ := b.Card(a.ID); c == nil || c.Assignee != "a: 'b' #" || c.Title != title {
			t.Errorf("%q after an update: %+v", title, c)
		}
	}
}

func TestUnknownDependency(t *testing.T) {
	s, dir := board(t, nil, nil)
	_, err := s.Create(context.Background(), CreateRequest{Title: "x", DependsOn: []string{"zzz999"}})
	e, ok := errors.AsType[*task.Error](err)
	if !ok || e.Number != 1001 || e.Data["kind"] != "DependencyNotFound" || e.Data["id"] != "zzz999" || e.Data["path"] != ".cairn/cards/zzz999.md" {
		t.Errorf("got %+v, want DependencyNotFound", err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, ".cairn", "cards")); len(left) > 0 {
		t.Errorf("a refused create leaves %v", left)
	}
}

func TestInvalidUpdates(t *testing.T) {
	content := card("A", "status: todo\n")
	s, dir := board(t, nil, map[string]string{"abc123": content})
	for _, u := range []string{`{"status":"wip"}`, `{}`, `{"foo":1}`, `{"status":null}`, `{"status":1}`, `{"priority":"urgent"}`, `{"priority":"HIGH"}`,
		`{"notes":"` + strings.Repeat("x", 501) + `"}`, `{"assignee":"` + strings.Repeat("x", 51) + `"}`, `{"assignee":"a\nb"}`,
		`{"tags":"a"}`, `{"tags":null}`, `{"tags":[1]}`, `{"tags":[""]}`, `{"depends_on":["../x"]}`, `{"title":" "}`, `{"title":"a\nstatus: done"}`, `{"status":"done","id":"x"}`} {
		if _, err := s.Update(context.Background(), update("abc123", u)); code(err) != task.CodeInvalidParams {
			t.Errorf("updates %s: %v, want -32602", u, err)
		}
	}
	for _, id := range []string{"", "../../x", "a/b", "..", strings.Repeat("a", 101), ".hidden", "a\x00"} {
		if _, err := s.Update(context.Background(), update(id, `{"status":"done"}`)); code(err) != task.CodeInvalidParams {
			t.Errorf("id %q: %v, want -32602", id, err)
		}
	}
	_, err := s.Update(context.Background(), update("abc124", `{"status":"done"}`))
	if e, ok := errors.AsType[*task.Error](err); !ok || e.Number != 1001 || e.Data["suggestion"] != "Did you mean 'abc123'?" {
		t.Errorf("unknown id: %+v", err)
	}
	if got := read(t, dir, "abc123"); got != content {
		t.Errorf("refused updates changed the card to\n%s", got)
	}
}

func TestNothingChanged(t *testing.T) {
	content := card("A", "status: doing # by hand\ntags: [a]\nupdated: 2026-01-01T00:00:00Z\n")
	s, dir := board(t, nil, map[string]string{"abc123": content})
	name := filepath.Join(dir, ".cairn", "cards", "abc123.md")
	before, _ := os.Stat(name)
	a, err := s.Update(context.Background(), update("abc123", `{"status":"active","priority":"medium","assignee":"","notes":null,"tags":["a"],"depends_on":[],"title":"A"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(a)
	if want := `{"id":"abc123","title":"A","status":"active","assignee":null,"priority":"medium","updated_at":"2026-01-01T00:00:00Z","updated_fields":[]}`; string(got) != want {
		t.Errorf("answer\n%s\nwant\n%s", got, want)
	}
	if after, _ := os.Stat(name); !os.SameFile(before, after) || read(t, dir, "abc123") != content {
		t.Error("the file was touched")
	}
}

func TestUpdateKeepsOtherBytes(t *testing.T) {
	content := "\ufeff---\r\n# my card\r\ntitle: 'A'   # t\r\nx-own: {a: [1]}\r\nstatus: todo # s\r\ndepends_on:\r\n  - abc124 # first\r\n---\r\n\r\nBody\r\n* x\r\n\r\n"
	s, dir := board(t, nil, map[string]string{"abc123": content, "abc124": card("B", "")})
	a, err := s.Update(context.Background(), update("abc123", `{"notes":"n: 1","priority":"high","status":"active"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"status", "priority", "notes"}; !slices.Equal(a.UpdatedFields, want) {
		t.Errorf("updated_fields %v, want %v", a.UpdatedFields, want)
	}
	want := strings.Replace(content, "status: todo # s", "status: active # s", 1)
	want = strings.Replace(want, "first\r\n---", "first\r\npriority: high\r\nnotes: \"n: 1\"\r\nupdated: 2026-01-15T12:00:00Z\r\n---", 1)
	if got := read(t, dir, "abc123"); got != want {
		t.Errorf("the card is\n%q\nwant\n%q", got, want)
	}
}

func TestTenThousandIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := NewID()
		if !idPattern.MatchString(id) {
			t.Fatalf("id %q does not match %s", id, idPattern)
		}
		seen[id] = true
	}
	// By the birthday bound 10,000 of 26·32^5 ids hold 0.06 repeats; Create takes
	// another when the file exists, which the next test makes sure of.
	if len(seen) < 9_995 {
		t.Errorf("%d distinct ids of 10000", len(seen))
	}
	s, dir := board(t, nil, nil)
	const n = 1000
	for range n {
		if _, err := s.Create(context.Background(), CreateRequest{Title: "same title"}); err != nil {
			t.Fatal(err)
		}
	}
	if made, _ := os.ReadDir(filepath.Join(dir, ".cairn", "cards")); len(made) != n {
		t.Errorf("%d files, want %d", len(made), n)
	}
}

func TestDates(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d.Add(23 * time.Hour)
	}
	for _, c := range []struct{ filter, yes, no string }{
		{">2w", "2026-01-02 2026-01-15 2026-02-01", "2026-01-01 2025-12-31"},
		{"<2w", "2025-12-31", "2026-01-01 2026-01-02"},
		{"2w", "2026-01-01 2026-01-15", "2025-12-31 2026-01-16"},
		{">0d", "2026-01-16", "2026-01-15 2026-01-14"},
		{">1d", "2026-01-15", "2026-01-14"},
		{"<13m", "2024-12-20", "2024-12-21"}, // 390 days
		{">1y", "2025-01-16", "2025-01-15"},
		{"2024", "2024-01-01 2024-12-31", "2023-12-31 2025-01-01"},
		{">2024", "2025-01-01", "2024-12-31"},
		{"<2024", "2023-12-31", "2024-01-01"},
		{"2024-02", "2024-02-29 2024-02-01", "2024-03-01 2024-01-31"},
		{">2024-02", "2024-03-01", "2024-02-29"},
		{"2024-02-29", "2024-02-29", "2024-02-28 2024-03-01"},
		{"> 2024-01-02", "2024-01-03", "2024-01-02"},
		{"today", "2026-01-15", "2026-01-14 2026-01-16"},
		{"yesterday", "2026-01-14", "2026-01-15"},
		{"This Week", "2026-01-12 2026-01-18", "2026-01-11 2026-01-19"}, // the 15th is a Thursday
		{"last week", "2026-01-05 2026-01-11", "2026-01-12 2026-01-04"},
		{"<this week", "2026-01-11", "2026-01-12"},
	} {
		f, err := parseDateFilter(c.filter, func() time.Time { return today })
		if err != nil {
			t.Errorf("%q: %v", c.filter, err)
			continue
		}
		for _, d := range strings.Fields(c.yes) {
			if !f.match(day(d)) {
				t.Errorf("%q does not match %s", c.filter, d)
			}
		}
		for _, d := range strings.Fields(c.no) {
			if f.match(day(d)) {
				t.Errorf("%q matches %s", c.filter, d)
			}
		}
		if f.match(time.Time{}) {
			t.Errorf("%q matches a card without a date", c.filter)
		}
	}
	s, _ := board(t, nil, nil)
	for _, bad := range []string{"2023-02-29", "2026-13-45", "tomorrow", ">", "d", "-3d", "1.5d", ">=2024", "2024-1-1", "7h", "99999999999d", " "} {
		_, _, err := s.List(ListRequest{Created: bad})
		want := fmt.Sprintf("Invalid date format: '%s'. Expected: YYYY-MM-DD, YYYY-MM, YYYY, or relative (7d, 2w, 3m, 1y)", bad)
		if e, ok := errors.AsType[*task.Error](err); !ok || e.Number != task.CodeInvalidParams || e.Message != want {
			t.Errorf("filter %q: %v, want -32602 %s", bad, err, want)
		}
	}
}

func TestCycle(t *testing.T) {
	s, _ := board(t, nil, map[string]string{
		"a": card("A", "depends_on: [b]\n"), "b": card("B", "depends_on: [c]\n"), "c": card("C", "depends_on: [a]\n"),
		"d": card("D", "depends_on: [c]\n"), "e": card("E", "depends_on: [ghost]\n"),
	})
	got := func(r ValidateRequest) string {
		a, err := s.Validate(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(a)
		return string(text)
	}
	if got, want := got(ValidateRequest{}), `{"valid":false,"error":"Circular dependency detected: a → b → c → a","cycle_path":["a","b","c","a"],"missing":["e → ghost"]}`; got != want {
		t.Errorf("whole graph\n%s\nwant\n%s", got, want)
	}
	if got, want := got(ValidateRequest{ID: "d"}), `{"valid":false,"task_id":"d","error":"Circular dependency detected: a → b → c → a","cycle_path":["a","b","c","a"]}`; got != want {
		t.Errorf("d\n%s\nwant\n%s", got, want)
	}
	if got, want := got(ValidateRequest{ID: "e"}), `{"valid":true,"task_id":"e","message":"Task dependencies are valid","missing":["e → ghost"]}`; got != want {
		t.Errorf("e\n%s\nwant\n%s", got, want)
	}
	s, _ = board(t, nil, map[string]string{"a": card("A", "depends_on: a\n")})
	a, _ := s.Validate(ValidateRequest{})
	if a.Error != "Circular dependency detected: a → a" {
		t.Errorf("self-dependency: %q", a.Error)
	}
	s, _ = board(t, nil, nil)
	a, _ = s.Validate(ValidateRequest{})
	if text, _ := json.Marshal(a); string(text) != `{"valid":true,"message":"All task dependencies are valid (no circular dependencies)"}` {
		t.Errorf("no cards: %s", text)
	}
	if _, err := s.Validate(ValidateRequest{ID: "abc123"}); code(err) != task.CodeNotFound {
		t.Errorf("unknown id: %v, want 1001", err)
	}
}

func TestUpdateDependencies(t *testing.T) {
	s, dir := board(t, nil, map[string]string{
		"aaaaaa": card("A", "depends_on: [bbbbbb]\n"), "bbbbbb": card("B", "depends_on: [cccccc]\n"), "cccccc": card("C", "depends_on: [ghost1]\n"),
	})
	before := read(t, dir, "cccccc")
	_, err := s.Update(context.Background(), update("cccccc", `{"depends_on":["aaaaaa"]}`))
	e, ok := errors.AsType[*task.Error](err)
	if !ok || e.Number != 1002 || e.Data["kind"] != "CircularDependency" || cmp.Diff([]string{"cccccc", "aaaaaa", "bbbbbb", "cccccc"}, e.Data["cycle_path"]) != "" {
		t.Errorf("got %+v, want CircularDependency with its path", err)
	}
	if _, err := s.Update(context.Background(), update("cccccc", `{"depends_on":["cccccc"]}`)); code(err) != 1002 {
		t.Errorf("self-dependency: %v, want 1002", err)
	}
	if _, err := s.Update(context.Background(), update("cccccc", `{"depends_on":["ghost1","ghost2"],"status":"done"}`)); code(err) != 1001 {
		t.Errorf("a new dependency without a card: %v, want 1001", err)
	}
	if got := read(t, dir, "cccccc"); got != before {
		t.Errorf("refused updates changed the card to\n%s", got)
	}
	if a, err := s.Update(context.Background(), update("aaaaaa", `{"depends_on":["cccccc","bbbbbb"],"tags":["x"],"title":"New: A"}`)); err != nil || !slices.Equal(a.UpdatedFields, []string{"tags", "depends_on", "title"}) {
		t.Errorf("a good update: %+v, %v", a, err)
	}
	d, err := s.Dependencies(DependenciesRequest{ID: "cccccc", Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(d)
	if want := `{"task_id":"cccccc","type":"dependents","count":2,"tasks":[{"id":"aaaaaa","title":"New: A","status":"todo"},{"id":"bbbbbb","title":"B","status":"todo"}]}`; string(text) != want {
		t.Errorf("dependents\n%s\nwant\n%s", text, want)
	}
	d, _ = s.Dependencies(DependenciesRequest{ID: "cccccc"})
	if text, _ := json.Marshal(d); string(text) != `{"task_id":"cccccc","type":"dependencies","count":0,"tasks":[],"missing":["ghost1"]}` {
		t.Errorf("a missing dependency: %s", text)
	}
	if _, err := s.Dependencies(DependenciesRequest{ID: "nope00"}); code(err) != task.CodeNotFound {
		t.Errorf("unknown id: %v, want 1001", err)
	}
}

func TestArchivedRemembers(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"abc123": card("A", "status: done\n"), "abc124": card("B", "status: active\n")})
	for id, want := range map[string]string{"abc123": "archived_from: done", "abc124": "archived_from: active"} {
		if a, err := s.Update(context.Background(), update(id, `{"status":"archived"}`)); err != nil || !slices.Equal(a.UpdatedFields, []string{"status"}) {
			t.Fatal(a, err)
		}
		if text := read(t, dir, id); !strings.Contains(text, "status: archived\n"+want) && !strings.Contains(text, want+"\n") {
			t.Errorf("%s holds no %q:\n%s", id, want, text)
		}
	}
	b, _ := s.Board()
	if c, _ := b.Card("abc123"); !c.Done() {
		t.Error("a card archived when done does not count as done")
	}
	if c, _ := b.Card("abc124"); c.Done() {
		t.Error("a card archived while active counts as done")
	}
	if _, err := s.Update(context.Background(), update("abc123", `{"status":"todo"}`)); err != nil {
		t.Fatal(err)
	}
	if text := read(t, dir, "abc123"); strings.Contains(text, "archived_from") {
		t.Errorf("archived_from stays after the archive:\n%s", text)
	}
}

func TestEnforceStart(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"abc123": card("A", "depends_on: [abc124, abc125]\n"), "abc124": card("B", "status: done\n"), "abc125": card("C", "")})
	s.o.EnforceStart = true
	_, err := s.Update(context.Background(), update("abc123", `{"status":"active"}`))
	if e, ok := errors.AsType[*task.Error](err); !ok || e.Message != "Task abc123 blocked by incomplete dependencies: abc125" {
		t.Errorf("got %v, want a refusal", err)
	}
	if strings.Contains(read(t, dir, "abc123"), "active") {
		t.Error("the refused start was written")
	}
	if _, err := s.Update(context.Background(), update("abc123", `{"status":"active","depends_on":["abc124"]}`)); err != nil {
		t.Errorf("with its open dependency dropped it may start: %v", err)
	}
}

func TestHandEditsCountAtOnce(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"abc123": card("A", "")})
	name := filepath.Join(dir, ".cairn/cards/abc123.md")
	for i := range 50 { // in place, of one size, faster than time stamps tell
		title := fmt.Sprintf("T%02d", i)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(card(title, ""))
		f.Close()
		list, _, err := s.List(ListRequest{})
		if err != nil || len(list) != 1 || list[0].Title != title {
			t.Fatalf("after edit %d: %+v, %v", i, list, err)
		}
	}
	os.Remove(name)
	if list, _, _ := s.List(ListRequest{}); len(list) != 0 {
		t.Errorf("after removal: %+v", list)
	}
}

func TestCheck(t *testing.T) {
	s, _ := board(t, nil, map[string]string{
		"aaaaa1": card("A", "priority: urgent\ncreated: 2026-13-45\nstatus: someday\nestimate: soon\ntags: [one]\n"),
		"aaaaa2": "---\nstatus: active\nid: aaaaa1\nupdated: 2024-01-01T00:00:00Z\ntags: [two, two]\n---\n# From the heading\n",
		"aaaaa3": "---\ntitle: a: b\n---\n",
		"aaaaa4": "no card",
		"aaaaa5": card("E", "depends_on: [aaaaa6]\n"), "aaaaa6": card("F", "depends_on: [aaaaa5, ghost1]\n"),
		"odd":    card("G", ""),
		"binary": "---\ntitle: x\n---\n\x00",
		"big000": card("big", "") + strings.Repeat("x", 5<<20),
	})
	problems, err := s.Check()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		if p.Fix == "" || p.Message == "" {
			t.Errorf("%+v has no fix or message", p)
		}
		got = append(got, p.ID+" "+p.Kind)
	}
	want := []string{"aaaaa1 date", "aaaaa1 duplicate-id", "aaaaa1 estimate", "aaaaa1 priority", "aaaaa1 single-tag", "aaaaa1 status",
		"aaaaa2 active-without-assignee", "aaaaa2 duplicate-id", "aaaaa2 no-title", "aaaaa2 other-id", "aaaaa2 single-tag", "aaaaa2 stale",
		"aaaaa3 bad-yaml", "aaaaa4 no-front-matter", "aaaaa5 cycle", "aaaaa6 missing-dependency", "big000 large", "binary unreadable", "odd name"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	list, _, _ := s.List(ListRequest{})
	if len(list) != 6 {
		t.Errorf("%d cards are listed beside the broken ones, want 6: %+v", len(list), list)
	}
}

// TestEveryWriteIsWholeOrNothing interrupts creations and updates before the rename.
func TestEveryWriteIsWholeOrNothing(t *testing.T) {
	content := card("A", "status: todo\n")
	crash := errors.New("power cut")
	s, dir := board(t, &files.Options{Fault: func(string) error { return crash }}, map[string]string{"abc123": content})
	if _, err := s.Update(context.Background(), update("abc123", `{"status":"done"}`)); !errors.Is(err, crash) {
		t.Errorf("update: %v, want the crash", err)
	}
	if _, err := s.Create(context.Background(), CreateRequest{Title: "x"}); !errors.Is(err, crash) {
		t.Errorf("create: %v, want the crash", err)
	}
	if got := read(t, dir, "abc123"); got != content {
		t.Errorf("the card is\n%s\nwant it as it was", got)
	}
	if list, _, err := openStore(t, dir, nil).List(ListRequest{}); err != nil || len(list) != 1 || list[0].Status != "todo" {
		t.Errorf("the next process sees %+v, %v, want the one card as it was", list, err)
	}
}

func TestUpdateRefusedWhenChangedMeanwhile(t *testing.T) {
	var name string
	o := &files.Options{Fault: func(string) error { return os.WriteFile(name, []byte(card("Theirs", "")), 0o644) }}
	s, dir := board(t, o, map[string]string{"abc123": card("Ours", "")})
	name = filepath.Join(dir, ".cairn/cards/abc123.md")
	if _, err := s.Update(context.Background(), update("abc123", `{"status":"done"}`)); code(err) != task.CodeStale {
		t.Errorf("got %v, want 1006", err)
	}
	if got := read(t, dir, "abc123"); got != card("Theirs", "") {
		t.Errorf("the other's write is lost: %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".cairn/cards/.cairn-*")); len(left) > 0 {
		t.Errorf("a refused write leaves %v", left)
	}
}

func TestQueryGraph(t *testing.T) {
	s, _ := board(t, nil, map[string]string{"aaaaaa": card("A", "depends_on: [bbbbbb]\n"), "bbbbbb": card("B", "status: done\n")})
	for format, want := range map[string]string{
		"":        `{"nodes":[{"id":"aaaaaa","title":"A","status":"todo"},{"id":"bbbbbb","title":"B","status":"done"}],"edges":[{"from":"aaaaaa","to":"bbbbbb"}]}`,
		"mermaid": "graph LR\n    aaaaaa[\"aaaaaa: A\"] --> bbbbbb[\"bbbbbb: B\"]\n",
	} {
		if a, err := s.QueryGraph(GraphRequest{Format: format}); err != nil || a.Graph != want {
			t.Errorf("format %q: %+v, %v, want %s", format, a, err, want)
		}
	}
	if _, err := s.QueryGraph(GraphRequest{Format: "svg"}); code(err) != task.CodeInvalidParams {
		t.Errorf("format svg: %v, want -32602", err)
	}
}
