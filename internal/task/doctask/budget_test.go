package doctask

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/task"
	"cairn/internal/text/fit"
)

// inBytes is a budget that counts bytes.
func inBytes(n int) fit.Budget {
	return fit.Budget{Tokens: n, Count: func(s string) int { return len(s) }}
}

// TestBudgets: no answer exceeds its budget, and the omitted text is at the place that the
// answer names.
func TestBudgets(t *testing.T) {
	dir := t.TempDir()
	var page, tasks, headings strings.Builder
	page.WriteString("---\ntitle: Page\n---\n\n# Page\n\n## Part\n\n")
	for i := range 20_000 {
		fmt.Fprintf(&page, "Line %d of a page that a task refers to, with a [link](/x%d.md).\n", i, i)
		fmt.Fprintf(&headings, "## Heading %d\n\n", i)
	}
	for i := range 12 {
		fmt.Fprintf(&tasks, "### Task %d\n\n- Status: pending\n- @/page.md and @/page.md#part and @/missing.md\n\n%s\n", i, strings.Repeat("text\n", 5000))
	}
	write(t, dir, "page.md", page.String())
	write(t, dir, "plan.md", "# Plan\n\n## Tasks\n\n"+tasks.String())
	write(t, dir, "outline.md", "# Outline\n\n"+headings.String())
	const limit = 6000
	d, ctx := open(t, dir, &Options{Budget: inBytes(limit)}, nil), t.Context()
	most := 2 * limit
	for name, call := range map[string]func(Limit) (any, error){
		"start_task": func(l Limit) (any, error) {
			return d.StartTask(ctx, StartTaskRequest{Document: "/plan.md", Task: "task-1", Limit: l})
		},
		"view_task": func(l Limit) (any, error) {
			return d.ViewTask(ctx, ViewTaskRequest{Document: "/plan.md", Task: task.Slugs{"task-0", "task-1", "task-2"}, Limit: l})
		},
		"view_section": func(l Limit) (any, error) {
			return d.ViewSection(ctx, ViewSectionRequest{Document: "/page.md", Section: task.Slugs{"part"}, Limit: l})
		},
		"complete_task": func(l Limit) (any, error) {
			return d.CompleteTask(ctx, CompleteTaskRequest{Document: "/plan.md", Task: "task-0", Limit: l})
		},
		"browse_documents": func(l Limit) (any, error) { return d.Browse(ctx, BrowseRequest{Path: "/outline.md", Limit: l}) },
	} {
		for _, want := range []int{limit, most} {
			var l Limit
			if want == most {
				l.MaxTokens = &most
			}
			answer, err := call(l)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > want || len(text) < want-600 {
				t.Errorf("%s: %d bytes within a budget of %d, want nearly all", name, len(text), want)
			}
			if !strings.Contains(string(text), `"content_rest":"`) && !strings.Contains(string(text), `"truncated":true`) {
				t.Errorf("%s does not say that something is missing: %.300s", name, text)
			}
		}
		few := 100
		if _, err := call(Limit{&few}); code(err) != task.InvalidParameter {
			t.Errorf("%s with max_tokens 100: %v", name, err)
		}
	}
}

// TestRestContinues: content and the lines of content_rest together are the whole text.
func TestRestContinues(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "page.md", "---\ntitle: Page\n---\n\n\n# Page\n\n"+strings.Repeat("A line.\n", 2000)+"\n\n")
	write(t, dir, "plan.md", "# Plan\n\n## Tasks\n\n### One\n\n@/page.md\n")
	d := open(t, dir, &Options{Budget: inBytes(5000)}, nil)
	a, err := d.StartTask(t.Context(), StartTaskRequest{Document: "plan.md", Task: "one"})
	if err != nil {
		t.Fatal(err)
	}
	ref := a.Task.ReferencedDocuments[0]
	path, lines, _ := strings.Cut(ref.Rest, ":")
	from, to, _ := strings.Cut(lines, "-")
	first, _ := strconv.Atoi(from)
	last, _ := strconv.Atoi(to)
	if path != "page.md" || first < 8 || last < first {
		t.Fatalf("the rest is %q", ref.Rest)
	}
	src, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Split(string(src), "\n")[first-1 : last]
	if got, want := ref.Content+"\n"+strings.Join(rest, "\n"), strings.TrimSpace(string(src[len("---\ntitle: Page\n---\n"):])); got != want {
		t.Errorf("the parts make %d bytes, want %d:\n...%.200q", len(got), len(want), got[len(ref.Content)-20:])
	}
	write(t, dir, "title.md", "# T\n\n## Tasks\n\n### One\n\n- Status: "+strings.Repeat("long ", 2000)+"\n")
	if _, err := d.StartTask(t.Context(), StartTaskRequest{Document: "/title.md", Task: "one"}); code(err) != task.ResourceExhausted {
		t.Errorf("a status that does not fit: %v", err)
	}
}
