package benchmarks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/plancheck"
	"cairn/internal/toolbox/toolsearch"
)

func readJSONLines(t *testing.T, path string, fn func([]byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		fn(s.Bytes())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

// goldSet reads the gold plans of a set with tools.jsonl and tasks.jsonl, at most n, evenly
// spaced. If learn is set, the other tasks are learnt.
func goldSet(t *testing.T, dir, name string, n int, learn bool, each func(goldPlan)) {
	set, err := readToolSet(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	args := map[string][]map[string]any{}
	workflow := map[string]bool{}
	readJSONLines(t, filepath.Join(dir, name, "tasks.jsonl"), func(line []byte) {
		var raw struct {
			ID, Category string
			Calls        []struct{ Args map[string]any }
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			t.Fatal(err)
		}
		workflow[raw.ID] = raw.Category == "workflow"
		for _, c := range raw.Calls {
			args[raw.ID] = append(args[raw.ID], c.Args)
		}
	})
	model, cache := toolModel(t)
	o := &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}
	b, err := openToolBench(t.Context(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	index := b.index
	var tasks, taught []*toolTask
	for i := range set.tasks {
		if learn && i%20 != 0 {
			taught = append(taught, &set.tasks[i])
		} else {
			tasks = append(tasks, &set.tasks[i])
		}
	}
	usage, err := b.learn(t.Context(), taught, o)
	if err != nil {
		t.Fatal(err)
	}
	index = index.WithUsage(usage)
	for _, task := range spread(tasks, n) {
		p := plancheck.Plan{Intent: task.intent}
		for i, id := range task.calls {
			c := plancheck.Call{ID: fmt.Sprintf("c%d", i), Tool: id}
			if a := args[task.id][i]; a != nil {
				c.Arguments = map[string]any{}
				for k, v := range a {
					if s, ok := v.(string); ok && strings.HasPrefix(s, "API_call_") {
						v = "$c" + strings.TrimPrefix(s, "API_call_")
					}
					c.Arguments[k] = v
				}
			}
			p.Calls = append(p.Calls, c)
		}
		switch {
		case task.unlinked && len(task.calls) > 1 && !workflow[task.id], len(task.stands) > 0 || len(task.optional) > 0:
			continue // the calls are alternatives
		case slices.ContainsFunc(p.Calls, func(c plancheck.Call) bool { return refused(index, &c) }):
			continue
		case name != "seal-tools" && len(task.edges) > 0:
			for _, e := range task.edges {
				p.Edges = append(p.Edges, plancheck.Edge{From: p.Calls[e[0]].ID, To: p.Calls[e[1]].ID})
			}
		}
		if cyclic(task.edges, len(task.calls)) {
			continue
		}
		each(goldPlan{name, index, p})
	}
}

// refused reports whether a gold call has an argument of a type that the schema refuses.
func refused(index *toolsearch.Index, c *plancheck.Call) bool {
	tool, _ := index.Tool(c.Tool)
	return slices.ContainsFunc(tool.Takes, func(in catalog.Parameter) bool {
		s, ok := c.Arguments[in.Name].(string)
		return ok && in.Path == in.Name && len(in.Types) > 0 && !slices.Contains(in.Types, "string") && !strings.HasPrefix(s, "$")
	})
}

func cyclic(edges [][2]int, n int) bool {
	left := slices.Clone(edges)
	for range n {
		left = slices.DeleteFunc(left, func(e [2]int) bool {
			return !slices.ContainsFunc(left, func(o [2]int) bool { return o[1] == e[0] })
		})
	}
	return len(left) > 0
}

// bfclPlans reads the questions with several calls, each over its own tools.
func bfclPlans(t *testing.T, dir string, each func(goldPlan)) {
	model, cache := toolModel(t)
	readJSONLines(t, filepath.Join(dir, "bfcl", "tasks.jsonl"), func(line []byte) {
		var raw struct {
			ID, Kind, Intent string
			Tools            []json.RawMessage
			Calls            []struct {
				Tool      string
				Arguments map[string][]any
			}
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			t.Fatal(err)
		}
		if len(raw.Calls) < 2 {
			return
		}
		var tools strings.Builder
		for _, r := range raw.Tools {
			tools.WriteString(string(r) + "\n")
		}
		batch, err := catalog.Read(t.Context(), strings.NewReader(tools.String()), "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := openToolBench(t.Context(), &toolSet{tools: batch.Tools}, &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		p := plancheck.Plan{Intent: raw.Intent}
		for i, c := range raw.Calls {
			args := map[string]any{}
			for name, accepted := range c.Arguments {
				if len(accepted) > 0 && accepted[0] != "" {
					args[name] = first(accepted[0])
				}
			}
			p.Calls = append(p.Calls, plancheck.Call{ID: fmt.Sprintf("c%d", i), Tool: c.Tool, Arguments: args})
		}
		each(goldPlan{"bfcl", b.index, p})
	})
}

// first replaces each list of accepted values in a nested object by its first value.
func first(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, e := range o {
		if l, ok := e.([]any); ok && len(l) > 0 {
			e = l[0]
		}
		out[k] = first(e)
	}
	return out
}

// walks returns random paths of the graph of tools of a TaskBench set. Its tools take and
// return resources such as text and images.
func walks(t *testing.T, dir, name string, n int, each func(goldPlan)) {
	read := func(file string, v any) {
		b, err := os.ReadFile(filepath.Join(dir, name, file))
		if err == nil {
			err = json.Unmarshal(b, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var desc struct {
		Nodes []struct {
			ID, Desc string
			In       []string `json:"input-type"`
			Out      []string `json:"output-type"`
		}
	}
	var graph struct {
		Links []struct{ Source, Target, Type string }
	}
	read("tool_desc.json", &desc)
	read("graph_desc.json", &graph)
	var tools []catalog.Tool
	takes := map[string][]string{}
	for _, d := range desc.Nodes {
		schema := func(types []string) json.RawMessage {
			props := map[string]any{}
			types = slices.Compact(slices.Sorted(slices.Values(types)))
			for _, s := range types {
				props[s] = map[string]string{"type": "string"}
			}
			b, _ := json.Marshal(map[string]any{"type": "object", "properties": props, "required": types})
			return b
		}
		tool, err := catalog.New(catalog.Tool{Name: d.ID, Description: d.Desc, Input: schema(d.In), Output: schema(d.Out)})
		if err != nil {
			t.Fatal(err)
		}
		tools, takes[tool.ID] = append(tools, tool), d.In
	}
	model, cache := toolModel(t)
	b, err := openToolBench(t.Context(), &toolSet{tools: tools}, &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r := rand.New(rand.NewPCG(7, 7))
	for n > 0 {
		at := tools[r.IntN(len(tools))].ID
		p := plancheck.Plan{}
		supplied := ""
		for i := range 2 + r.IntN(3) {
			args := map[string]any{}
			for _, in := range takes[at] {
				args[in] = "example " + in
			}
			if supplied != "" {
				args[supplied] = fmt.Sprintf("$c%d.%s", i-1, supplied)
			}
			p.Calls = append(p.Calls, plancheck.Call{ID: fmt.Sprintf("c%d", i), Tool: at, Arguments: args})
			var next [][2]string
			for _, l := range graph.Links {
				if l.Source == at && !slices.ContainsFunc(p.Calls, func(c plancheck.Call) bool { return c.Tool == l.Target }) {
					next = append(next, [2]string{l.Target, l.Type})
				}
			}
			if len(next) == 0 {
				break
			}
			to := next[r.IntN(len(next))]
			at, supplied = to[0], to[1]
		}
		if len(p.Calls) > 1 {
			each(goldPlan{name, b.index, p})
			n--
		}
	}
}

// checkedPlan is the outcome of one check.
type checkedPlan struct {
	set, kind string
	score     float64
	found     bool // there is a finding
	first     bool // the first finding names the fault
	repaired  bool // the repair equals the gold plan
}

// check checks a plan with a fault.
func (g *goldPlan) check(t *testing.T, f fault) checkedPlan {
	rep, err := plancheck.Check(t.Context(), g.index, g.lookup, f.plan)
	if err != nil {
		t.Fatalf("%s: %v", g.set, err)
	}
	c := checkedPlan{set: g.set, kind: f.kind, score: rep.Score, found: len(rep.Findings) > 0}
	c.first = c.found && f.named(&rep.Findings[0])
	if rep.Repaired != nil {
		ignore := ""
		for _, k := range g.plan.Calls {
			if !slices.ContainsFunc(f.plan.Calls, func(o plancheck.Call) bool { return o.ID == k.ID }) {
				ignore = k.Tool
			}
		}
		c.repaired = samePlan(rep.Repaired, g.plan, ignore)
	}
	return c
}

// TestPlanCheck checks the gold plans of the folder that CAIRN_DATA names, and the same
// plans with injected faults.
func TestPlanCheck(t *testing.T) {
	dir := toolSets(t)
	r := rand.New(rand.NewPCG(1, 2))
	var all []checkedPlan
	each := func(g goldPlan) {
		for _, f := range append([]fault{{"gold", g.plan, func(*plancheck.Finding) bool { return false }}}, g.faults(t, r)...) {
			all = append(all, g.check(t, f))
		}
	}
	goldSet(t, dir, "seal-tools", 150, false, each)
	bfclPlans(t, dir, each)
	walks(t, dir, "taskbench-huggingface", 100, each)
	walks(t, dir, "taskbench-multimedia", 100, each)
	goldSet(t, dir, "g4tp-ultratool", 152, true, each)
	goldSet(t, dir, "toollinkos", 0, false, each)
	for _, name := range []string{"gtc-ecommerce", "gtc-github", "gtc-k8s", "gtc-mixed_mcp", "gtc-multi_mcp", "gtc-petstore"} {
		goldSet(t, dir, name, 0, false, each)
	}
	var heldOut []checkedPlan
	for _, c := range all {
		if !slices.Contains(fitted, c.set) {
			heldOut = append(heldOut, c)
		}
	}
	total := figuresOf(all)
	t.Logf("all: %s", total)
	t.Logf("left out of the fit: %s", figuresOf(heldOut))
	groups := map[string][]checkedPlan{}
	for _, c := range all {
		set := c.set
		if strings.HasPrefix(set, "gtc-") {
			set = "gtc"
		}
		groups["set "+set] = append(groups["set "+set], c)
		if c.kind == "gold" {
			continue
		}
		groups["kind "+c.kind] = append(groups["kind "+c.kind], c)
		groups["set "+set+", "+c.kind] = append(groups["set "+set+", "+c.kind], c)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		list := groups[name]
		if list[0].kind != "gold" {
			for _, c := range all {
				if c.kind == "gold" && (c.set == list[0].set || !strings.HasPrefix(name, "set")) {
					list = append(list, c)
				}
			}
		}
		t.Logf("%s: %s", name, figuresOf(list))
	}
	if total.faults < 2000 || total.auroc < .95 || total.first < .7 || total.repaired < .6 || total.clean < .97 {
		t.Errorf("%s; want 2000 faults and at least .95, .7, .6, .97", total)
	}
}

// fitted lists the sets on which the weights of plancheck were fitted.
var fitted = []string{"seal-tools", "bfcl", "taskbench-huggingface", "g4tp-ultratool", "gtc-ecommerce", "gtc-github", "gtc-k8s"}

// checkFigures are the figures of checks of gold plans and of faults.
type checkFigures struct {
	gold, faults                  int
	auroc, first, repaired, clean float64
}

func (f checkFigures) String() string {
	return fmt.Sprintf("%d gold plans, %d faults, AUROC %.3f, named first %.2f, repaired %.2f, gold without findings %.3f", f.gold, f.faults, f.auroc, f.first, f.repaired, f.clean)
}

func figuresOf(list []checkedPlan) (f checkFigures) {
	var right, wrong []float64
	share := func(yes bool, of *float64) {
		if yes {
			*of++
		}
	}
	for _, c := range list {
		if c.kind == "gold" {
			right = append(right, c.score)
			share(!c.found, &f.clean)
			continue
		}
		wrong = append(wrong, c.score)
		share(c.first, &f.first)
		share(c.repaired, &f.repaired)
	}
	f.gold, f.faults = len(right), len(wrong)
	for _, r := range right {
		for _, w := range wrong {
			switch {
			case r > w:
				f.auroc++
			case r == w:
				f.auroc += .5
			}
		}
	}
	f.auroc /= float64(max(1, f.gold*f.faults))
	f.first, f.repaired = f.first/float64(max(1, f.faults)), f.repaired/float64(max(1, f.faults))
	f.clean /= float64(max(1, f.gold))
	return f
}
