package benchmarks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// planSets lists the sets that TestPlanSets plans, with the least node F1 and share of plans
// with exactly the right tools. Names with "+learnt" are planned after four fifths were learnt,
// and those with "bfcl " are the kinds of questions with tools of their own. What was reached
// when is in toolquality.md.
var planSets = map[string][2]float64{
	"bfcl several tools": {.95, .84}, "bfcl one tool": {.9, .86}, "bfcl one tool alone": {.9, .9}, "bfcl one tool repeated": {.97, .97}, "bfcl no tool, people": {0, .6}, "bfcl no tool, generated": {0, .54},
	"g4tp-ultratool": {.645, .255}, "g4tp-ultratool+learnt": {.81, .52}, "toollinkos": {.85, .5}, "toollinkos+learnt": {.86, .48}, "seal-tools": {.89, .66},
	"gtc-ecommerce": {.82, .79}, "gtc-github": {.93, .91}, "gtc-k8s": {.69, .69}, "gtc-mixed_mcp": {.96, .96}, "gtc-multi_mcp": {.91, .86}, "gtc-petstore": {.96, .9},
	"mcpproxy-golden": {.87, .84},
}

// bfclKinds maps the kinds of bfcl to names of planSets.
var bfclKinds = map[string]string{"live_multiple": "bfcl one tool", "multiple": "bfcl one tool", "live_simple": "bfcl one tool alone", "live_parallel": "bfcl one tool repeated", "parallel": "bfcl one tool repeated",
	"parallel_multiple": "bfcl several tools", "live_parallel_multiple": "bfcl several tools", "live_irrelevance": "bfcl no tool, people", "irrelevance": "bfcl no tool, generated"}

// planSetTasks bounds the tasks of a set, which are evenly spread.
const planSetTasks = 200

// TestPlanSets plans some tasks of every set in the folder that CAIRN_DATA names, which takes
// about a minute with a CAIRN_CACHE. CAIRN_TOOLSETS lists the folders of further sets.
// CAIRN_DUMP names a file that gets a line of JSON for each plan.
func TestPlanSets(t *testing.T) {
	dir := toolSets(t)
	model, cache := toolModel(t)
	p := &planRun{t: t, options: &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}, sums: map[string]*planSums{}, refused: map[string]int{}}
	if name := os.Getenv("CAIRN_DUMP"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p.dump = json.NewEncoder(f)
	}
	p.all(dir)
	for _, name := range slices.Sorted(maps.Keys(p.sums)) {
		s, n := p.sums[name], float64(p.sums[name].tasks)
		f1, exact := s.nodeF1/n, (s.exact+float64(p.refused[name]))/n
		t.Logf("%-24s %4d plans: node F1 %.3f, exact %.3f, link F1 %.3f, calibration %.3f", name, s.tasks, f1, exact, s.linkF1/float64(max(1, s.linked)), calibrate(s.judged).ECE)
		if least, ok := planSets[name]; ok && (f1 < least[0] || exact < least[1]) {
			t.Errorf("%s: node F1 %.3f, exact %.3f, want %v", name, f1, exact, least)
		}
	}
}

// all plans tasks of every set of dir, and of those that CAIRN_TOOLSETS lists.
func (p *planRun) all(dir string) {
	p.questions(filepath.Join(dir, "bfcl"))
	for _, name := range slices.Sorted(maps.Keys(planSets)) {
		if set, learnt := strings.CutSuffix(name, "+learnt"); !strings.HasPrefix(name, "bfcl ") {
			p.set(name, filepath.Join(dir, set), learnt)
		}
	}
	p.extras()
}

// extras plans tasks of the sets that CAIRN_TOOLSETS lists.
func (p *planRun) extras() {
	for _, extra := range strings.Fields(os.Getenv("CAIRN_TOOLSETS")) {
		if _, err := os.Stat(filepath.Join(extra, "tools.jsonl")); err == nil {
			p.set(filepath.Base(extra), extra, false)
		} else {
			p.questions(extra)
		}
	}
}

// planRun sums the plans of some sets.
type planRun struct {
	t       *testing.T
	options *ToolsOptions
	sums    map[string]*planSums
	refused map[string]int // tasks that no tool fits and that have no plan
	dump    *json.Encoder
	tasks   int // of a set; 0 means planSetTasks
	// each, if not nil, receives every plan.
	each func(name string, task *toolTask, x *toolsearch.Index, plan *suggest.Suggestion)
}

func (p *planRun) open(tools []catalog.Tool) *toolBench {
	b, err := openToolBench(p.t.Context(), &toolSet{tools: tools}, p.options)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// set plans tasks of a set, if learn is set those of the first of five folds after the others.
func (p *planRun) set(name, dir string, learn bool) {
	set, err := readToolSet(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	b := p.open(set.tools)
	defer b.close()
	tests := make([]*toolTask, len(set.tasks))
	for i := range tests {
		tests[i] = &set.tasks[i]
	}
	index := b.index
	if learn {
		folds, err := set.folds("", "", 5)
		if err != nil {
			p.t.Fatal(err)
		}
		usage, err := b.learn(p.t.Context(), folds[0].learn, p.options)
		if err != nil {
			p.t.Fatal(err)
		}
		index, tests = index.WithUsage(usage), folds[0].test
	}
	for _, task := range spread(tests, cmp.Or(p.tasks, planSetTasks)) {
		p.plan(name, task, index)
	}
}

// questions plans questions, each over its own tools.
func (p *planRun) questions(dir string) {
	list, err := someQuestions(dir, cmp.Or(p.tasks, planSetTasks), func(kind string) string { return cmp.Or(bfclKinds[kind], filepath.Base(dir)) })
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range list {
		b := p.open(list[i].catalogue)
		p.plan(list[i].kind, &list[i].task, b.index)
		b.close()
	}
}

func (p *planRun) plan(name string, task *toolTask, x *toolsearch.Index) {
	plan, err := suggest.Suggest(p.t.Context(), x, suggest.Request{Intent: task.intent})
	if err != nil {
		p.t.Fatalf("%s: task %s: %v", name, task.id, err)
	}
	if p.sums[name] == nil {
		p.sums[name] = &planSums{}
	}
	s := p.sums[name]
	before := *s
	s.add(plan, task, func(id string) bool { _, ok := x.Tool(id); return ok })
	if p.each != nil {
		p.each(name, task, x, plan)
	}
	empty := len(plan.Tasks) == 0
	if empty {
		s.judged = s.judged[:len(s.judged)-1]
		if len(task.calls) == 0 {
			p.refused[name]++
			s.exact = before.exact
		}
	}
	if p.dump == nil {
		return
	}
	var tools []string
	for _, step := range plan.Tasks {
		tools = append(tools, fmt.Sprintf("%s|%t|%s|%s", step.Tool, step.Prerequisite, step.Part, step.Rationale))
	}
	if err := p.dump.Encode(map[string]any{"set": name, "id": task.id, "intent": task.intent, "size": x.Len(), "want": task.required(nil), "stands": task.stands, "relevant": task.relevant,
		"got": tools, "f1": s.nodeF1 - before.nodeF1, "exact": s.exact > before.exact || empty && len(task.calls) == 0, "linked": s.linked > before.linked, "link": s.linkF1 - before.linkF1, "empty": empty, "unmatched": plan.Unmatched, "confidence": plan.Confidence, "parts": plan.Parts}); err != nil {
		p.t.Fatal(err)
	}
}
