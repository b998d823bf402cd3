package doctask

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/task"
)

func complete(t testing.TB, d *Docs, doc, slug string) *CompleteTaskAnswer {
	t.Helper()
	a, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: doc, Task: slug})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func list(t testing.TB, d *Docs, doc string) string {
	t.Helper()
	a, err := d.Task(context.Background(), TaskRequest{Document: doc})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range *a.Tasks {
		line := l.Slug + " " + l.Status
		if l.Parent != "" {
			line = l.Parent + "/" + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// TestStatusesAsPeopleWriteThem: complete_task changes the status line in place and does not
// add a second one.
func TestStatusesAsPeopleWriteThem(t *testing.T) {
	for _, c := range []struct {
		text, status string
		want         task.Status
		after        string
	}{
		{"**Status**: in_progress", "in_progress", task.InProgress, "**Status**: completed"},
		{"- **Status**: doing", "doing", task.InProgress, "- **Status**: completed"},
		{"* **Status** : todo", "todo", task.Pending, "* **Status** : completed"},
		{"Status: blocked", "blocked", task.Blocked, "Status: completed"},
		{"+ Status: todo", "todo", task.Pending, "+ Status: completed"},
		{"+ **Status:** todo", "todo", task.Pending, "+ **Status:** completed"},
		{"__Status:__ todo", "todo", task.Pending, "__Status:__ completed"},
		{"Status: done ✅", "done ✅", task.Completed, "Status: done ✅"},
		{"- Status: ✅ Done", "✅ Done", task.Completed, "- Status: ✅ Done"},
		{"- Status: ✅", "✅", task.Completed, "- Status: ✅"},
		{"- Status: 🚧 In Progress", "🚧 In Progress", task.InProgress, "- Status: completed"},
		{"- Status: **done**", "**done**", task.Completed, "- Status: **done**"},
		{"- Status: `in_progress`", "`in_progress`", task.InProgress, "- Status: completed"},
		{"- Status: Done (2026-01-02)", "Done (2026-01-02)", task.Completed, "- Status: Done (2026-01-02)"},
		{"- Status: In progress - half", "In progress - half", task.InProgress, "- Status: completed"},
		{"- Status: Not Started", "Not Started", task.Pending, "- Status: completed"},
		{"**Status:** todo\\\nmore", "todo", task.Pending, "**Status:** completed\\\nmore"},
		{"**Status:** todo  \nmore", "todo", task.Pending, "**Status:** completed  \nmore"},
		{"**Status**:", "pending", task.Pending, "**Status**: completed"},
		{"- Status:  ", "pending", task.Pending, "- Status: completed"},
		{"<!--\n- Status: a | b\n-->\n- Status: todo", "todo", task.Pending, "<!--\n- Status: a | b\n-->\n- Status: completed"},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll("# A\n## Tasks\n### T\n"+c.text+"\n\nText.\n\n### Next\n", "\n", eol)
			d, dir := docs(t, nil, map[string]string{"a.md": text})
			if got := view(t, d, "a.md", "t").Tasks[0].Status; got != c.status {
				t.Errorf("status of %q is %q, want %q", c.text, got, c.status)
			}
			board, _ := d.Board("a.md")
			if tasks := board.Tasks; tasks[0].Status != c.want {
				t.Errorf("status of %q means %s, want %s", c.text, tasks[0].Status, c.want)
			}
			complete(t, d, "a.md", "t")
			got, _ := os.ReadFile(filepath.Join(dir, "a.md"))
			want := strings.ReplaceAll("# A\n## Tasks\n### T\n"+c.after+"\n\nText.\n\n- Completed: 2026-01-15\n\n### Next\n", "\n", eol)
			if string(got) != want {
				t.Errorf("%q completed is\n%q, want\n%q", c.text, got, want)
			}
		}
	}
}

const boxed = `# Plan
## Tasks

- [ ] Write the parser
      over two lines
  - [x] Read the grammar
  - [ ] Write the lexer
    - Status: in_progress
- [x] Set up **the repository** ✅

Text between.

1. [ ] Write the parser
   - Dependencies: Set up the repository

~~~
- [ ] no task
~~~

### Phase 2
- [x] Measure
- [x] Publish

### Release
- Status: todo
- [ ] a step

### Tell
- Dependencies: Release
- [ ] by mail
`

// TestCheckBoxesAreTasks: they are listed, viewed, completed and edited like headings.
func TestCheckBoxesAreTasks(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": boxed})
	if got, want := list(t, d, "/a.md"), "write-the-parser pending, write-the-parser/read-the-grammar completed, write-the-parser/write-the-lexer in_progress, "+
		"set-up-the-repository completed, write-the-parser-1 pending, phase-2 completed, phase-2/measure completed, phase-2/publish completed, release todo, tell pending"; got != want {
		t.Errorf("tasks\n%s, want\n%s", got, want)
	}
	v := view(t, d, "/a.md", "#write-the-lexer", "Write the parser", "a-step").Tasks
	if v[0].Content != "  - [ ] Write the lexer\n    - Status: in_progress" || v[0].Depth != 4 || v[0].Parent != "write-the-parser" || v[0].FullPath != "/a.md#write-the-lexer (task)" {
		t.Errorf("a nested box: %+v", v[0])
	}
	if !strings.HasPrefix(v[1].Content, "- [ ] Write the parser\n      over two lines\n") || !strings.HasSuffix(v[1].Content, "Status: in_progress") || v[1].Depth != 3 {
		t.Errorf("an outer box: %+v", v[1])
	}
	if v[2].Parent != "release" {
		t.Errorf("a step: %+v", v[2])
	}
	board, _ := d.Board("/a.md")
	tasks := board.Tasks
	var nodes []string
	for _, n := range tasks {
		nodes = append(nodes, n.ID+" "+strings.Join(n.DependsOn, " "))
	}
	if want := []string{"write-the-parser ", "read-the-grammar ", "write-the-lexer ", "set-up-the-repository ", "write-the-parser-1 set-up-the-repository", "phase-2 ", "measure ", "publish ", "release ", "tell release"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes %q, want %q", nodes, want)
	}

	if next := complete(t, d, "/a.md", "write-the-lexer").NextTask; next == nil || next.Slug != "write-the-parser-1" {
		t.Errorf("next task %+v, want write-the-parser-1", next)
	}
	if a, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "write-the-parser", Note: "by hand"}); err != nil || a.CompletedTask.Note != "by hand" || a.CompletedTask.CompletedDate != "2026-01-15" {
		t.Errorf("%+v, %v", a, err)
	}
	complete(t, d, "/a.md", "write-the-parser") // again changes nothing
	if a, err := d.Task(context.Background(), TaskRequest{Operation: "edit", Document: "/a.md", Task: "write-the-parser-1", Content: "As said.\n\n- Dependencies: none"}); err != nil || a.Edited.Slug != "write-the-parser-1" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := d.Task(context.Background(), TaskRequest{Operation: "create", Document: "/a.md", Task: "publish", Title: "Announce", Content: "By mail."}); err != nil || a.Created.Slug != "announce" || a.Created.Parent != "phase-2" {
		t.Errorf("%+v, %v", a, err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "a.md"))
	want := strings.NewReplacer(
		"- [ ] Write the parser\n      over two lines\n  - [x]", "- [x] Write the parser\n      over two lines\n  - Completed: 2026-01-15\n  - Note: by hand\n  - [x]",
		"  - [ ] Write the lexer\n    - Status: in_progress", "  - [x] Write the lexer\n    - Status: completed\n    - Completed: 2026-01-15",
		"   - Dependencies: Set up the repository", "   As said.\n\n   - Dependencies: none",
		"- [x] Publish", "- [x] Publish\n- [ ] Announce\n  By mail.").Replace(boxed)
	if string(got) != want {
		t.Errorf("the document is\n%s\nwant\n%s", got, want)
	}

	for _, bad := range []string{"~~~\nopen", "<!-- open"} {
		if _, err := d.Task(context.Background(), TaskRequest{Operation: "edit", Document: "/a.md", Task: "write-the-parser", Content: bad}); code(err) != task.InvalidSectionContent {
			t.Errorf("text %q that hides the tasks behind it: %v", bad, err)
		}
	}
}

// TestMarksOfCheckBoxes: other marks than a blank and an x are tasks as well.
func TestMarksOfCheckBoxes(t *testing.T) {
	const text = "# A\n## Tasks\n- [/] Half\n- [-] No\n- [>] Later\n- [!] Now\n- [a] option\n- [1] footnote\n### Group\n- [x] One\n- [-] Two\n"
	d, dir := docs(t, nil, map[string]string{"a.md": text})
	if got, want := list(t, d, "/a.md"), "half in_progress, no cancelled, later pending, now pending, group completed, group/one completed, group/two cancelled"; got != want {
		t.Errorf("tasks\n%s, want\n%s", got, want)
	}
	complete(t, d, "/a.md", "half")
	complete(t, d, "/a.md", "no")
	want := strings.NewReplacer("[/] Half", "[x] Half\n  - Completed: 2026-01-15", "[-] No", "[x] No\n  - Completed: 2026-01-15").Replace(text)
	if got, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(got) != want {
		t.Errorf("the document is\n%s\nwant\n%s", got, want)
	}
}

// TestEditChangesTheStatusOfACheckBox: the new text of a check box may state another status, or
// none.
func TestEditChangesTheStatusOfACheckBox(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n- [ ] One\n- [ ] Two\n"})
	for _, c := range []struct{ content, want string }{
		{"- Status: doing\n- [ ] part", "# A\n## Tasks\n- [ ] One\n  - Status: doing\n  - [ ] part\n- [ ] Two\n"},
		{"Text.", "# A\n## Tasks\n- [ ] One\n  Text.\n  - [ ] part\n- [ ] Two\n"},
	} {
		_, err := d.Task(context.Background(), TaskRequest{Operation: "edit", Document: "/a.md", Task: "one", Content: c.content})
		if got, _ := os.ReadFile(filepath.Join(dir, "a.md")); err != nil || string(got) != c.want {
			t.Errorf("the text %q: %v\n%s\nwant\n%s", c.content, err, got, c.want)
		}
	}
}

// TestCompleteKeepsBothNotes: the note of a completion is added to an existing note.
func TestCompleteKeepsBothNotes(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n- Note: by hand\n"})
	for i, want := range []string{"done_it", "done_it", "by hand"} {
		a, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "one", Note: []string{"done_it", "done_it", "too late"}[i]})
		if err != nil || a.CompletedTask.Note != want {
			t.Errorf("%+v, %v, want the note %q", a, err, want)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(got) != "# A\n## Tasks\n### One\n**Status:** completed\n\n- Note: by hand\n- Completed: 2026-01-15\n- Note: done_it\n" {
		t.Errorf("the document is\n%s", got)
	}
}

// TestCreateFollowsTheDocument: a document whose tasks are check boxes gets another one.
func TestCreateFollowsTheDocument(t *testing.T) {
	for text, want := range map[string]string{
		"# A\n## Tasks\n- [ ] One\n  - [ ] Part\n\n## Other\n": "# A\n## Tasks\n- [ ] One\n  - [ ] Part\n- [ ] Two\n  Text.\n\n## Other\n",
		"# A\n## Tasks\n### One\n":                             "# A\n## Tasks\n### One\n\n### Two\n\nText.\n",
	} {
		d, dir := docs(t, nil, map[string]string{"a.md": text})
		a, err := d.Task(context.Background(), TaskRequest{Operation: "create", Document: "/a.md", Title: "Two", Content: "Text."})
		if err != nil || a.Created == nil || a.Created.Slug != "two" {
			t.Errorf("%+v, %v", a, err)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(got) != want {
			t.Errorf("%q became\n%q, want\n%q", text, got, want)
		}
	}
}

// TestDependenciesAsPeopleWriteThem: titles, links and slugs lead to tasks, in any case.
func TestDependenciesAsPeopleWriteThem(t *testing.T) {
	const tasks = "\n### Initialize Configuration\n### Database Setup\n### Build, test and ship\n### Task 1: Fetch\n### Task 10: Sleep\n### 1.2 Reach 100%\n### T042 Write 2 tests\n### SHA256 sums: check\n"
	for _, c := range []struct{ text, want string }{
		{"Dependencies: Initialize Configuration", "initialize-configuration"},
		{"- Dependencies: initialize configuration, #database-setup", "initialize-configuration database-setup"},
		{"- Dependencies: [Database Setup](#database-setup)", "database-setup"},
		{"- Dependencies: [the database](#database-setup) [Initialize Configuration](#x)", "database-setup initialize-configuration"},
		{"- Dependencies: [DB](/a.md#database-setup) and [[Initialize Configuration]]", "database-setup initialize-configuration"},
		{"- Dependencies: Database Setup (done), `initialize-configuration`.", "database-setup initialize-configuration"},
		{"- Dependencies: Build, test and ship", "build-test-and-ship"},
		{"- Dependencies: Build, test and ship; Task 1", "build-test-and-ship task-1-fetch"},
		{"- Dependencies: Task 1 and Task 10", "task-1-fetch task-10-sleep"},
		{"- Dependencies: 1.2", "12-reach-100"},
		{"- Dependencies: 1.2 Reach 100%", "12-reach-100"},
		{"- Dependencies: database-setup INITIALIZE-CONFIGURATION", "database-setup initialize-configuration"},
		{"- Dependencies:\n  - Database Setup\n  - [x](#initialize-configuration)\n- Priority: high", "database-setup initialize-configuration"},
		{"**Dependencies:**\n\n- Database Setup\n- Status: todo", "database-setup"},
		{"- Dependencies: 1, 10", "task-1-fetch task-10-sleep"}, {"- Dependencies: t042, 2", "t042-write-2-tests !2"}, {"- Dependencies: SHA256 sums and sha256", "sha256-sums-check"},
		{"- Depends on: Database Setup", "database-setup"}, {"**Depends On:** Database Setup", "database-setup"}, {"* Blocked by: [DB](#database-setup)", "database-setup"},
		{"- Dependencies: Task 1\n- Blocked By:\n  - Database Setup\n- Depends on: 1.2", "task-1-fetch 12-reach-100 database-setup"},
		{"- Dependencies:\n- Depends on: Task 1", "task-1-fetch"},
		{"- Dependencies: None.", ""}, {"- Dependencies: none", ""}, {"- Dependencies: N/A", ""}, {"- Dependencies: -", ""}, {"- Dependencies: None (can start now)", ""},
		{"- Dependencies: Initialise Configuration", "!Initialise Configuration"},
		{"- Dependencies: database-setup ghost", "database-setup !ghost"},
		{"- Dependencies: /b.md#x", "!/b.md#x"},
	} {
		d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### T\n" + c.text + "\n" + tasks})
		doc, err := d.open("/a.md")
		if err != nil {
			t.Fatal(err)
		}
		all, _, _ := doc.tasks()
		var got []string
		for _, dep := range doc.names(all).dependencies(all[0]) {
			if !dep.found {
				dep.id = "!" + dep.id
			}
			got = append(got, dep.id)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestDependenciesInTitles: the titles of check boxes have IDs and dependencies as Obsidian
// writes them.
func TestDependenciesInTitles(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n- [ ] Buy 🆔 Ab-1 ⏫\n- [ ] Plant ⛔ ab-1 🔁 every year\n- [ ] Dig [id:: q7]\n- [ ] Harvest ⛔️ q7, Ab-1,zz 📅 2026-12-01\n  - Dependencies: Plant\n- [ ] Eat [dependsOn:: q7] (dependsOn::Ab-1)\n"})
	board, _ := d.Board("/a.md")
	var got []string
	for _, n := range board.Tasks {
		got = append(got, n.ID[:3]+" "+strings.Join(n.DependsOn, " "))
	}
	buy, plant, dig := board.Tasks[0].ID, board.Tasks[1].ID, board.Tasks[2].ID
	if next := complete(t, d, "/a.md", "Buy").NextTask; next == nil || next.Slug != plant {
		t.Errorf("after Buy comes %+v, want %s", next, plant)
	}
	if want := []string{"buy ", "pla " + buy, "dig ", "har " + plant + " " + dig + " " + buy + " zz", "eat " + dig + " " + buy}; !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
}

// TestLargeTaskDocuments: documents with thousands of tasks and missing dependencies are read
// in linear time.
func TestLargeTaskDocuments(t *testing.T) {
	testutil.Linear(t, "tasks", 2000, func(n int) func() {
		var headings, boxes strings.Builder
		headings.WriteString("# A\n## Tasks\n")
		boxes.WriteString("# B\n## Tasks\n")
		for i := range n {
			fmt.Fprintf(&headings, "### Task %d: x\n- Dependencies: Task %d, no such %d, a/b%d and ghost %d\n", i, i-1, i, i, i)
			fmt.Fprintf(&boxes, "- [ ] Task %d\n  - Dependencies: %s\n", i, strings.Repeat("nothing, ", 50))
		}
		headings.WriteString("### Last\n- Dependencies: " + strings.Repeat("x, ", 500*n) + "\n")
		d, _ := docs(t, nil, map[string]string{"a.md": headings.String(), "b.md": boxes.String()})
		return func() {
			for _, doc := range []string{"/a.md", "/b.md"} {
				if board, err := d.Board(doc); err != nil || board == nil || len(board.Tasks) < n {
					t.Errorf("%s: %+v, %v", doc, board, err)
				}
			}
		}
	})
}

// TestNextTaskCanStart: the next task is one whose dependencies are done, and an answer without
// one names the tasks that are still open.
func TestNextTaskCanStart(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n### Two\n- Dependencies: Four\n### Three\n### Four\n### Five\n- Status: blocked\n### Six\n- Dependencies: Two\n"})
	for _, c := range []struct{ task, next, warning string }{
		{"one", "three", ""},
		{"three", "four", ""},
		{"four", "", "no later task can start; the document has open tasks: two, five, six"},
		{"two", "six", ""},
		{"six", "", "no later task can start; the document has open tasks: five"},
		{"five", "", ""},
	} {
		if got, _ := d.Task(context.Background(), TaskRequest{Document: "/a.md"}); c.task == "one" && (got.NextTask == nil || got.NextTask.Slug != "one") {
			t.Errorf("the list has the next task %+v, want one", got.NextTask)
		}
		a := complete(t, d, "/a.md", c.task)
		next := ""
		if a.NextTask != nil {
			next = a.NextTask.Slug
		}
		if next != c.next || strings.Join(a.Warnings, "; ") != c.warning {
			t.Errorf("after %s comes %q with %q, want %q with %q", c.task, next, a.Warnings, c.next, c.warning)
		}
	}
}

func TestStartWarnsOfUnfinishedDependencies(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n### Two\n- Status: done ✅\n### Three\n- Dependencies: One, Two, Ghost\n"})
	a, err := d.StartTask(context.Background(), StartTaskRequest{Document: "/a.md", Task: "three"})
	if err != nil || !slices.Equal(a.Warnings, []string{"Task three blocked by incomplete dependencies: one, Ghost"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestCheckFindsWhatDoesNotResolve(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{
		"a.md": "# A\r\n## Tasks\r\n### One\r\n- Status: ongoing\r\n- Dependencies: Database Setpu, none\r\n### Database Setup\r\n- Status: maybe\r\n- Dependencies:\r\n  - nothing like it\r\n",
		"b.md": "# B\n## Tasks\n- [ ] One\n  - Dependencies: Two\n- [ ] Two\n  - Dependencies: One\n",
		"c.md": "# C\n## Tasks\n### One\n- Dependencies: None.\n",
	})
	got, err := d.Check(context.Background())
	want := []task.Problem{
		{Path: "a.md", Line: 5, Kind: task.MissingTask, Message: `task one depends on "Database Setpu", which is no task of this document`, Fix: "did you mean #database-setup?", Error: true},
		{Path: "a.md", Line: 7, Kind: task.OddStatus, Message: `task database-setup: unknown status "maybe" counts as pending`, Fix: "set the status to pending, in_progress, completed or blocked", Error: false},
		{Path: "b.md", Line: 3, Kind: task.CycleOfTasks, Message: "Cycle: one -> two -> one", Fix: "remove one of these dependencies", Error: true},
	}
	want = slices.Insert(want, 2, task.Problem{Path: "a.md", Line: 9, Kind: task.MissingTask, Message: `task database-setup depends on "nothing like it", which is no task of this document`, Fix: "name a task of this document by its heading, slug or a link, or write none", Error: true})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want\n%+v", got, err, want)
	}
}

// TestAddressesFold: addresses of documents and tasks are case-insensitive, with or without
// the leading slash, and a card has a short path.
func TestAddressesFold(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"plans/Ab.md": "# A\n## Tasks\n### task-B\n", ".cairn/cards/abc123.md": "---\ntitle: x\n---\n# X\n## Tasks\n### One\n"})
	for _, c := range [][3]string{
		{"/plans/Ab.md", "Task-B", "/plans/Ab.md#task-b (task)"}, {"Plans/ab.md", "#TASK-b", "/plans/Ab.md#task-b (task)"},
		{"cards/abc123.md", "one", "/.cairn/cards/abc123.md#one (task)"}, {"/plans/ab.md", "/plans/Ab.md#task-b", "/plans/Ab.md#task-b (task)"},
	} {
		if got := view(t, d, c[0], c[1]).Tasks[0].FullPath; got != c[2] {
			t.Errorf("%s %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if a, err := d.Browse(context.Background(), BrowseRequest{Path: "PLANS"}); err != nil || a.Path != "/plans" || a.Total != 1 {
		t.Errorf("browsing a folder in another case: %+v, %v", a, err)
	}
	if a, err := d.SearchDocuments(context.Background(), SearchRequest{Query: "task-B", Scope: "/Plans"}); err != nil || a.TotalMatches != 1 {
		t.Errorf("searching a folder in another case: %+v, %v", a, err)
	}
	complete(t, d, "/PLANS/ab.md", "Task-B")
	if got := view(t, d, "/plans/Ab.md", "task-b").Tasks[0].Status; got != "completed" {
		t.Errorf("after completing by another case the status is %s", got)
	}
}
