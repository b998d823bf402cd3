package task

import (
	"strings"
	"testing"

	"cairn/internal/base/taskdag"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		word        string
		want        Status
		known       bool
		card, graph string
	}{
		{"", Pending, true, "todo", "pending"},
		{"ToDo", Pending, true, "todo", "pending"},
		{"open", Pending, true, "todo", "pending"},
		{"waiting", Waiting, true, "todo", "pending"},
		{"WIP", InProgress, true, "active", "in_progress"},
		{"In Progress", InProgress, true, "active", "in_progress"},
		{"in-progress", InProgress, true, "active", "in_progress"},
		{"blocked", Blocked, true, "todo", "blocked"},
		{"Done", Completed, true, "done", "completed"},
		{"closed", Completed, true, "done", "completed"},
		{"failed", Failed, true, "todo", "failed"},
		{"cancelled", Cancelled, true, "archived", "cancelled"},
		{"done ✅", Completed, true, "done", "completed"},
		{"✅ Done", Completed, true, "done", "completed"},
		{"**In Progress** (Ann)", InProgress, true, "active", "in_progress"},
		{"not started", Pending, true, "todo", "pending"},
		{"❌", Failed, true, "todo", "failed"},
		{"?", Pending, false, "todo", "pending"},
		{"not done", Pending, false, "todo", "pending"},
		{"review", Pending, false, "todo", "pending"},
	} {
		s, known := Parse(c.word)
		if s != c.want || known != c.known {
			t.Errorf("Parse(%q) = %v, %v, want %v, %v", c.word, s, known, c.want, c.known)
		}
		got := [...]string{s.CardWord(), Task{Status: s}.GraphWord()}
		if want := [...]string{c.card, c.graph}; got != want {
			t.Errorf("%q in the words of cards and graph: %v, want %v", c.word, got, want)
		}
	}
	if got := (Task{Assignee: "a"}).GraphWord(); got != "assigned" {
		t.Errorf("a pending task with an assignee is %q, want assigned", got)
	}
}

func TestArchived(t *testing.T) {
	for from, want := range map[Status]taskdag.State{Completed: taskdag.Completed, Archived: taskdag.Completed, Pending: taskdag.Cancelled, InProgress: taskdag.Cancelled} {
		if got := (Task{Status: Archived, ArchivedFrom: from}).Node().State; got != want {
			t.Errorf("archived from %v counts as %v, want %v", from, got, want)
		}
	}
	board := Live([]Task{
		{ID: "a", Status: Archived, ArchivedFrom: Completed, DependsOn: []string{"x"}},
		{ID: "x", Status: Archived, ArchivedFrom: Completed},
		{ID: "b", DependsOn: []string{"a"}},
		{ID: "c"},
	})
	var ids []string
	for _, b := range board {
		ids = append(ids, b.ID)
	}
	if got := strings.Join(ids, " "); got != "a b c" || len(board[0].DependsOn) != 0 {
		t.Errorf("the board holds %q, the archived task needs %v; want a b c and nothing", got, board[0].DependsOn)
	}
}

func TestParseEstimate(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "3": 3, "1.5h": 1.5, "90m": 1.5, "2d": 16, "1w 2d": 56, "1W2D": 56, " 4 h ": 4} {
		if got, err := ParseEstimate(text); err != nil || got != want {
			t.Errorf("ParseEstimate(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1", "1x", "1..2", "h", "1e9", "999999999", "."} {
		if got, err := ParseEstimate(text); err == nil {
			t.Errorf("ParseEstimate(%q) = %v, want an error", text, got)
		}
	}
}

func TestDraw(t *testing.T) {
	tasks := []Task{
		{ID: "a-b", Title: "One", DependsOn: []string{"a_b", "ghost", "a_b"}},
		{ID: "a_b", Title: "Two", Status: Completed, DependsOn: []string{"a-b"}},
		{ID: "end", Title: "Three"},
	}
	for format, want := range map[string]string{
		FormatJSON:    `{"nodes":[{"id":"a-b","title":"One","status":"todo"},{"id":"a_b","title":"Two","status":"done"},{"id":"end","title":"Three","status":"todo"},{"id":"ghost","title":"(missing)","status":"missing"}],"edges":[{"from":"a-b","to":"a_b"},{"from":"a-b","to":"ghost"},{"from":"a_b","to":"a-b"}]}`,
		FormatMermaid: "graph LR\n    a_b[\"a-b: One\"] --> a_b_2[\"a_b: Two\"]\n    a_b[\"a-b: One\"] --> ghost[\"ghost: (missing)\"]\n    a_b_2[\"a_b: Two\"] --> a_b[\"a-b: One\"]\n    end_2[\"end: Three\"]\n",
		FormatDOT:     "digraph TaskGraph {\n    rankdir=LR;\n    node [shape=box, style=rounded];\n    \"a-b\" [label=\"a-b: One\"];\n    \"a_b\" [label=\"a_b: Two\"];\n    \"end\" [label=\"end: Three\"];\n    \"ghost\" [label=\"ghost: (missing)\"];\n    \"a-b\" -> \"a_b\";\n    \"a-b\" -> \"ghost\";\n    \"a_b\" -> \"a-b\";\n}\n",
		FormatASCII:   "[ ] end  Three\n[ ] a-b  One\n|-- [x] a_b  Two\n|   `-- [ ] a-b  One (see above)\n`-- [?] ghost  (missing)\n",
	} {
		got, err := Draw(tasks, format, func(t Task) string { return t.Status.CardWord() })
		if err != nil || got != want {
			t.Errorf("%s:\n%s%v\nwant\n%s", format, got, err, want)
		}
	}
	if _, err := Draw(tasks, "svg", Task.GraphWord); err == nil {
		t.Error("format svg is drawn, want an error")
	}
}

// TestBoardOfRepeatedIDs: the first task of an ID counts, and tasks without one do not.
func TestBoardOfRepeatedIDs(t *testing.T) {
	b := NewBoard([]Task{{ID: "a", Title: "first"}, {Title: "none"}, {ID: "a", Title: "second"}, {ID: "b", DependsOn: []string{"a"}}})
	if len(b.Tasks) != 2 || b.ByID["a"].Title != "first" || b.Graph.IsReady("b") {
		t.Errorf("the board has %+v", b.Tasks)
	}
}
