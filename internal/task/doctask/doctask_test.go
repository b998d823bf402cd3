package doctask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

func docs(t testing.TB, fo *files.Options, content map[string]string) (*Docs, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		write(t, dir, name, text)
	}
	return open(t, dir, nil, fo), dir
}

func code(err error) string {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func view(t testing.TB, d *Docs, doc string, slugs ...string) *ViewTaskAnswer {
	t.Helper()
	a, err := d.ViewTask(context.Background(), ViewTaskRequest{Document: doc, Task: slugs})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestStatusFormats is the table of ways to write a status.
func TestStatusFormats(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"* Status:", "pending"},
		{"* Status:\nnext line", "pending"},
		{"* Status:   ", "pending"},
		{"", "pending"},
		{"* status: done", "pending"},
		{"  *  Status:  in progress  ", "in progress"},
		{"- Status: Done", "Done"},
		{"**Status:** blocked", "blocked"},
		{"- **Status:** blocked", "blocked"},
		{"* **Status:** blocked", "blocked"},
		{"- Status: b\n* Status: a", "a"},
		{"**Status:** c\n- Status: b", "b"},
		{"* Status:\n- Status: b", "b"},
		{"* Status: in\\_progress", "in_progress"},
		{"* Status: a\r\n", "a"},
		{"```\n* Status: code\n```\n- Status: real", "real"},
		{"~~~~\n* Status: code\n~~~\n* Status: code\n~~~~\n", "pending"},
		{"- ```\n  * Status: code\n  ```\n", "pending"},
		{"#### Child\n* Status: of the child", "pending"},
		{"Status: plain", "plain"},
		{"+ Status: x", "x"},
		{"**Status**: x", "x"},
		{"Status: plain\n+ Status: plus\n**Status**: bold", "bold"},
		{"* Sub-Status: x", "pending"},
	} {
		d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### T\n" + c.text + "\n"})
		if got := view(t, d, "a.md", "t").Tasks[0].Status; got != c.want {
			t.Errorf("status of %q is %q, want %q", c.text, got, c.want)
		}
	}
}

func TestParentAtAnyDepth(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## tasks\n### One\n#### Two\n##### Three\n###### Four\n* Status: x\n### Five\n## Other\n### Five\n"})
	for slug, want := range map[string][2]any{"one": {"", 3}, "two": {"one", 4}, "three": {"two", 5}, "one/two/three/four": {"three", 6}, "five": {"", 3}} {
		task := view(t, d, "/a.md", slug).Tasks[0]
		if task.Parent != want[0] || task.Depth != want[1] {
			t.Errorf("%s has parent %q and depth %d, want %v", slug, task.Parent, task.Depth, want)
		}
	}
	if _, err := d.ViewTask(context.Background(), ViewTaskRequest{Document: "/a.md", Task: task.Slugs{"five-1"}}); code(err) != task.NotATask {
		t.Errorf("the second heading of a name, outside the tasks: %v, want NOT_A_TASK", err)
	}
	a := view(t, d, "/a.md", "#one", "one", "/a.md#one")
	if a.Summary.TotalTasks != 1 || len(a.Tasks) != 1 {
		t.Errorf("one task asked for three times counts %d", a.Summary.TotalTasks)
	}
}

func TestMainWorkflow(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n* Main-Workflow: x\n### Two\n* Workflow:\n"})
	a := view(t, d, "/a.md", "two", "one")
	for _, task := range a.Tasks {
		if task.HasWorkflow || task.WorkflowName != "" || task.MainWorkflowName != "x" {
			t.Errorf("%+v, want no workflow and the main one", task)
		}
	}
	if a.Tasks[0].Slug != "two" || a.Summary.TasksWithMainWorkflow != 2 || a.Summary.TasksWithWorkflows != 0 {
		t.Errorf("order or summary: %+v", a)
	}
}

func TestReferences(t *testing.T) {
	var got []string
	for _, r := range markdown.References([]byte("See @/a.md, @/b#s. (@#local) x@y.z @user")) {
		got = append(got, r.Raw)
	}
	if want := []string{"@/a.md", "@/b#s", "@#local"}; !slices.Equal(got, want) {
		t.Errorf("references %v, want %v", got, want)
	}
}

func TestReferenceCycleEnds(t *testing.T) {
	for depth, want := range map[int]string{1: "/a.md:0", 2: "/a.md:0 /b.md:1", 5: "/a.md:0 /b.md:1", 9: "/a.md:0 /b.md:1"} {
		_, dir := docs(t, nil, map[string]string{"t.md": "# T\n## Tasks\n### One\n@/a\n", "a.md": "# A\n@/b\n", "b.md": "# B\n@/a @/b\n"})
		d := open(t, dir, &Options{Depth: depth}, nil)
		var got []string
		for _, r := range view(t, d, "/t.md", "one").Tasks[0].ReferencedDocuments {
			got = append(got, fmt.Sprintf("%s:%d", r.Path, r.Depth))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("depth %d: %v, want %s", depth, got, want)
		}
	}
}

func TestReferencesAreBounded(t *testing.T) {
	_, dir := docs(t, nil, nil)
	var all strings.Builder
	for i := range 50 {
		fmt.Fprintf(&all, "@/r%d ", i)
		write(t, dir, fmt.Sprintf("r%d.md", i), strings.Repeat("x", 1000))
	}
	write(t, dir, "t.md", "# T\n## Tasks\n### One\n"+all.String()+"\n")
	few := open(t, dir, nil, nil)
	few.maxNodes = 20
	a := view(t, few, "/t.md", "one").Tasks[0]
	if len(a.ReferencedDocuments) != 20 || !a.ReferencesTruncated {
		t.Errorf("%d references, truncated %v, want 20 and true", len(a.ReferencedDocuments), a.ReferencesTruncated)
	}
	// Time that is up ends the work with what there is.
	late := open(t, dir, nil, nil)
	late.timeout = time.Nanosecond
	if a := view(t, late, "/t.md", "one").Tasks[0]; !a.ReferencesTruncated {
		t.Error("references go on after their time")
	}
	// The nearest way to a place counts: b is a reference of the task itself, too.
	write(t, dir, "n.md", "# N\n## Tasks\n### One\n@/n1 @/n2\n")
	write(t, dir, "n1.md", "@/n2")
	write(t, dir, "n2.md", "x")
	refs := view(t, late0(t, dir), "/n.md", "one").Tasks[0].ReferencedDocuments
	if len(refs) != 2 || refs[1].Depth != 0 || refs[0].References[0] != "@/n2" {
		t.Errorf("%+v, want both at depth 0", refs)
	}
}

func late0(t testing.TB, dir string) *Docs { return open(t, dir, nil, nil) }

func TestCompleteTwice(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n### Two\n* Status: blocked\n### Three\n* Status: done\n"})
	for range 2 {
		a, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "one"})
		if err != nil || a.NextTask != nil {
			t.Fatalf("%+v, %v, want no next task: one is blocked, one done", a, err)
		}
	}
	text, _ := os.ReadFile(filepath.Join(dir, "a.md"))
	if n := strings.Count(string(text), "Completed:"); n != 1 {
		t.Errorf("%d Completed lines, want 1:\n%s", n, text)
	}
	// A done task in somebody's own words gets its date and keeps its word.
	if _, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "three"}); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(filepath.Join(dir, "a.md"))
	if !strings.HasSuffix(string(text), "### Three\n* Status: done\n- Completed: 2026-01-15\n") {
		t.Errorf("a task that was done:\n%s", text)
	}
	if _, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "one", Note: strings.Repeat("ü", 1001)}); code(err) != task.InvalidParameter {
		t.Errorf("a note of 1001 characters: %v", err)
	}
}

// TestHostileAddresses: addresses of documents and anchors that must fail.
func TestHostileAddresses(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n## Tasks\n### One\n", ".hidden.md": "# H\n## Tasks\n### One\n", ".git/x.md": "# H\n## Tasks\n### One\n", "docs/.x/y.md": "# H\n## Tasks\n### One\n"})
	outside := filepath.Join(filepath.Dir(dir), "outside.md")
	if err := os.WriteFile(outside, []byte("# O\n## Tasks\n### One\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(outside)
	os.Symlink(outside, filepath.Join(dir, "link.md"))
	os.Symlink(filepath.Dir(dir), filepath.Join(dir, "up"))
	os.Mkdir(filepath.Join(dir, "folder.md"), 0o755)
	for _, doc := range []string{"../outside.md", "/../outside.md", "/a/../../outside.md", "//outside.md", "/./a.md", "/a.md/", "/a.md/../a.md", "/..", "/", "", " ", "link.md",
		"up/outside.md", "/folder.md", "/.hidden.md", "/.git/x.md", "/docs/.x/y.md", "/a.md\x00", "/a\n.md", "\\outside.md", "/%2e%2e/outside.md", "/a.md#one", "/a.txt", "/etc/passwd", outside,
		"C:/a.md", "file:///a.md", "/a.md:stream.md", "/" + strings.Repeat("a", 1000) + ".md", "/\xff.md", "/ a.md", "/.cairn/index/x.md", "/.cairn/cards/../../.hidden.md", "/.cairn/cards/.x.md", "/b.md"} {
		requests := map[string]func() error{
			"view_task": func() error {
				_, err := d.ViewTask(context.Background(), ViewTaskRequest{Document: doc, Task: task.Slugs{"one"}})
				return err
			},
			"start_task": func() error {
				_, err := d.StartTask(context.Background(), StartTaskRequest{Document: doc, Task: "one"})
				return err
			},
			"complete_task": func() error {
				_, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: doc, Task: "one"})
				return err
			},
			"view_section": func() error {
				_, err := d.ViewSection(context.Background(), ViewSectionRequest{Document: doc, Section: task.Slugs{"one"}})
				return err
			},
			"section": func() error {
				_, err := d.Section(context.Background(), SectionRequest{Document: doc, Operations: []Operation{{Section: "one", Content: "x"}}})
				return err
			},
		}
		for name, request := range requests {
			if c := code(request()); c != task.InvalidAddress && c != task.DocumentNotFound && c != task.MissingParameter {
				t.Errorf("%s of %q: %s, want a refusal", name, doc, c)
			}
		}
	}
	for _, anchor := range []string{"../x", "a/../b", "/", "a/", "%2e", "a\\b", "a\x00", strings.Repeat("a", 201), strings.Repeat("a/", 21) + "a", "/../outside.md#one", "/link.md#one", "##", "#a#b"} {
		_, err := d.ViewSection(context.Background(), ViewSectionRequest{Document: "/a.md", Section: task.Slugs{anchor}})
		if c := code(err); c != task.InvalidSlug && c != task.InvalidAddress && c != task.SectionNotFound {
			t.Errorf("anchor %q: %v, want a refusal", anchor, err)
		}
	}
	if text, _ := os.ReadFile(outside); string(text) != "# O\n## Tasks\n### One\n" {
		t.Errorf("the file outside is %q now", text)
	}
}

// TestEveryWriteIsWholeOrNothing interrupts each kind of write before the rename, or changes
// the file at that time.
func TestEveryWriteIsWholeOrNothing(t *testing.T) {
	const content = "# A\n\n## Tasks\n\n### One\n\ntext\n"
	writes := map[string]func(d *Docs) error{
		"complete_task": func(d *Docs) error {
			_, err := d.CompleteTask(context.Background(), CompleteTaskRequest{Document: "/a.md", Task: "one"})
			return err
		},
		"create": func(d *Docs) error {
			_, err := d.Task(context.Background(), TaskRequest{Document: "/a.md", Operation: "create", Title: "New", Content: "x"})
			return err
		},
		"edit": func(d *Docs) error {
			_, err := d.Task(context.Background(), TaskRequest{Document: "/a.md", Operation: "edit", Task: "one", Content: "x"})
			return err
		},
		"section": func(d *Docs) error {
			_, err := d.Section(context.Background(), SectionRequest{Document: "/a.md", Operations: []Operation{{Section: "one", Operation: Remove}}})
			return err
		},
	}
	for name, do := range writes {
		crash := errors.New("power cut")
		d, dir := docs(t, &files.Options{Fault: func(string) error { return crash }}, map[string]string{"a.md": content})
		if err := do(d); !errors.Is(err, crash) {
			t.Errorf("%s: %v, want the crash", name, err)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(text) != content {
			t.Errorf("%s that crashed left %q", name, text)
		}
		var target string
		d, dir = docs(t, &files.Options{Fault: func(string) error { return os.WriteFile(target, []byte("theirs"), 0o644) }}, map[string]string{"a.md": content})
		target = filepath.Join(dir, "a.md")
		if err := do(d); code(err) != task.PreconditionFailed {
			t.Errorf("%s while somebody else writes: %v, want PRECONDITION_FAILED", name, err)
		}
		if text, _ := os.ReadFile(target); string(text) != "theirs" {
			t.Errorf("%s overwrote the other's text with %q", name, text)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".cairn-*")); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func TestPrecondition(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n\ntext\n"})
	v, err := d.ViewSection(context.Background(), ViewSectionRequest{Document: "/a.md", Section: task.Slugs{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	edit := func(p Precondition) (*SectionAnswer, error) {
		return d.Section(context.Background(), SectionRequest{Document: "/a.md", Operations: []Operation{{Section: "a", Operation: Append, Content: "x"}}, Precondition: p})
	}
	a, err := edit(Precondition{IfHash: v.Hash, IfMtime: v.Mtime})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edit(Precondition{IfHash: v.Hash}); code(err) != task.PreconditionFailed {
		t.Errorf("an old hash: %v", err)
	}
	if _, err := edit(Precondition{IfMtime: v.Mtime}); code(err) != task.PreconditionFailed {
		t.Errorf("an old time: %v", err)
	}
	if _, err := edit(Precondition{IfHash: a.Hash, IfMtime: a.Mtime}); err != nil {
		t.Errorf("the hash and time a write answers with: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(text) != "# A\n\ntext\n\nx\n\nx\n" {
		t.Errorf("the document is %q", text)
	}
}

// TestRandomEdits makes random edits of random documents. An edit either fails and changes
// nothing, or changes the outline as requested and no bytes elsewhere.
func TestRandomEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	contents := []string{"one paragraph", "* a\n* b", "text\n\n```\n# no heading\n```", "###### deep", "", "a\n\n# top\n", "```\nopen", "<!--", "- Status: done", "    # code", "x\n===", "\ufeff", "| a |\n|---|"}
	made, refused := 0, 0
	for range 1500 {
		src := testutil.Markdown(r, 200+r.IntN(2000))
		if r.IntN(3) == 0 {
			src = strings.ReplaceAll(src, "\n", "\r\n")
		}
		d := newDocument("a.md", []byte(src), files.Stamp{})
		var anchors []int
		for i, s := range d.md().Sections {
			if s.Level > 0 {
				anchors = append(anchors, i)
			}
		}
		if len(anchors) == 0 {
			continue
		}
		i := anchors[r.IntN(len(anchors))]
		s := d.md().Sections[i]
		op := Operation{Section: s.Anchor, Operation: operations[r.IntN(len(operations))], Content: contents[r.IntN(len(contents))], Title: "Fresh title 7"}
		after, res, err := d.apply(op)
		if string(d.src) != src {
			t.Fatal("the source changed")
		}
		if err != nil {
			refused++
			continue
		}
		made++
		from, to := s.Start, s.End
		switch op.Operation {
		case Replace, Append, Prepend:
			from, to = d.bodyStart(i), s.OwnEnd
		case InsertBefore:
			to = s.Start
		case InsertAfter, AppendChild:
			from = d.lastLineEnd(s.Start, s.End)
		}
		head, tail := strings.TrimRight(src[:from], " \t\r\n"), strings.TrimLeft(src[to:], " \t\r\n")
		if got := string(after.src); !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
			t.Fatalf("%s of #%s in\n%q\n gives\n%q\nand changes what is beside it", op.Operation, op.Section, src, got)
		}
		if res.NewSection != "" {
			k, ok := after.find(res.NewSection)
			if !ok || after.md().Sections[k].Heading != op.Title || after.md().Sections[k].Level != res.Depth {
				t.Fatalf("%s made section %q, which is not there", op.Operation, res.NewSection)
			}
		}
	}
	if made < 500 || refused < 100 {
		t.Errorf("%d edits made and %d refused: the test looks at too little", made, refused)
	}
}

func FuzzApply(f *testing.F) {
	f.Add("# A\n\ntext\n## B\n", "a", "content", uint8(0))
	f.Add("A\n===\n```\nx", "a", "- Status: x", uint8(1))
	f.Fuzz(func(t *testing.T, src, section, content string, op uint8) {
		d := newDocument("a.md", []byte(src), files.Stamp{})
		after, _, err := d.apply(Operation{Section: section, Operation: operations[int(op)%len(operations)], Content: content, Title: "T1"})
		if string(d.src) != src {
			t.Fatal("the source changed")
		}
		if err == nil && after == nil {
			t.Fatal("neither document nor error")
		}
	})
}

func TestTasksForTheGraph(t *testing.T) {
	d, _ := docs(t, nil, map[string]string{"a.md": `# A
## Tasks
### One
* Status: done
* Estimate: 2d
### Two
* Dependencies: #one, three; ghost none -
* Assignee: me
#### Notes
Just a part.
#### Three
* Status: wip
#### Four
* Dependencies: /a.md#two /b.md#x
`})
	board, err := d.Board("/a.md")
	if err != nil || board == nil {
		t.Fatal(board, err)
	}
	got := board.Tasks
	var lines []string
	for _, task := range got {
		lines = append(lines, fmt.Sprintf("%s %v %v %g %s", task.ID, task.Status, task.DependsOn, task.Estimate, task.Assignee))
	}
	want := []string{"one completed [] 16 ", "two pending [one three ghost] 0 me", "three in_progress [] 0 ", "four pending [two /b.md#x] 0 "}
	if !slices.Equal(lines, want) {
		t.Errorf("tasks\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if got[1].GraphWord() != "assigned" || got[0].Node().State != (task.Task{Status: task.Completed}).Node().State {
		t.Error("words or states of the graph are wrong")
	}
	for _, none := range []string{"/none.md", "cards", "/../x.md"} {
		if board, err := d.Board(none); board != nil || err != nil {
			t.Errorf("Board(%q): %v, %v, want none", none, board, err)
		}
	}
}

func TestCacheSeesChanges(t *testing.T) {
	_, dir := docs(t, nil, nil)
	d := open(t, dir, nil, nil)
	d.cache.Resize(2)
	for i := range 30 { // of one size, faster than time stamps tell
		write(t, dir, "a.md", fmt.Sprintf("# A\n## Tasks\n### T\n* Status: s%02d\n", i))
		if got := view(t, d, "/a.md", "t").Tasks[0].Status; got != fmt.Sprintf("s%02d", i) {
			t.Fatalf("after write %d the status is %s", i, got)
		}
	}
	for i := range 5 {
		write(t, dir, fmt.Sprintf("d%d.md", i), "# D\n")
		d.ViewSection(context.Background(), ViewSectionRequest{Document: fmt.Sprintf("/d%d.md", i), Section: task.Slugs{"d"}})
	}
	if n := d.cache.Len(); n != 2 {
		t.Errorf("%d documents are kept, want 2", n)
	}
}

type fakeSearcher struct{ paths []string }

func (f fakeSearcher) Documents(_ context.Context, _, prefix string, _ int) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(f.paths), func(p string) bool { return !strings.HasPrefix(p, prefix) }), nil
}

func TestSearcherDecidesTheOrder(t *testing.T) {
	_, dir := docs(t, nil, map[string]string{"a.md": "needle", "b.md": "needle", "x/c.md": "needle"})
	d := open(t, dir, &Options{Searcher: fakeSearcher{[]string{"b.md", "x/c.md", "gone.md", "a.md"}}}, nil)
	a, err := d.SearchDocuments(context.Background(), SearchRequest{Query: "needle"})
	if err != nil || len(a.Results) != 3 || a.Results[0].Document != "/b.md" || a.Results[2].Document != "/a.md" {
		t.Errorf("%+v, %v, want the searcher's order", a, err)
	}
	b, err := d.Browse(context.Background(), BrowseRequest{Path: "/x", Query: "needle"})
	if err != nil || len(b.Documents) != 1 || b.Documents[0].Path != "/x/c.md" || b.Documents[0].Snippet != "needle" {
		t.Errorf("%+v, %v, want the one below the folder", b, err)
	}
}

// TestSearcherThatFindsNothing: if the index finds nothing or fails, the documents are
// searched.
func TestSearcherThatFindsNothing(t *testing.T) {
	_, dir := docs(t, nil, map[string]string{"a.md": "handle_read_context\n", "b.md": "elsewhere\n", "x/c.md": "Handle it\n"})
	for name, s := range map[string]Searcher{"nothing": fakeSearcher{}, "others": fakeSearcher{[]string{"b.md"}}, "failure": brokenSearcher{}} {
		d := open(t, dir, &Options{Searcher: s}, nil)
		a, err := d.SearchDocuments(context.Background(), SearchRequest{Query: "handle"})
		if err != nil || len(a.Results) != 2 || a.TotalMatches != 2 || a.Results[0].Document != "/a.md" {
			t.Errorf("%s: %+v, %v, want both documents", name, a, err)
		}
		if a, err := d.SearchDocuments(context.Background(), SearchRequest{Query: "nowhere to be found"}); err != nil || len(a.Results) != 0 {
			t.Errorf("%s: %+v, %v, want nothing", name, a, err)
		}
		if _, err := d.SearchDocuments(context.Background(), SearchRequest{Query: "x", Scope: "/none"}); code(err) != task.InvalidScope {
			t.Errorf("%s: %v, want INVALID_SCOPE", name, err)
		}
		b, err := d.Browse(context.Background(), BrowseRequest{Path: "/", Query: "read_con"})
		if name != "others" && (err != nil || len(b.Documents) != 1 || b.Documents[0].Path != "/a.md") {
			t.Errorf("%s: %+v, %v, want /a.md", name, b, err)
		}
	}
}

// TestPartialAnswers: an answer has what can be read, and says why the rest is missing. If
// nothing can be read, the call fails.
func TestPartialAnswers(t *testing.T) {
	d, dir := docs(t, nil, map[string]string{"a.md": "# A\n\n## Tasks\n\n### One\n", "b.md": "# B\n"})
	if err := os.Truncate(filepath.Join(dir, "b.md"), walk.DefaultMaxSize+1); err != nil {
		t.Fatal(err)
	}
	browsed, err := d.Browse(t.Context(), BrowseRequest{Path: "/"})
	if err != nil || len(browsed.Documents) != 1 || browsed.Total != 2 || len(browsed.Failed) != 1 || browsed.Failed[0].Name != "/b.md" || !strings.Contains(browsed.Failed[0].Reason, "larger than") {
		t.Errorf("browse_documents: %+v, %v, want a.md, and why b.md is missing", browsed, err)
	}
	viewed, err := d.ViewSection(t.Context(), ViewSectionRequest{Document: "/a.md", Section: task.Slugs{"none", "tasks"}})
	if err != nil || len(viewed.Sections) != 1 || len(viewed.Failed) != 1 || viewed.Failed[0].Name != "none" {
		t.Errorf("view_section: %+v, %v, want the section, and why none is missing", viewed, err)
	}
	tasks, err := d.ViewTask(t.Context(), ViewTaskRequest{Document: "/a.md", Task: task.Slugs{"one", "two"}})
	if err != nil || len(tasks.Tasks) != 1 || tasks.Summary.TotalTasks != 1 || len(tasks.Failed) != 1 || !strings.Contains(tasks.Failed[0].Reason, "one") {
		t.Errorf("view_task: %+v, %v, want the task, and why two is missing", tasks, err)
	}
	if _, err := d.ViewTask(t.Context(), ViewTaskRequest{Document: "/a.md", Task: task.Slugs{"two", "three"}}); code(err) != task.TaskNotFound || !strings.Contains(err.Error(), "two") {
		t.Errorf("view_task of none: %v, want the error of the first", err)
	}
	if _, err := d.ViewSection(t.Context(), ViewSectionRequest{Document: "/a.md", Section: task.Slugs{"none"}}); code(err) != task.SectionNotFound {
		t.Errorf("view_section of none: %v", err)
	}
}

type brokenSearcher struct{}

func (brokenSearcher) Documents(context.Context, string, string, int) ([]string, error) {
	return nil, errors.New("the index is gone")
}

func TestSlugsForms(t *testing.T) {
	for text, want := range map[string][]string{`"a"`: {"a"}, `["a","b"]`: {"a", "b"}, `"[\"a\",\"b\"]"`: {"a", "b"}, `"[x"`: {"[x"}, `[]`: {}} {
		var s task.Slugs
		if err := json.Unmarshal([]byte(text), &s); err != nil || !slices.Equal(s, want) || s == nil {
			t.Errorf("%s reads as %#v, %v, want %v", text, s, err, want)
		}
	}
	var s task.Slugs
	if err := json.Unmarshal([]byte(`1`), &s); err == nil {
		t.Error("a number is read as slugs")
	}
}

// TestOtherEncodings: tasks of documents that are not UTF-8 can be read and not changed.
func TestOtherEncodings(t *testing.T) {
	const text = "# A\n\n## Tasks\n\n### Caf\xe9\n\nDr\xfccken\n"
	d, dir := docs(t, nil, map[string]string{"a.md": text})
	if a := view(t, d, "/a.md", "café"); a.Tasks[0].Title != "Café" {
		t.Errorf("%+v, want the task Café", a.Tasks)
	}
	_, err := d.CompleteTask(t.Context(), CompleteTaskRequest{Document: "/a.md", Task: "café"})
	if code(err) != task.OperationFailed || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("completed: %v", err)
	}
	if now, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(now) != text {
		t.Errorf("the document is %q", now)
	}
}
