package taskgraph

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

var ctx = context.Background()

// open returns the tools for cards written as "id: dep dep status=done", in the order of
// creation, and for a document /plan.md with the same tasks.
func open(t testing.TB, o Options, lines ...string) (*Tools, string) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, ".cairn", "cards")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var doc strings.Builder
	doc.WriteString("# Plan\n\n## Tasks\n\n")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, line := range lines {
		id, rest, _ := strings.Cut(line, ":")
		var deps []string
		front, fields := "", ""
		for _, w := range strings.Fields(rest) {
			if key, value, ok := strings.Cut(w, "="); ok {
				front += key + ": " + value + "\n"
				fields += "* " + strings.ToUpper(key[:1]) + key[1:] + ": " + value + "\n"
				continue
			}
			deps = append(deps, w)
		}
		text := fmt.Sprintf("---\ntitle: Task %s\ndepends_on: [%s]\ncreated: %s\n%s---\n", id, strings.Join(deps, ", "), start.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), front)
		if err := os.WriteFile(filepath.Join(folder, id+".md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&doc, "### %s\n* Dependencies: %s\n%s\n", id, strings.Join(deps, ", "), fields)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.md"), []byte(doc.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return tools(t, dir, o), dir
}

func tools(t testing.TB, dir string, o Options) *Tools {
	t.Helper()
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	f := files.New(tree, nil)
	return New(cards.New(f, nil), doctask.New(f, nil), o)
}

var on = Options{Enabled: true}

func text(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

func number(f float64) *float64 { return &f }

// diamond is the graph A→B,C→D→E of the specification, with slugs valid for both sources.
var diamond = []string{"a:", "b: a", "c: a", "d: b c", "e: d"}

// TestDiamond asks both sources for everything.
func TestDiamond(t *testing.T) {
	d, _ := open(t, on, diamond...)
	after, _ := open(t, on, "a: status=done", "b: a", "c: a", "d: b c", "e: d")
	for _, channel := range []string{"", "cards", "/plan.md"} {
		for _, c := range []struct {
			name string
			got  any
			want string
		}{
			{"ready", d.Ready(ctx, ReadyRequest{ChannelID: channel}), `{"success":true,"readyTasks":["a"],"count":1,"message":"Found 1 tasks ready to execute"}`},
			{"order", d.Order(ctx, OrderRequest{ChannelID: channel}), `{"success":true,"executionOrder":["a","b","c","d","e"],"count":5,"message":"Execution order contains 5 tasks"}`},
			{"groups", d.Groups(ctx, GroupsRequest{ChannelID: channel}), `{"success":true,"parallelGroups":[["a"],["b","c"],["d"],["e"]],"groupCount":4,"totalTasks":5,"message":"Found 4 parallel execution levels"}`},
			{"critical", d.CriticalPath(ctx, CriticalPathRequest{ChannelID: channel}), `{"success":true,"criticalPath":["a","b","d","e"],"pathLength":4,"message":"Critical path has 4 tasks"}`},
			{"stats", d.Stats(ctx, StatsRequest{ChannelID: channel}), `{"success":true,"stats":{"nodeCount":5,"edgeCount":5,"rootCount":1,"leafCount":1,"maxDepth":4,"averageInDegree":1,"averageOutDegree":1,"readyTaskCount":1,"blockedTaskCount":4,"completedTaskCount":0,"inProgressTaskCount":0},"summary":{"nodes":5,"edges":5,"ready":1,"blocked":4,"completed":0,"depth":4},"message":"DAG has 5 tasks with 5 dependencies"}`},
			{"blocking", d.Blocking(ctx, BlockingRequest{ChannelID: channel, TaskID: "d"}), `{"success":true,"taskId":"d","blockingTasks":["b","c"],"isReady":false,"message":"Task is blocked by 2 incomplete dependencies"}`},
			{"not blocked", d.Blocking(ctx, BlockingRequest{ChannelID: channel, TaskID: "a"}), `{"success":true,"taskId":"a","blockingTasks":[],"isReady":true,"message":"Task has no blockers and is ready to execute"}`},
			{"valid", d.Validate(ctx, ValidateRequest{channel, "e", "a"}), `{"success":true,"isValid":true,"message":"Dependency is valid and does not create a cycle"}`},
			{"ready after", after.Ready(ctx, ReadyRequest{ChannelID: channel}), `{"success":true,"readyTasks":["b","c"],"count":2,"message":"Found 2 tasks ready to execute"}`},
			{"groups after", after.Groups(ctx, GroupsRequest{ChannelID: channel}), `{"success":true,"parallelGroups":[["b","c"],["d"],["e"]],"groupCount":3,"totalTasks":4,"message":"Found 3 parallel execution levels"}`},
			{"order after", after.Order(ctx, OrderRequest{ChannelID: channel}), `{"success":true,"executionOrder":["b","c","d","e"],"count":4,"message":"Execution order contains 4 tasks"}`},
			{"order with completed", after.Order(ctx, OrderRequest{ChannelID: channel, IncludeCompleted: true}), `{"success":true,"executionOrder":["a","b","c","d","e"],"count":5,"message":"Execution order contains 5 tasks"}`},
			{"order of what is ready", after.Order(ctx, OrderRequest{ChannelID: channel, IncludeBlocked: new(bool)}), `{"success":true,"executionOrder":["b","c"],"count":2,"message":"Execution order contains 2 tasks"}`},
			{"critical after", after.CriticalPath(ctx, CriticalPathRequest{ChannelID: channel}), `{"success":true,"criticalPath":["a","b","d","e"],"pathLength":4,"message":"Critical path has 4 tasks"}`},
			{"critical of the rest", after.CriticalPath(ctx, CriticalPathRequest{ChannelID: channel, IncludeCompleted: new(bool)}), `{"success":true,"criticalPath":["b","d","e"],"pathLength":3,"message":"Critical path has 3 tasks"}`},
		} {
			if got := text(c.got); got != c.want {
				t.Errorf("channel %q, %s:\n%s\nwant\n%s", channel, c.name, got, c.want)
			}
		}
	}
}

func TestDisabled(t *testing.T) {
	d, _ := open(t, Options{}, diamond...)
	for _, c := range []struct {
		got  any
		want string
	}{
		{d.Ready(ctx, ReadyRequest{}), `{"success":false,"readyTasks":[],"count":0,"message":"DAG system is disabled. Enable with TASK_DAG_ENABLED=true"}`},
		{d.Validate(ctx, ValidateRequest{}), `{"success":false,"isValid":false,"message":"DAG system is disabled"}`},
		{d.Order(ctx, OrderRequest{}), `{"success":false,"executionOrder":[],"count":0,"message":"DAG system is disabled"}`},
		{d.Blocking(ctx, BlockingRequest{TaskID: "a"}), `{"success":false,"taskId":"a","blockingTasks":[],"isReady":false,"message":"DAG system is disabled"}`},
		{d.Groups(ctx, GroupsRequest{}), `{"success":false,"parallelGroups":[],"groupCount":0,"totalTasks":0,"message":"DAG system is disabled"}`},
		{d.CriticalPath(ctx, CriticalPathRequest{}), `{"success":false,"criticalPath":[],"pathLength":0,"message":"DAG system is disabled"}`},
		{d.Stats(ctx, StatsRequest{}), `{"success":false,"stats":null,"summary":{"nodes":0,"edges":0,"ready":0,"blocked":0,"completed":0,"depth":0},"message":"DAG system is disabled"}`},
	} {
		if got := text(c.got); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

func TestChannels(t *testing.T) {
	d, _ := open(t, on, diamond...)
	for channel, want := range map[string]string{"nowhere": noDAG, "/none.md": noDAG, "none.md": noDAG, "/../plan.md": noDAG, " ": "Found 1 tasks ready to execute",
		"plan.md": "Found 1 tasks ready to execute", "/Plan.md": "Found 1 tasks ready to execute", "Cards": "Found 1 tasks ready to execute"} {
		if a := d.Ready(ctx, ReadyRequest{ChannelID: channel}); a.Message != want {
			t.Errorf("channel %q: %q, want %q", channel, a.Message, want)
		}
	}
	if a := d.Stats(ctx, StatsRequest{ChannelID: "nowhere"}); a.Success || a.Stats != nil {
		t.Errorf("stats of no channel: %s", text(a))
	}
	none, _ := open(t, Options{Enabled: true, DefaultChannel: "-"})
	if a := none.Ready(ctx, ReadyRequest{}); a.Success || a.Message != "channelId is required but not provided" {
		t.Errorf("no default channel: %s", text(a))
	}
	plan, _ := open(t, Options{Enabled: true, DefaultChannel: "/plan.md"}, "a:", "b:")
	if a := plan.Ready(ctx, ReadyRequest{}); a.Count != 2 {
		t.Errorf("a document as the default: %s", text(a))
	}
	empty, _ := open(t, on)
	for _, c := range []struct {
		got  any
		want string
	}{
		{empty.Stats(ctx, StatsRequest{}), `{"success":true,"stats":null,"summary":{"nodes":0,"edges":0,"ready":0,"blocked":0,"completed":0,"depth":0},"message":"No DAG exists for this channel"}`},
		{empty.Ready(ctx, ReadyRequest{}), `{"success":true,"readyTasks":[],"count":0,"message":"No DAG exists for this channel"}`},
		{empty.Order(ctx, OrderRequest{}), `{"success":true,"executionOrder":[],"count":0,"message":"No DAG exists for this channel"}`},
		{empty.Groups(ctx, GroupsRequest{}), `{"success":true,"parallelGroups":[],"groupCount":0,"totalTasks":0,"message":"No DAG exists for this channel"}`},
		{empty.Validate(ctx, ValidateRequest{DependentTaskID: "a", DependencyTaskID: "b"}), `{"success":true,"isValid":false,"message":"No DAG exists for this channel"}`},
		{empty.CriticalPath(ctx, CriticalPathRequest{}), `{"success":true,"criticalPath":[],"pathLength":0,"message":"No DAG exists for this channel"}`},
	} {
		if got := text(c.got); got != c.want {
			t.Errorf("empty board: %s\nwant\n%s", got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	var lines []string
	for i := range 120 {
		lines = append(lines, fmt.Sprintf("t%03d:", i))
	}
	d, _ := open(t, on, lines...)
	for _, c := range []struct {
		limit *float64
		want  int
	}{{nil, 10}, {number(0), 10}, {number(1), 1}, {number(100), 100}, {number(7.0), 7}} {
		if a := d.Ready(ctx, ReadyRequest{Limit: c.limit}); !a.Success || a.Count != c.want || a.ReadyTasks[0] != "t000" {
			t.Errorf("limit %v: %s, want %d", c.limit, text(a), c.want)
		}
	}
	for _, bad := range []float64{2.5, -1, 101, 1e18} {
		if a := d.Ready(ctx, ReadyRequest{Limit: &bad}); a.Success || a.Message != "limit must be a whole number from 1 to 100" || a.ReadyTasks == nil {
			t.Errorf("limit %v: %s, want a refusal", bad, text(a))
		}
	}
}

func TestValidate(t *testing.T) {
	d, dir := open(t, on, "A:", "B: A", "C: B")
	before, _ := os.ReadFile(filepath.Join(dir, ".cairn/cards/A.md"))
	for range 2 {
		for _, c := range []struct{ dependent, dependency, want string }{
			{"A", "C", `{"success":true,"isValid":false,"message":"Cycle: A -> B -> C -> A","cyclePath":["A","B","C","A"],"errorCode":"CYCLE_DETECTED"}`},
			{"A", "A", `{"success":true,"isValid":false,"message":"Task cannot depend on itself","cyclePath":["A","A"],"errorCode":"SELF_DEPENDENCY"}`},
			{"B", "A", `{"success":true,"isValid":false,"message":"Dependency already exists","errorCode":"DUPLICATE_EDGE"}`},
			{"C", "A", `{"success":true,"isValid":true,"message":"Dependency is valid and does not create a cycle"}`},
			{"X", "A", `{"success":true,"isValid":false,"message":"Dependent task not found: X","errorCode":"MISSING_NODE"}`},
			{"A", "X", `{"success":true,"isValid":false,"message":"Dependency task not found: X","errorCode":"MISSING_NODE"}`},
			{"", "A", `{"success":false,"isValid":false,"message":"dependentTaskId must be a non-empty string"}`},
			{"A", " ", `{"success":false,"isValid":false,"message":"dependencyTaskId must be a non-empty string"}`},
		} {
			if got := text(d.Validate(ctx, ValidateRequest{DependentTaskID: c.dependent, DependencyTaskID: c.dependency})); got != c.want {
				t.Errorf("%s on %s:\n%s\nwant\n%s", c.dependent, c.dependency, got, c.want)
			}
		}
	}
	if after, _ := os.ReadFile(filepath.Join(dir, ".cairn/cards/A.md")); string(after) != string(before) {
		t.Error("validating wrote to a card")
	}
}

// TestValidateCountsArchivedCards: dag_validate_dependency and update_task refuse the same cycles.
func TestValidateCountsArchivedCards(t *testing.T) {
	d, _ := open(t, on, "aaaaaa: bbbbbb", "bbbbbb: cccccc status=archived", "cccccc: dddddd status=archived", "dddddd:")
	if a := d.Validate(ctx, ValidateRequest{DependentTaskID: "dddddd", DependencyTaskID: "aaaaaa"}); a.IsValid || len(a.CyclePath) != 5 {
		t.Errorf("a cycle through archived cards: %s", text(a))
	}
	if _, err := d.cards.Update(ctx, cards.UpdateRequest{ID: "dddddd", Updates: map[string]json.RawMessage{"depends_on": []byte(`["aaaaaa"]`)}}); err == nil {
		t.Error("update_task closes the cycle")
	}
	if a := d.Validate(ctx, ValidateRequest{DependentTaskID: "cccccc", DependencyTaskID: "aaaaaa"}); a.ErrorCode != CodeCycle {
		t.Errorf("an archived card: %s", text(a))
	}
}

func TestReadiness(t *testing.T) {
	d, _ := open(t, on, "a: status=done", "b: a status=failed", "c: ghost", "d: b", "e: a status=blocked", "f: a status=active", "g: a", "h: x1", "x1: status=archived archived_from=active", "x2: status=archived")
	if a := d.Ready(ctx, ReadyRequest{}); !slices.Equal(a.ReadyTasks, []string{"g"}) {
		t.Errorf("ready: %s, want g alone", text(a))
	}
	for id, want := range map[string]string{
		"c":    `{"success":true,"taskId":"c","blockingTasks":["ghost"],"isReady":false,"message":"Task is blocked by 1 incomplete dependencies (ghost is missing)"}`,
		"d":    `{"success":true,"taskId":"d","blockingTasks":["b"],"isReady":false,"message":"Task is blocked by 1 incomplete dependencies (b is failed)"}`,
		"h":    `{"success":true,"taskId":"h","blockingTasks":["x1"],"isReady":false,"message":"Task is blocked by 1 incomplete dependencies (x1 is cancelled)"}`,
		"a":    `{"success":true,"taskId":"a","blockingTasks":[],"isReady":false,"message":"Task is completed"}`,
		"b":    `{"success":true,"taskId":"b","blockingTasks":[],"isReady":false,"message":"Task has no blockers and is failed"}`,
		"e":    `{"success":true,"taskId":"e","blockingTasks":[],"isReady":false,"message":"Task has no blockers and is blocked"}`,
		"f":    `{"success":true,"taskId":"f","blockingTasks":[],"isReady":false,"message":"Task has no blockers and is in progress"}`,
		"g":    `{"success":true,"taskId":"g","blockingTasks":[],"isReady":true,"message":"Task has no blockers and is ready to execute"}`,
		"#G":   `{"success":true,"taskId":"g","blockingTasks":[],"isReady":true,"message":"Task has no blockers and is ready to execute"}`,
		"nope": `{"success":false,"taskId":"nope","blockingTasks":[],"isReady":false,"message":"Task not found: nope","errorCode":"MISSING_NODE"}`,
		"x2":   `{"success":false,"taskId":"x2","blockingTasks":[],"isReady":false,"message":"Task not found: x2","errorCode":"MISSING_NODE"}`,
		"":     `{"success":false,"taskId":"","blockingTasks":[],"isReady":false,"message":"taskId must be a non-empty string"}`,
	} {
		if got := text(d.Blocking(ctx, BlockingRequest{TaskID: id})); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", id, got, want)
		}
	}
	a := d.Blocking(ctx, BlockingRequest{TaskID: "c", Details: true})
	if len(a.Details) != 1 || a.Details[0].Status != "missing" || a.Details[0].Reason != "MISSING_NODE" {
		t.Errorf("details of a missing blocker: %s", text(a))
	}
}

// TestPrintedValidation is the specification's example of dag_validate_dependency, its
// IDs as written, for a document with the heading "### task-B".
func TestPrintedValidation(t *testing.T) {
	d, dir := open(t, on, "a:")
	os.WriteFile(filepath.Join(dir, "ready.md"), []byte("# Plan\n## Tasks\n### task-A\n### task-B\n### task-C\n- Dependencies: Task-B\n"), 0o644)
	if got := text(d.Validate(ctx, ValidateRequest{ChannelID: "ready.md", DependentTaskID: "task-B", DependencyTaskID: "task-A"})); got !=
		`{"success":true,"isValid":true,"message":"Dependency is valid and does not create a cycle"}` {
		t.Error(got)
	}
	if a := d.Validate(ctx, ValidateRequest{ChannelID: "/ready.md", DependentTaskID: "Task-B", DependencyTaskID: "#task-C"}); a.IsValid || !slices.Equal(a.CyclePath, []string{"task-b", "task-c", "task-b"}) {
		t.Error(text(a))
	}
}

// TestCancelledCards: a card archived before it was done blocks its dependents and is not
// listed as work.
func TestCancelledCards(t *testing.T) {
	d, _ := open(t, on, "old: status=archived archived_from=todo", "new: old", "last: new")
	if got, want := text(d.Groups(ctx, GroupsRequest{})), `{"success":true,"parallelGroups":[],"groupCount":0,"totalTasks":0,"excluded":[{"id":"new","reason":"old is cancelled"},{"id":"last","reason":"new is not completed"}],"message":"Found 0 parallel execution levels"}`; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if a := d.Order(ctx, OrderRequest{IncludeCompleted: true}); !slices.Equal(a.ExecutionOrder, []string{"new", "last"}) {
		t.Error(text(a))
	}
	if a := d.Blocking(ctx, BlockingRequest{TaskID: "new"}); a.IsReady || !slices.Equal(a.BlockingTasks, []string{"old"}) {
		t.Error(text(a))
	}
	if a := d.Blocking(ctx, BlockingRequest{TaskID: "old"}); a.IsReady || a.Message != "Task is cancelled" {
		t.Error(text(a))
	}
	if list, err := d.Leverage(ctx, "", 0); err != nil || len(list) != 2 {
		t.Errorf("leverage: %+v, %v", list, err)
	}
}

// TestGroupsHoldTasksThatCanRun: the groups leave out tasks that cannot run, and say why.
func TestGroupsHoldTasksThatCanRun(t *testing.T) {
	d, _ := open(t, on, "done: status=done", "failed: status=failed", "stuck: status=blocked", "busy: status=active", "free: done", "next: free", "after: busy free", "lost: ghost")
	want := `{"success":true,"parallelGroups":[["free"],["next"]],"groupCount":2,"totalTasks":2,"excluded":[{"id":"failed","reason":"failed"},{"id":"stuck","reason":"blocked"},{"id":"busy","reason":"in progress"},{"id":"lost","reason":"ghost is missing"},{"id":"after","reason":"busy is not completed, free is not completed"}],"message":"Found 2 parallel execution levels"}`
	for _, channel := range []string{"cards", "/plan.md"} {
		if got := text(d.Groups(ctx, GroupsRequest{ChannelID: channel})); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", channel, got, want)
		}
	}
}

func TestStoredCycle(t *testing.T) {
	d, _ := open(t, on, "a: c", "b: a", "c: b", "free:", "e: a")
	for name, got := range map[string]string{
		"order":    text(d.Order(ctx, OrderRequest{})),
		"groups":   text(d.Groups(ctx, GroupsRequest{})),
		"critical": text(d.CriticalPath(ctx, CriticalPathRequest{})),
	} {
		if !strings.Contains(got, `"success":false`) || !strings.Contains(got, `"message":"Cycle: a -> c -> b -> a"`) || !strings.Contains(got, `"errorCode":"CYCLE_DETECTED"`) {
			t.Errorf("%s: %s, want the cycle", name, got)
		}
	}
	if a := d.Ready(ctx, ReadyRequest{Details: true}); !slices.Equal(a.ReadyTasks, []string{"free"}) || a.Details[0].Slack != nil {
		t.Errorf("ready: %s", text(a))
	}
	a := d.Stats(ctx, StatsRequest{})
	if !a.Success || a.Stats.Depth != 0 || a.Summary.Ready+a.Summary.Blocked+a.Summary.Completed != 5 || len(a.Warnings) == 0 || a.Warnings[0].Code != CodeCycle {
		t.Errorf("stats: %s", text(a))
	}
	if _, err := d.Leverage(ctx, "", 0); err != nil {
		t.Errorf("leverage: %v", err)
	}
}

// TestThousandTasks validates and orders a thousand tasks in linear time.
func TestThousandTasks(t *testing.T) {
	for name, dependency := range map[string]func(i int) int{"chain": func(i int) int { return i - 1 }, "wide": func(int) int { return 0 }} {
		testutil.Linear(t, name, 1000, func(n int) func() {
			lines := []string{"t0000:"}
			for i := 1; i < n; i++ {
				lines = append(lines, fmt.Sprintf("t%04d: t%04d", i, dependency(i)))
			}
			d, _ := open(t, on, lines...)
			d.Stats(ctx, StatsRequest{}) // the files are read once
			return func() {
				v := d.Validate(ctx, ValidateRequest{DependentTaskID: "t0000", DependencyTaskID: fmt.Sprintf("t%04d", n-1)})
				o := d.Order(ctx, OrderRequest{})
				if v.IsValid || o.Count != n {
					t.Errorf("%s: valid %v, %d tasks", name, v.IsValid, o.Count)
				}
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	words := []string{"", "status=done", "status=active", "status=blocked", "status=failed", "status=archived"}
	for round := range 60 {
		n := 1 + r.IntN(25)
		var lines []string
		for i := range n {
			line := fmt.Sprintf("t%02d: %s", i, words[r.IntN(len(words))])
			for j := range i {
				if r.IntN(4) == 0 {
					line += fmt.Sprintf(" t%02d", j)
				}
			}
			lines = append(lines, line)
		}
		d, _ := open(t, on, lines...)
		for _, channel := range []string{"cards", "/plan.md"} {
			s, p := d.Stats(ctx, StatsRequest{ChannelID: channel}), d.CriticalPath(ctx, CriticalPathRequest{ChannelID: channel})
			if s.Stats == nil {
				continue // all archived
			}
			if s.Stats.Ready+s.Stats.Blocked+s.Stats.Completed != s.Stats.Nodes || s.Stats.Depth != p.PathLength {
				t.Fatalf("round %d, %s: %s and a path of %d in\n%s", round, channel, text(s), p.PathLength, strings.Join(lines, "\n"))
			}
			b, _ := d.load(ctx, channel)
			ready := d.Ready(ctx, ReadyRequest{ChannelID: channel, Limit: number(100)})
			for _, id := range ready.ReadyTasks { // against the definition
				if bl := d.Blocking(ctx, BlockingRequest{ChannelID: channel, TaskID: id}); !bl.IsReady || b.ByID[id].GraphWord() != "pending" {
					t.Fatalf("%s is ready with %s", id, text(bl))
				}
			}
			if ready.Count != s.Stats.Ready {
				t.Fatalf("%d ready, stats say %d", ready.Count, s.Stats.Ready)
			}
		}
	}
}

func TestDetails(t *testing.T) {
	d, _ := open(t, on, "a: estimate=2h", "b: a estimate=8", "c: a estimate=1d", "side:", "d: b c")
	a := d.Ready(ctx, ReadyRequest{Details: true})
	two := 2.0
	zero, three, none := 0.0, 3, 0
	want := []Detail{
		{ID: "a", Title: "Task a", Status: "pending", Reason: "no dependencies", Estimate: &two, EarliestStart: &zero, LatestStart: &zero, Slack: &zero, Unblocks: &three},
		{ID: "side", Title: "Task side", Status: "pending", Reason: "no dependencies", Estimate: number(1), EarliestStart: &zero, LatestStart: number(10), Slack: number(10), Unblocks: &none},
	}
	for i := range a.Details {
		if a.Details[i].Leverage == nil || *a.Details[i].Leverage <= 0 {
			t.Errorf("%s has no leverage", a.Details[i].ID)
		}
		a.Details[i].Leverage = nil
	}
	if diff := cmp.Diff(want, a.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	// 2 for a, 8 for b or c, 1 assumed for d.
	if p := d.CriticalPath(ctx, CriticalPathRequest{Details: true}); p.TotalHours == nil || *p.TotalHours != 11 {
		t.Errorf("critical path: %s, want 11 hours", text(p))
	}
	rank, err := d.Leverage(ctx, "", 2)
	if err != nil || len(rank) != 2 || rank[0].ID != "a" {
		t.Errorf("leverage %s, %v, want a first", text(rank), err)
	}
	if drawn, err := d.Draw(ctx, "/plan.md", "mermaid"); err != nil || !strings.Contains(drawn, `b["b"] --> a["a"]`) {
		t.Errorf("drawn: %q, %v", drawn, err)
	}
}

func TestWarnings(t *testing.T) {
	lines := []string{"lone:"}
	for i := range 25 {
		line := fmt.Sprintf("t%02d:", i)
		if i > 0 {
			line += fmt.Sprintf(" t%02d", i-1)
		}
		lines = append(lines, line)
	}
	all := "hub:"
	for i := range 12 {
		all += fmt.Sprintf(" t%02d", i)
	}
	d, _ := open(t, on, append(lines, all, "dangling: ghost")...)
	var codes []string
	for _, w := range d.Stats(ctx, StatsRequest{Details: true}).Warnings {
		codes = append(codes, w.Code)
	}
	if want := []string{"MISSING_NODE", "HIGH_IN_DEGREE", "LONG_CHAIN", "ORPHANED_NODE"}; !slices.Equal(codes, want) {
		t.Errorf("warnings %v, want %v", codes, want)
	}
	if a := d.Stats(ctx, StatsRequest{}); a.Warnings != nil {
		t.Errorf("warnings nobody asked for: %s", text(a))
	}
}

func TestFollowsEdits(t *testing.T) {
	d, dir := open(t, on, "a:", "b: a")
	for _, file := range []struct{ channel, path, old, new string }{
		{"cards", ".cairn/cards/a.md", "created", "status: done\ncreated"},
		{"/plan.md", "plan.md", "### a\n", "### a\n* Status: done\n"},
	} {
		if a := d.Ready(ctx, ReadyRequest{ChannelID: file.channel}); !slices.Equal(a.ReadyTasks, []string{"a"}) {
			t.Fatalf("%s: %s", file.channel, text(a))
		}
		name := filepath.Join(dir, file.path)
		src, _ := os.ReadFile(name)
		os.WriteFile(name, []byte(strings.Replace(string(src), file.old, file.new, 1)), 0o644)
		if a := d.Ready(ctx, ReadyRequest{ChannelID: file.channel}); !slices.Equal(a.ReadyTasks, []string{"b"}) {
			t.Errorf("%s after the edit: %s, want b", file.channel, text(a))
		}
	}
}

func manyCards(b *testing.B, n int, dep func(i int) string) *Tools {
	lines := make([]string, n)
	for i := range n {
		lines[i] = fmt.Sprintf("t%06d: %s", i, dep(i))
	}
	d, _ := open(b, on, lines...)
	d.Stats(ctx, StatsRequest{})
	return d
}

func BenchmarkReady10k(b *testing.B) {
	d := manyCards(b, 10_000, func(i int) string {
		if i < 100 {
			return ""
		}
		return fmt.Sprintf("t%06d t%06d", i/2, i/3)
	})
	for b.Loop() {
		if a := d.Ready(ctx, ReadyRequest{}); a.Count != 10 {
			b.Fatal(text(a))
		}
	}
}

func BenchmarkReadyDetails10k(b *testing.B) {
	d := manyCards(b, 10_000, func(i int) string {
		if i < 100 {
			return ""
		}
		return fmt.Sprintf("t%06d t%06d", i/2, i/3)
	})
	for b.Loop() {
		if a := d.Ready(ctx, ReadyRequest{Details: true}); a.Count != 10 {
			b.Fatal(text(a))
		}
	}
}

func BenchmarkCriticalPath5kChain(b *testing.B) {
	d := manyCards(b, 5_000, func(i int) string {
		if i == 0 {
			return ""
		}
		return fmt.Sprintf("t%06d", i-1)
	})
	for b.Loop() {
		if a := d.CriticalPath(ctx, CriticalPathRequest{}); a.PathLength != 5000 {
			b.Fatal(text(a))
		}
	}
}
