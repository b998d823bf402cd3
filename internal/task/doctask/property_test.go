package doctask

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/task"
	"cairn/internal/task/files"
)

// randomTasks returns a document with tasks in all forms, headings and check boxes, among
// text that only looks like tasks.
func randomTasks(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	words := func() string {
		return pick("Parser", "lexer", "the *first* part", "Ünïcode", "API & docs", "Set up: DB", "done", "`x`")
	}
	status := func() string {
		return pick("todo", "in_progress", "done", "done ✅", "✅", "**blocked**", "in\\_progress", "x (y)", "", "completed  ", "doing\\")
	}
	text := func(indent string) {
		for range r.IntN(3) {
			b.WriteString(indent + pick("Some text.", "See @/b.md.", "- an item", "- Priority: high", "- Dependencies: none", "→ @/b.md", "Note: by the way", "* Notes: x") + "\n")
		}
		switch r.IntN(8) {
		case 0:
			b.WriteString(indent + "```\n" + indent + "- [ ] code\n" + indent + "Status: code\n" + indent + "```\n")
		case 1:
			b.WriteString("\n<!--\n- Status: a | b\n- [ ] hidden\n-->\n\n")
		case 2:
			b.WriteString("\n")
		}
	}
	var boxes func(indent string, depth int)
	boxes = func(indent string, depth int) {
		marker := pick("-", "*", "+", "1.", "2)")
		for range 1 + r.IntN(3) {
			b.WriteString(indent + marker + " [" + pick(" ", "x", "X", "/", "-", "!") + "] " + words() + "\n")
			inner := indent + strings.Repeat(" ", len(marker)+1)
			if r.IntN(4) == 0 {
				inner = indent + "\t"
			}
			if r.IntN(3) == 0 {
				text(inner)
			}
			if r.IntN(5) == 0 {
				b.WriteString(inner + "- Status: " + status() + "\n")
			}
			if depth < 2 && r.IntN(3) == 0 {
				boxes(inner, depth+1)
			}
			if r.IntN(4) == 0 {
				b.WriteString("\n")
			}
		}
	}
	b.WriteString(pick("", "---\ntitle: x\n---\n") + "# Plan\n\n- [ ] no task\n\n" + pick("## Tasks\n", "Tasks\n-----\n", "## TASKS ##\n"))
	if r.IntN(2) == 0 {
		b.WriteString("\n")
		boxes("", 0)
	}
	for range r.IntN(5) {
		b.WriteString(pick("", "\n") + pick("###", "###", "####") + " " + words() + "\n")
		text("")
		if format := pick("* Status: %s", "- Status: %s", "**Status:** %s", "**Status**: %s", "+ Status: %s", "Status: %s", "- **Status**: %s", ""); format != "" {
			fmt.Fprintf(&b, format+"\n", status())
		}
		text("")
		if r.IntN(3) == 0 {
			b.WriteString("\n")
			boxes("", 0)
		}
	}
	if r.IntN(2) == 0 {
		b.WriteString("\n## Other\n\n- [ ] no task either\n- Status: none\n")
	}
	out := b.String()
	if r.IntN(3) == 0 {
		out = strings.TrimRight(out, "\n")
	}
	if r.IntN(3) == 0 {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out
}

// changedLines returns the lines that were removed from a and added in b, by a longest common
// subsequence.
func changedLines(a, b string) (removed, added []string) {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for i := range x {
		x[i] = strings.TrimRight(x[i], "\r\n")
	}
	for i := range y {
		y[i] = strings.TrimRight(y[i], "\r\n")
	}
	length := make([][]int, len(x)+1)
	for i := range length {
		length[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && length[i+1][j] >= length[i][j+1]:
			removed = append(removed, x[i])
			i++
		default:
			added = append(added, y[j])
			j++
		}
	}
	return removed, added
}

var addedByComplete = regexp.MustCompile(`^\s*$|^\s*- (Completed: 2026-01-15|Note: well done)$|[Ss]tatus.*completed|^\s*(?:[-*+]|\d+[.)])[ \t]+\[x\] `)

func parseTasks(src []byte) (*document, []docTask) {
	d := newDocument("a.md", src, files.Stamp{})
	all, _, _ := d.tasks()
	return d, all
}

// TestRandomTasksComplete completes every task of random documents. The task is then
// completed, no other task or line changes, and completing it again changes nothing.
func TestRandomTasksComplete(t *testing.T) {
	completed := 0
	for seed := range uint64(100) {
		src := randomTasks(rand.New(rand.NewPCG(seed, 1)))
		d, before := parseTasks([]byte(src))
		for i, task0 := range before {
			out, err := d.complete(task0, "2026-01-15", "well done")
			if err != nil {
				t.Fatal(err)
			}
			after, now := parseTasks(out)
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d, task %s: %s\n%s\nbecame\n%s", seed, task0.slug, fmt.Sprintf(format, args...), src, out)
			}
			if len(now) != len(before) {
				fail("%d tasks, want %d", len(now), len(before))
			}
			for k := range now {
				was, is := before[k], now[k]
				if k == i {
					if is.model() != task.Completed || is.field("Completed") == "" || is.field("Note") == "" {
						fail("it reads as %q, completed %q, note %q", is.status, is.field("Completed"), is.field("Note"))
					}
					continue
				}
				derived := !was.written // follows from its check boxes
				if was.slug != is.slug || was.title != is.title || was.parent != is.parent || was.depth != is.depth || !derived && was.status != is.status {
					fail("%+v reads as %+v", was, is)
				}
			}
			removed, added := changedLines(src, string(out))
			if len(removed) > 2 || slices.ContainsFunc(added, func(l string) bool { return !addedByComplete.MatchString(l) }) {
				fail("removed %q, added %q", removed, added)
			}
			if strings.Contains(src, "\r\n") && strings.Contains(strings.ReplaceAll(string(out), "\r\n", ""), "\n") {
				fail("line endings are mixed")
			}
			again, err := after.complete(now[i], "2026-01-16", "once more")
			if err != nil || string(again) != string(out) {
				fail("again gives %v and\n%s", err, again)
			}
			completed++
		}
	}
	if completed < 300 {
		t.Errorf("%d tasks completed, the test looks at too little", completed)
	}
}

// TestRandomTasksEdit edits every task of random documents. The task has the new text, and no
// other task changes.
func TestRandomTasksEdit(t *testing.T) {
	contents := []string{"One line.", "- Status: in_progress\n\nText\n\nmore", "```\n- [ ] code\n```", "- [x] new step", "\tindented", "~~~\nopen", "<!-- open", "a\n\n# heading\n"}
	edited, refused := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		src := randomTasks(r)
		d, before := parseTasks([]byte(src))
		for i, task0 := range before {
			content := contents[r.IntN(len(contents))]
			made, err := d.rewrite(task0, content)
			if err != nil {
				refused++
				continue
			}
			edited++
			_, now := parseTasks(made.src)
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d, task %s, content %q: %s\n%s\nbecame\n%s", seed, task0.slug, content, fmt.Sprintf(format, args...), src, made.src)
			}
			if len(now) <= i || now[i].title != task0.title {
				fail("there is no such task")
			}
			text := made.content(now[i])
			for line := range strings.Lines(content) {
				if !strings.Contains(text, strings.TrimSpace(line)) {
					fail("it reads as\n%s", text)
				}
			}
			same := func(x, y docTask) bool {
				return x.title == y.title && (x.status == y.status || !x.written) && x.written == y.written
			}
			inside := 0 // the boxes that the old text held
			for k := i + 1; task0.box == nil && k < len(before) && before[k].box != nil && before[k].section == task0.section; k++ {
				inside++
			}
			tail := before[i+1+inside:]
			if !slices.EqualFunc(before[:i], now[:i], same) || len(now) < i+1+len(tail) || !slices.EqualFunc(tail, now[len(now)-len(tail):], same) {
				fail("other tasks changed")
			}
		}
	}
	if edited < 300 || refused < 30 {
		t.Errorf("%d tasks edited and %d refused, the test looks at too little", edited, refused)
	}
}

// TestRandomTasksCreate adds a task after every task of random documents, and at the end. The
// task is as written, no other task changes, and no line is lost.
func TestRandomTasksCreate(t *testing.T) {
	contents := []string{"One line.", "- Status: in_progress\n\nText", "- [x] step", "~~~\nopen", "a\n\n# heading\n"}
	made, refused := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		src := randomTasks(r)
		d, before := parseTasks([]byte(src))
		for i := range len(before) + 1 {
			behind := ""
			if i < len(before) {
				behind = before[i].slug
			}
			content := contents[r.IntN(len(contents))]
			after, slug, err := d.addTask(behind, "Fresh title 7", content)
			if err != nil {
				refused++
				continue
			}
			made++
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d, behind %q, content %q: %s\n%s\nbecame\n%s", seed, behind, content, fmt.Sprintf(format, args...), src, after.src)
			}
			_, now := parseTasks(after.src)
			at := slices.IndexFunc(now, func(t docTask) bool { return t.slug == slug })
			if at < 0 || now[at].title != "Fresh title 7" {
				fail("there is no task %q", slug)
			}
			end := len(now) - (len(before) - at) // the new task and what its text holds is [at, end)
			if i < len(before) && now[at].depth != before[i].depth || end <= at {
				fail("its depth is %d, %d tasks are new", now[at].depth, end-at)
			}
			for k, was := range before {
				is := now[k]
				if k >= at {
					is = now[end+k-at]
				}
				if was.title != is.title || was.written != is.written || was.written && was.status != is.status {
					fail("%+v reads as %+v", was, is)
				}
			}
			if removed, _ := changedLines(src, string(after.src)); len(removed) > 0 {
				fail("removed %q", removed)
			}
		}
	}
	if made < 200 || refused < 30 {
		t.Errorf("%d tasks made and %d refused, the test looks at too little", made, refused)
	}
}
