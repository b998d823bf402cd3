package benchmarks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// toolTask is a line of tasks.jsonl: an intent and the calls that serve it.
type toolTask struct {
	id, split, intent string
	calls             []string // IDs of tools, or names that no tool has
	relevant          Relevance
	edges             [][2]int // positions in calls
	unlinked          bool     // whether the set has no edges for the task
	// stands maps each accepted alternative to the call that it can replace.
	stands   map[string]string
	optional map[string]bool // calls that a plan may omit
}

// accepted returns a function that maps the tools of a plan to those of the task: an
// alternative to the call that it can replace, unless the plan has both.
func (t *toolTask) accepted(plan *suggest.Suggestion) func(id string) string {
	in := map[string]bool{}
	for _, n := range plan.DAG.Nodes {
		in[n.ToolID] = true
	}
	return func(id string) string {
		if call, ok := t.stands[id]; ok && !in[call] {
			return call
		}
		return id
	}
}

// required returns the calls without the optional ones that are not in nodes.
func (t *toolTask) required(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(t.calls), func(id string) bool { return t.optional[id] && !slices.Contains(nodes, id) })
}

// exact reports whether nodes, without duplicates, are exactly the called tools.
func (t *toolTask) exact(nodes []string) bool {
	want := toolsearch.Distinct(t.required(nodes))
	return len(nodes) == len(want) && !slices.ContainsFunc(nodes, func(id string) bool { return !slices.Contains(want, id) })
}

// trace returns the task as a trace of use, without the optional calls, which are other
// possible answers. A task with such calls has no edges.
func (t *toolTask) trace() toolsearch.Trace {
	return toolsearch.Trace{Intent: t.intent, Tools: t.required(nil), Edges: t.edges}
}

// toolSet is a folder with tools.jsonl and tasks.jsonl.
type toolSet struct {
	tools []catalog.Tool
	tasks []toolTask
}

// readTools reads tools from a file with one tool per line. server is the server of tools
// that name none.
func readTools(file, server string) ([]catalog.Tool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	batch, err := catalog.Read(context.Background(), f, server)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return batch.Tools, nil
}

// taskLine is a line of tasks.jsonl.
type taskLine struct {
	ID, Split, Kind, Intent string
	Tools                   json.RawMessage
	Calls                   []struct {
		Tool         string
		Alternatives []string
		Relevance    *int
	}
	Edges [][2]int
}

// readToolSet reads the set in folder dir.
func readToolSet(dir string) (*toolSet, error) {
	set := &toolSet{}
	var err error
	if set.tools, err = readTools(filepath.Join(dir, "tools.jsonl"), ""); err != nil {
		return nil, err
	}
	ids := map[string]string{} // IDs by the name in calls
	for _, t := range set.tools {
		if _, ok := ids[t.Name]; !ok {
			ids[t.Name] = t.ID
		}
	}
	for _, t := range set.tools {
		ids[t.ID] = t.ID
	}
	err = readLines(filepath.Join(dir, "tasks.jsonl"), func(line []byte) error {
		var raw taskLine
		if err := json.Unmarshal(line, &raw); err != nil {
			return err
		}
		if strings.TrimSpace(raw.Intent) == "" || len(raw.Calls) == 0 {
			return errors.New("a task without an intent or calls")
		}
		t := toolTask{id: raw.ID, split: raw.Split, intent: raw.Intent, edges: raw.Edges, unlinked: raw.Edges == nil, relevant: Relevance{},
			stands: map[string]string{}, optional: map[string]bool{}}
		best := 0
		for _, c := range raw.Calls {
			if c.Relevance != nil {
				best = max(best, *c.Relevance)
			}
		}
		idOf := func(name string) string { return cmp.Or(ids[name], name) }
		for _, c := range raw.Calls {
			id := idOf(c.Tool)
			for _, other := range c.Alternatives {
				t.stands[idOf(other)] = id
				t.relevant[idOf(other)] = max(t.relevant[idOf(other)], 1)
			}
			// A lower judgement means that the tool is another possible answer.
			if c.Relevance != nil && *c.Relevance < best && len(raw.Edges) == 0 {
				t.optional[id] = true
			}
			grade := 1
			if c.Relevance != nil {
				grade = *c.Relevance
			}
			t.calls = append(t.calls, id)
			t.relevant[id] = max(t.relevant[id], grade)
		}
		if err := toolsearch.CheckTrace(t.trace()); err != nil {
			return err
		}
		set.tasks = append(set.tasks, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(set.tools) == 0 || len(set.tasks) == 0 {
		return nil, fmt.Errorf("%s holds %d tools and %d tasks", dir, len(set.tools), len(set.tasks))
	}
	return set, nil
}

// question is a task with tools of its own.
type question struct {
	kind      string
	tools     json.RawMessage
	catalogue []catalog.Tool // tools
	task      toolTask
}

// someQuestions reads at most n questions of each kind from tasks.jsonl in folder dir, those of a
// kind one after the other. kindOf maps the kinds of the file to those of the questions. Their
// calls name tools of the question; other calls are ignored.
func someQuestions(dir string, n int, kindOf func(string) string) ([]question, error) {
	byKind := map[string][]taskLine{}
	err := readLines(filepath.Join(dir, "tasks.jsonl"), func(line []byte) error {
		var r taskLine
		err := json.Unmarshal(line, &r)
		kind := kindOf(r.Kind)
		byKind[kind] = append(byKind[kind], r)
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []question
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		for _, r := range spread(byKind[kind], n) {
			batch, err := catalog.Read(context.Background(), bytes.NewReader(r.Tools), "")
			if err != nil {
				return nil, fmt.Errorf("tools of question %s: %w", r.ID, err)
			}
			q := question{kind, r.Tools, batch.Tools, toolTask{id: r.ID, intent: r.Intent, edges: r.Edges, unlinked: r.Edges == nil, stands: map[string]string{}}}
			idOf := func(name string) string {
				if i := slices.IndexFunc(batch.Tools, func(t catalog.Tool) bool { return t.ID == name || t.Name == name }); i >= 0 {
					return batch.Tools[i].ID
				}
				return ""
			}
			for _, c := range r.Calls {
				id := idOf(c.Tool)
				if id == "" || slices.Contains(q.task.calls, id) {
					continue
				}
				q.task.calls = append(q.task.calls, id)
				for _, other := range c.Alternatives {
					q.task.stands[idOf(other)] = id
				}
			}
			list = append(list, q)
		}
	}
	return list, nil
}

// fold is a set of tasks to measure, and the tasks that are learnt before.
type fold struct {
	learn, test []*toolTask
}

// folds divides the tasks. With n of two or more, those of split test (all when
// it is empty) are cut by position modulo n: each part is measured after the
// others, and split learn where it is named, were learnt. Else split test is
// measured after split learn; an empty learn teaches nothing.
func (s *toolSet) folds(learn, test string, n int) ([]fold, error) {
	var teach, measure []*toolTask
	for i := range s.tasks {
		t := &s.tasks[i]
		if test == "" || t.split == test {
			measure = append(measure, t)
		}
		if learn != "" && t.split == learn {
			teach = append(teach, t)
		}
	}
	if len(measure) == 0 {
		return nil, fmt.Errorf("no task of split %q", test)
	}
	if learn != "" && len(teach) == 0 {
		return nil, fmt.Errorf("no task of split %q to learn from", learn)
	}
	if n < 2 {
		if learn != "" && (test == "" || test == learn) {
			return nil, fmt.Errorf("split %q would be learnt and measured: name two splits, or folds", learn)
		}
		return []fold{{teach, measure}}, nil
	}
	if n > len(measure) {
		return nil, fmt.Errorf("%d folds of %d tasks", n, len(measure))
	}
	list := make([]fold, n)
	for i, t := range measure {
		for f := range list {
			if i%n == f {
				list[f].test = append(list[f].test, t)
			} else {
				list[f].learn = append(list[f].learn, t)
			}
		}
	}
	for f := range list {
		for _, t := range teach {
			if !slices.Contains(list[f].test, t) && !slices.Contains(list[f].learn, t) {
				list[f].learn = append(list[f].learn, t)
			}
		}
	}
	return list, nil
}
