package taskdag

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// oracle computes the answers for a small graph from the definitions, by enumerating all
// chains and walks.
type oracle struct {
	tasks []Task
	at    map[string]int
}

func newOracle(tasks []Task) oracle {
	o := oracle{tasks, map[string]int{}}
	for i, t := range tasks {
		o.at[t.ID] = i
	}
	return o
}

// deps are the dependencies of task i that exist, missing those that do not.
func (o oracle) deps(i int) (deps []int, missing []string) {
	for k, d := range o.tasks[i].DependsOn {
		if slices.Contains(o.tasks[i].DependsOn[:k], d) {
			continue
		}
		if j, ok := o.at[d]; ok {
			deps = append(deps, j)
		} else {
			missing = append(missing, d)
		}
	}
	return deps, missing
}

// chains calls fn with every chain of kept tasks that ends in i, from its first
// dependency on. It ends for acyclic graphs only.
func (o oracle) chains(i int, keep func(int) bool, fn func([]int)) {
	var grow func(chain []int)
	grow = func(chain []int) {
		fn(chain)
		deps, _ := o.deps(chain[0])
		for _, d := range deps {
			if keep(d) {
				grow(append([]int{d}, chain...))
			}
		}
	}
	grow([]int{i})
}

// level is the number of kept tasks before i in the longest chain to it.
func (o oracle) level(i int, keep func(int) bool) (most int) {
	o.chains(i, keep, func(chain []int) { most = max(most, len(chain)-1) })
	return most
}

// byLevel are the kept tasks by level, in the order given within each.
func (o oracle) byLevel(keep func(int) bool) (levels [][]string) {
	for i, t := range o.tasks {
		if !keep(i) {
			continue
		}
		l := o.level(i, keep)
		for len(levels) <= l {
			levels = append(levels, nil)
		}
		levels[l] = append(levels[l], t.ID)
	}
	return levels
}

// cycles are all simple cycles as closed paths from their smallest ids.
func (o oracle) cycles() (all [][]string) {
	var walk func(path []string)
	walk = func(path []string) {
		deps, _ := o.deps(o.at[path[len(path)-1]])
		for _, d := range deps {
			switch id := o.tasks[d].ID; {
			case id == path[0]:
				all = append(all, append(slices.Clone(path), id))
			case id > path[0] && !slices.Contains(path, id):
				walk(append(slices.Clone(path), id))
			}
		}
	}
	for _, t := range o.tasks {
		walk([]string{t.ID})
	}
	return all
}

// reaches reports whether i depends on j, directly or indirectly.
func (o oracle) reaches(i, j int) bool {
	seen := map[int]bool{}
	var visit func(int) bool
	visit = func(k int) bool {
		deps, _ := o.deps(k)
		for _, d := range deps {
			if d == j {
				return true
			}
			if !seen[d] {
				seen[d] = true
				if visit(d) {
					return true
				}
			}
		}
		return false
	}
	return visit(i)
}

// random are up to 8 tasks in any state, some with estimates, some with
// dependencies that do not exist or are given twice.
func random(r *rand.Rand, acyclic bool) []Task {
	n := 1 + r.IntN(8)
	perm := r.Perm(n)
	tasks := make([]Task, n)
	density := 1 + r.IntN(5)
	for k, i := range perm {
		tasks[i] = with(task(fmt.Sprintf("t%d", i)), State(r.IntN(6)))
		if r.IntN(2) == 0 {
			tasks[i].Estimate = float64(1+r.IntN(16)) / 2 // exact in binary
		}
		candidates := perm
		if acyclic {
			candidates = perm[:k]
		}
		for _, j := range candidates {
			if r.IntN(6) < density && (acyclic || r.IntN(2) == 0) {
				tasks[i].DependsOn = append(tasks[i].DependsOn, fmt.Sprintf("t%d", j))
			}
		}
		if r.IntN(8) == 0 {
			tasks[i].DependsOn = append(tasks[i].DependsOn, "ghost")
		}
		if len(tasks[i].DependsOn) > 0 && r.IntN(8) == 0 {
			tasks[i].DependsOn = append(tasks[i].DependsOn, tasks[i].DependsOn[0])
		}
	}
	return tasks
}

// TestOracleDAGs compares all results for 1,000 random acyclic graphs with the oracle.
func TestOracleDAGs(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 11))
		tasks := random(r, true)
		g, o := mustNew(t, tasks...), newOracle(tasks)
		check := func(what string, got, want any) {
			t.Helper()
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("seed %d, %+v: %s (-oracle +graph):\n%s", seed, tasks, what, diff)
			}
		}
		all := func(i int) bool { return tasks[i].State != Cancelled }
		open := func(i int) bool { return all(i) && tasks[i].State != Completed }

		if c := g.Cycle(); c != nil {
			t.Errorf("seed %d: cycle %v in an acyclic graph", seed, c.Path)
		}
		var ready []string
		for i, task := range tasks {
			deps, missing := o.deps(i)
			free := task.State == Pending && len(missing) == 0
			var blockers []Blocker
			for _, d := range deps {
				reason := map[State]Reason{Pending: NotCompleted, InProgress: NotCompleted, Blocked: NotCompleted, Failed: IsFailed, Cancelled: IsCancelled}[tasks[d].State]
				if reason != "" {
					blockers, free = append(blockers, Blocker{tasks[d].ID, reason}), false
				}
			}
			for _, m := range missing {
				blockers = append(blockers, Blocker{m, IsMissing})
			}
			got, _ := g.Blockers(task.ID)
			check("blockers of "+task.ID, got, blockers)
			if free {
				ready = append(ready, task.ID)
			}
			downstream := 0
			for j := range tasks {
				if o.reaches(j, i) {
					downstream++
				}
			}
			check("downstream of "+task.ID, g.Downstream(task.ID), downstream)
		}
		check("ready", g.Ready(0), ready)

		order, err := g.Order(OrderOptions{IncludeCompleted: true})
		check("order", order, slices.DeleteFunc(slices.Concat(o.byLevel(func(int) bool { return true })...), func(id string) bool { return !all(o.at[id]) }))
		groups, err2 := g.Groups()
		want := o.byLevel(open)
		if len(want) == 0 {
			want = [][]string{}
		}
		check("groups", groups, want)

		// Of the longest chains, the one whose end comes first in the order and
		// whose every task is the first of its successor's dependencies that can be.
		longest := 0
		for i := range tasks {
			if all(i) {
				longest = max(longest, o.level(i, all)+1)
			}
		}
		path, err3 := g.CriticalPath()
		var chain []string
		end := slices.IndexFunc(order, func(id string) bool { return o.level(o.at[id], all)+1 == longest })
		for i := 0; end >= 0; {
			if chain == nil {
				i = o.at[order[end]]
			}
			chain = append([]string{tasks[i].ID}, chain...)
			deps, _ := o.deps(i)
			k := slices.IndexFunc(deps, func(d int) bool { return all(d) && o.level(d, all) == longest-1-len(chain) })
			if k < 0 {
				break
			}
			i = deps[k]
		}
		check("critical path", path, chain)

		hours := func(chain []int) (sum float64) {
			for _, i := range chain {
				if tasks[i].Estimate > 0 {
					sum += tasks[i].Estimate
				} else {
					sum += DefaultEstimate
				}
			}
			return sum
		}
		total := 0.0
		before, after := make([]float64, len(tasks)), make([]float64, len(tasks)) // hours of the longest way to the task's start, and from it on
		for i := range tasks {
			if !open(i) {
				continue
			}
			o.chains(i, open, func(chain []int) {
				total = max(total, hours(chain))
				before[i] = max(before[i], hours(chain[:len(chain)-1]))
				after[chain[0]] = max(after[chain[0]], hours(chain))
			})
		}
		timings, gotTotal, err4 := g.Schedule()
		check("total hours", gotTotal, total)
		var wantTimings []Timing
		for _, id := range slices.Concat(o.byLevel(open)...) {
			i := o.at[id]
			latest := total - after[i]
			wantTimings = append(wantTimings, Timing{id, hours([]int{i}), before[i], latest, latest - before[i]})
		}
		check("schedule", timings, wantTimings)

		stats, err5 := g.Stats()
		wantStats := Stats{Nodes: len(tasks), Depth: longest, Ready: len(ready)}
		for i, task := range tasks {
			deps, _ := o.deps(i)
			wantStats.Edges += len(deps)
			if len(deps) == 0 {
				wantStats.Roots++
			}
			if !slices.ContainsFunc(tasks, func(other Task) bool { return slices.Contains(other.DependsOn, task.ID) }) {
				wantStats.Leaves++
			}
			switch task.State {
			case Completed:
				wantStats.Completed++
			case InProgress:
				wantStats.InProgress++
			}
		}
		wantStats.Blocked = len(tasks) - len(ready) - wantStats.Completed
		wantStats.Degree = float64(wantStats.Edges) / float64(len(tasks))
		wantStats.OutDegree = wantStats.Degree
		check("stats", stats, wantStats)
		for _, err := range []error{err, err2, err3, err4, err5} {
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		validateAll(t, seed, tasks, g, o)
	}
}

// TestOracleCycles compares 1,000 random graphs, many with cycles, with the
// oracle: a cycle is found if and only if there is one, and it is the shortest, of
// these the one whose ids sort first.
func TestOracleCycles(t *testing.T) {
	cyclic := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 13))
		tasks := random(r, false)
		g, o := mustNew(t, tasks...), newOracle(tasks)
		all := o.cycles()
		validateAll(t, seed, tasks, g, o)
		_, orderErr := g.Order(OrderOptions{})
		_, pathErr := g.CriticalPath()
		_, _, timeErr := g.Schedule()
		_, statsErr := g.Stats()
		got := g.Cycle()
		if len(all) == 0 {
			if got != nil || orderErr != nil || pathErr != nil || timeErr != nil || statsErr != nil {
				t.Errorf("seed %d, %+v: cycle %v in a graph without one", seed, tasks, got)
			}
			continue
		}
		cyclic++
		want := slices.MinFunc(all, func(a, b []string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return slices.Compare(a, b)
		})
		if got == nil || !slices.Equal(got.Path, want) {
			t.Errorf("seed %d, %+v: cycle %v, want %v", seed, tasks, got, want)
		}
		for what, err := range map[string]error{"Order": orderErr, "CriticalPath": pathErr, "Stats": statsErr} {
			if err == nil {
				t.Errorf("seed %d: %s gives no error", seed, what)
			}
		}
		// Waves and times leave finished tasks out, and with them their cycles.
		open := slices.ContainsFunc(all, func(c []string) bool {
			return !slices.ContainsFunc(c, func(id string) bool {
				state := tasks[o.at[id]].State
				return state == Completed || state == Cancelled
			})
		})
		if _, err := g.Groups(); (err != nil) != open || (timeErr != nil) != open {
			t.Errorf("seed %d, %+v: groups say %v, times %v, open cycle %v", seed, tasks, err, timeErr, open)
		}
	}
	if cyclic < 300 || cyclic > 900 {
		t.Errorf("%d of 1000 graphs have a cycle, want some of each kind", cyclic)
	}
}

// validateAll compares Validate with the oracle for every pair of tasks.
func validateAll(t *testing.T, seed uint64, tasks []Task, g *Graph, o oracle) {
	t.Helper()
	for i, a := range tasks {
		deps, _ := o.deps(i)
		for j, b := range tasks {
			want := Code("")
			switch {
			case i == j:
				want = SelfDependency
			case slices.Contains(deps, j):
				want = DuplicateEdge
			case o.reaches(j, i):
				want = CycleDetected
			}
			err := g.Validate(a.ID, b.ID)
			if err == nil && want == "" {
				continue
			}
			if err == nil || err.Code != want {
				t.Errorf("seed %d, %+v: %s on %s is %v, want %q", seed, tasks, a.ID, b.ID, err, want)
				continue
			}
			if want != CycleDetected {
				continue
			}
			// The walk leads with the work, from dependency to dependent, and is as
			// short as can be.
			shortest := math.MaxInt
			var grow func(path []int)
			grow = func(path []int) {
				d, _ := o.deps(path[len(path)-1])
				for _, k := range d {
					if k == i {
						shortest = min(shortest, len(path)+2)
					} else if !slices.Contains(path, k) {
						grow(append(slices.Clone(path), k))
					}
				}
			}
			grow([]int{j})
			ok := len(err.Path) == shortest && err.Path[0] == a.ID && err.Path[len(err.Path)-1] == a.ID && err.Path[len(err.Path)-2] == b.ID
			for k := 1; ok && k < len(err.Path)-1; k++ {
				ok = slices.Contains(tasks[o.at[err.Path[k]]].DependsOn, err.Path[k-1])
			}
			if !ok {
				t.Errorf("seed %d, %+v: %s on %s shows %v, want a closed walk of %d", seed, tasks, a.ID, b.ID, err.Path, shortest)
			}
		}
	}
}
