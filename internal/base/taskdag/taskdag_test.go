package taskdag

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustNew(t *testing.T, tasks ...Task) *Graph {
	t.Helper()
	g, err := New(tasks)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// task is a pending task with its dependencies.
func task(id string, deps ...string) Task { return Task{ID: id, DependsOn: deps} }

func with(t Task, s State) Task { t.State = s; return t }

// diamond is A→B, A→C, B→D, C→D, D→E.
func diamond(a State) []Task {
	return []Task{with(task("A"), a), task("B", "A"), task("C", "A"), task("D", "B", "C"), task("E", "D")}
}

func TestDiamond(t *testing.T) {
	g := mustNew(t, diamond(Pending)...)
	check := func(what string, got, want any) {
		t.Helper()
		if !cmp.Equal(got, want) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	check("ready", g.Ready(0), []string{"A"})
	order, err := g.Order(OrderOptions{})
	check("order", order, []string{"A", "B", "C", "D", "E"})
	check("order's error", err, nil)
	groups, _ := g.Groups()
	check("groups", groups, [][]string{{"A"}, {"B", "C"}, {"D"}, {"E"}})
	path, _ := g.CriticalPath()
	check("critical path", path, []string{"A", "B", "D", "E"})
	stats, _ := g.Stats()
	check("stats", stats, Stats{Nodes: 5, Edges: 5, Roots: 1, Leaves: 1, Depth: 4, Ready: 1, Blocked: 4, Degree: 1, OutDegree: 1})
	check("downstream of A", g.Downstream("A"), 4)

	g = mustNew(t, diamond(Completed)...)
	check("ready after A", g.Ready(0), []string{"B", "C"})
	check("ready after A, one", g.Ready(1), []string{"B"})
	groups, _ = g.Groups()
	check("groups after A", groups, [][]string{{"B", "C"}, {"D"}, {"E"}})
	blockers, _ := g.Blockers("D")
	check("blockers of D", blockers, []Blocker{{"B", NotCompleted}, {"C", NotCompleted}})
	order, _ = g.Order(OrderOptions{})
	check("order after A", order, []string{"B", "C", "D", "E"})
	order, _ = g.Order(OrderOptions{IncludeCompleted: true})
	check("order with completed", order, []string{"A", "B", "C", "D", "E"})
	order, _ = g.Order(OrderOptions{ReadyOnly: true})
	check("order of ready", order, []string{"B", "C"})
}

func TestReadyStates(t *testing.T) {
	g := mustNew(t, with(task("done"), Completed), with(task("failed", "done"), Failed),
		with(task("cancelled", "done"), Cancelled), with(task("working", "done"), InProgress),
		with(task("stopped", "done"), Blocked), task("free", "done"), task("after-failed", "failed"),
		task("after-cancelled", "cancelled"), task("lost", "done", "ghost", "ghost"))
	if got := g.Ready(0); !cmp.Equal(got, []string{"free"}) {
		t.Errorf("ready = %v, want [free]", got)
	}
	for id, want := range map[string][]Blocker{
		"free": nil, "after-failed": {{"failed", IsFailed}}, "after-cancelled": {{"cancelled", IsCancelled}}, "lost": {{"ghost", IsMissing}},
	} {
		if got, ok := g.Blockers(id); !ok || !cmp.Equal(got, want) {
			t.Errorf("blockers of %s = %v, want %v", id, got, want)
		}
	}
	if _, ok := g.Blockers("nobody"); ok {
		t.Error("Blockers of an unknown id is ok")
	}
	if s, _ := g.Stats(); s.Ready+s.Blocked+s.Completed != s.Nodes || s.InProgress != 1 {
		t.Errorf("stats %+v do not add up", s)
	}
}

// TestCancelledIsNoWork: no group, order, path or schedule contains cancelled tasks.
func TestCancelledIsNoWork(t *testing.T) {
	g := mustNew(t, with(task("a"), Cancelled), task("b", "a"), task("c", "b"), with(task("d", "c"), Cancelled))
	if got, err := g.Groups(); err != nil || !cmp.Equal(got, [][]string{{"b"}, {"c"}}) {
		t.Errorf("groups %v, %v", got, err)
	}
	for _, o := range []OrderOptions{{}, {IncludeCompleted: true}} {
		if got, err := g.Order(o); err != nil || !cmp.Equal(got, []string{"b", "c"}) {
			t.Errorf("order %v, %v", got, err)
		}
	}
	if got, err := g.CriticalPath(); err != nil || !cmp.Equal(got, []string{"b", "c"}) {
		t.Errorf("critical path %v, %v", got, err)
	}
	if got, total, err := g.Schedule(); err != nil || len(got) != 2 || total != 2 {
		t.Errorf("schedule %v, %g, %v", got, total, err)
	}
	if got := g.Ready(0); got != nil {
		t.Errorf("ready %v: its dependency was cancelled", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, tasks := range map[string][]Task{
		"two of one id": {task("a"), task("a")}, "no id": {task("")},
	} {
		if _, err := New(tasks); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestEmpty(t *testing.T) {
	g := mustNew(t)
	order, err1 := g.Order(OrderOptions{})
	path, err2 := g.CriticalPath()
	stats, err3 := g.Stats()
	if err := errors.Join(err1, err2, err3); err != nil || len(order)+len(path) > 0 || stats != (Stats{}) {
		t.Errorf("empty graph: %v %v %v %v", order, path, stats, err)
	}
}

func TestValidate(t *testing.T) {
	g := mustNew(t, task("A"), task("B", "A"), task("C", "B"), task("D"))
	for _, c := range []struct {
		dependent, dependency string
		code                  Code
		path                  []string
		message               string
	}{
		{"A", "C", CycleDetected, []string{"A", "B", "C", "A"}, "Cycle: A -> B -> C -> A"},
		{"A", "A", SelfDependency, []string{"A", "A"}, "Task cannot depend on itself"},
		{"B", "A", DuplicateEdge, nil, "Dependency already exists"},
		{"X", "A", MissingNode, nil, "Dependent task not found: X"},
		{"A", "X", MissingNode, nil, "Dependency task not found: X"},
		{"C", "A", "", nil, ""}, {"D", "C", "", nil, ""}, {"A", "D", "", nil, ""},
	} {
		for range 2 { // the same answer twice: nothing was added
			err := g.Validate(c.dependent, c.dependency)
			if c.code == "" {
				if err != nil {
					t.Errorf("%s on %s: %v, want valid", c.dependent, c.dependency, err)
				}
				continue
			}
			if err == nil || err.Code != c.code || err.Message != c.message || !cmp.Equal(err.Path, c.path) {
				t.Errorf("%s on %s: %+v, want %v %v", c.dependent, c.dependency, err, c.code, c.path)
			}
		}
	}
}

func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		tasks []Task
		want  []string
	}{
		"none":            {diamond(Pending), nil},
		"ring":            {[]Task{task("b", "c"), task("c", "a"), task("a", "b")}, []string{"a", "b", "c", "a"}},
		"self":            {[]Task{task("x"), task("a", "a")}, []string{"a", "a"}},
		"with a way in":   {[]Task{task("in", "b"), task("b", "c"), task("c", "b")}, []string{"b", "c", "b"}},
		"shorter of two":  {[]Task{task("a", "b"), task("b", "c"), task("c", "a"), task("y", "z"), task("z", "y")}, []string{"y", "z", "y"}},
		"of equal, first": {[]Task{task("y", "z"), task("z", "y"), task("a", "b"), task("b", "a")}, []string{"a", "b", "a"}},
	} {
		g := mustNew(t, c.tasks...)
		err := g.Cycle()
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v, want none", name, err)
			}
			continue
		}
		if err == nil || !cmp.Equal(err.Path, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
			continue
		}
		var cycle *CycleError
		if _, orderErr := g.Order(OrderOptions{}); !errors.As(orderErr, &cycle) || !cmp.Equal(cycle.Path, c.want) {
			t.Errorf("%s: Order's error is %v", name, orderErr)
		}
		if _, err := g.Stats(); err == nil {
			t.Errorf("%s: Stats gives no error", name)
		}
	}
}

// TestSchedule has values computed by hand: a(2) -> b(3) -> d(1), a -> c(1) -> d, e(4) alone.
func TestSchedule(t *testing.T) {
	est := func(t Task, h float64) Task { t.Estimate = h; return t }
	g := mustNew(t, est(task("a"), 2), est(task("b", "a"), 3), task("c", "a"), task("d", "b", "c"), est(task("e"), 4))
	got, total, err := g.Schedule()
	want := []Timing{{"a", 2, 0, 0, 0}, {"e", 4, 0, 2, 2}, {"b", 3, 2, 2, 0}, {"c", 1, 2, 4, 2}, {"d", 1, 5, 5, 0}}
	if err != nil || total != 6 || !cmp.Equal(got, want) {
		t.Errorf("Schedule = %v, %v, %v; want %v, 6", got, total, err, want)
	}
}

// TestProperties checks properties that hold for any graph, with slow obvious code.
func TestProperties(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(12)
		perm := r.Perm(n) // dependencies go to earlier places of perm: acyclic
		tasks := make([]Task, n)
		for k, i := range perm {
			tasks[i] = with(task(fmt.Sprintf("t%02d", i)), State(r.IntN(6)))
			for _, j := range perm[:k] {
				if r.IntN(3) == 0 {
					tasks[i].DependsOn = append(tasks[i].DependsOn, fmt.Sprintf("t%02d", j))
				}
			}
		}
		g := mustNew(t, tasks...)
		state := func(id string) State { return g.tasks[g.index[id]].State }

		order, err := g.Order(OrderOptions{IncludeCompleted: true})
		cancelled := 0
		for _, task := range tasks {
			if task.State == Cancelled {
				cancelled++
			}
		}
		if err != nil || len(order) != n-cancelled || g.Cycle() != nil {
			t.Fatalf("seed %d: order %v, %v", seed, order, err)
		}
		for k, id := range order {
			for _, d := range g.Dependencies(id) {
				if slices.Index(order, d) > k {
					t.Errorf("seed %d: %s comes before its dependency %s", seed, id, d)
				}
			}
		}
		stats, _ := g.Stats()
		path, _ := g.CriticalPath()
		if stats.Ready+stats.Blocked+stats.Completed != n || stats.Depth != len(path) || stats.Ready != len(g.Ready(0)) {
			t.Errorf("seed %d: stats %+v", seed, stats)
		}
		depth := make(map[string]int)
		for _, id := range order {
			depth[id] = 1
			for _, d := range g.Dependencies(id) {
				depth[id] = max(depth[id], depth[d]+1)
			}
			if depth[id] > stats.Depth {
				t.Errorf("seed %d: chain of %d, depth %d", seed, depth[id], stats.Depth)
			}
		}
		for k := 1; k < len(path); k++ {
			if !slices.Contains(g.Dependencies(path[k]), path[k-1]) {
				t.Errorf("seed %d: %v is no chain", seed, path)
			}
		}
		groups, _ := g.Groups()
		placed := 0
		for k, group := range groups {
			placed += len(group)
			for _, id := range group {
				if state(id) == Completed || state(id) == Cancelled {
					t.Errorf("seed %d: finished %s in a group", seed, id)
				}
				latest := -1
				for _, d := range g.Dependencies(id) {
					for j := range groups {
						if slices.Contains(groups[j], d) {
							latest = max(latest, j)
						}
					}
				}
				if latest != k-1 {
					t.Errorf("seed %d: %s in group %d, its last dependency in %d", seed, id, k, latest)
				}
			}
		}
		if want := n - stats.Completed - cancelled; placed != want {
			t.Errorf("seed %d: %d tasks in groups, want %d", seed, placed, want)
		}
		// Any way back along a chain must be refused, with a closed walk as proof.
		for k := 1; k < len(path); k++ {
			err := g.Validate(path[0], path[k])
			if err == nil || err.Code != CycleDetected || err.Path[0] != path[0] || err.Path[len(err.Path)-1] != path[0] {
				t.Errorf("seed %d: %s on %s: %+v, want a cycle", seed, path[0], path[k], err)
				continue
			}
			for i := 1; i < len(err.Path)-1; i++ {
				if !slices.Contains(g.Dependencies(err.Path[i]), err.Path[i-1]) {
					t.Errorf("seed %d: %v is no walk", seed, err.Path)
				}
			}
		}
	}
}

func chain(n int, closed bool) []Task {
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = task(fmt.Sprintf("t%05d", i))
		if i > 0 {
			tasks[i].DependsOn = []string{tasks[i-1].ID}
		}
	}
	if closed {
		tasks[0].DependsOn = []string{tasks[n-1].ID}
	}
	return tasks
}

func BenchmarkReady10k(b *testing.B) {
	g, _ := New(chain(10_000, false))
	for b.Loop() {
		g.Ready(0)
	}
}

func BenchmarkCycle5k(b *testing.B) {
	tasks := chain(5000, true)
	for b.Loop() {
		g, _ := New(tasks)
		g.Cycle()
	}
}

func BenchmarkValidate1kChain(b *testing.B) {
	g, _ := New(chain(1000, false))
	for b.Loop() {
		g.Validate("t00000", "t00999")
	}
}

func BenchmarkOrder1kFan(b *testing.B) {
	tasks := make([]Task, 1000)
	tasks[0] = task("root")
	for i := 1; i < len(tasks); i++ {
		tasks[i] = task(fmt.Sprint(i), "root")
	}
	g, _ := New(tasks)
	for b.Loop() {
		g.Order(OrderOptions{})
	}
}
