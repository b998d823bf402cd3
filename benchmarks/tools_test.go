package benchmarks

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/toolbox/suggest"
)

// TestF1ByHand compares with values computed by hand.
func TestF1ByHand(t *testing.T) {
	for _, c := range []struct {
		predicted, want []string
		f1              float64
	}{
		{[]string{"a", "b"}, []string{"a", "b"}, 1},
		{[]string{"a", "b", "c"}, []string{"a", "d"}, .4}, // precision 1/3, recall 1/2: 2·(1/6)/(5/6)
		{[]string{"a"}, []string{"a", "b", "c"}, .5},      // 1 and 1/3
		{[]string{"a", "b"}, []string{"a", "b", "a"}, .8}, // 1 and 2/3: a tool called twice is one element of three
		{[]string{"a", "a"}, []string{"a"}, 2. / 3},       // 1/2 and 1
		{[]string{"x"}, []string{"y"}, 0}, {nil, []string{"a"}, 0}, {[]string{"a"}, nil, 0}, {nil, nil, 0},
	} {
		if got := f1(c.predicted, c.want); math.Abs(got-c.f1) > 1e-12 {
			t.Errorf("F1(%v, %v) = %v, want %v", c.predicted, c.want, got, c.f1)
		}
	}
}

// TestPlanMetricsByHand: one plan that is right but for a tool too many, one of
// a single tool that has no links to compare.
func TestPlanMetricsByHand(t *testing.T) {
	var s planSums
	known := func(id string) bool { return id != "ghost" }
	plan := &suggest.Suggestion{DAG: suggest.DAG{
		Nodes: []suggest.Node{{ToolID: "a"}, {ToolID: "b"}, {ToolID: "ghost"}},
		Edges: []suggest.Edge{{From: "a", To: "b", DataPath: "output.x → input.x"}, {From: "a", To: "b", DataPath: "output.y → input.y"}, {From: "b", To: "ghost"}},
	}}
	s.add(plan, &toolTask{calls: []string{"a", "b"}, relevant: Relevance{"a": 1, "b": 1}, edges: [][2]int{{0, 1}}}, known)
	s.add(&suggest.Suggestion{DAG: suggest.DAG{Nodes: []suggest.Node{{ToolID: "a"}}}}, &toolTask{calls: []string{"a"}, relevant: Relevance{"a": 1}}, known)
	got := s.metrics()
	want := PlanMetrics{
		NodeF1:          (.8 + 1) / 2, // 2·2/(3+2)
		LinkF1:          2. / 3,       // one of two links, the only one wanted
		Exact:           .5,
		Hallucinated:    .25, // one node of four
		SupportBindings: .5,
		Size:            2,
	}
	if math.Abs(got.NodeF1-want.NodeF1) > 1e-12 || math.Abs(got.LinkF1-want.LinkF1) > 1e-12 || got.Exact != want.Exact ||
		got.Hallucinated != want.Hallucinated || got.SupportBindings != want.SupportBindings || got.Size != want.Size {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPlanMetricsCountInventedLinks: a plan with a link where a task has none loses, and an
// accepted alternative counts as the call that it stands for. Where a set does not say what
// waits for what, a prerequisite is not a tool too many.
func TestPlanMetricsCountInventedLinks(t *testing.T) {
	var s planSums
	known := func(string) bool { return true }
	a, b := suggest.Task{Tool: "a"}, suggest.Task{Tool: "b", Layer: 1}
	chain := func(kind string, tasks ...suggest.Task) *suggest.Suggestion {
		p := &suggest.Suggestion{Tasks: tasks}
		for i, task := range tasks {
			p.DAG.Nodes = append(p.DAG.Nodes, suggest.Node{ToolID: task.Tool})
			if i > 0 {
				p.DAG.Edges = append(p.DAG.Edges, suggest.Edge{From: tasks[i-1].Tool, To: task.Tool, Kind: kind})
			}
		}
		return p
	}
	free := &toolTask{calls: []string{"a", "b"}, edges: [][2]int{}}
	s.add(chain(suggest.TextEdge, a, b), free, known)
	s.add(chain(suggest.StatedEdge, a, b), free, known)
	got := s.metrics()
	if got.LinkF1 != 0 || got.LinkF1All != 0 || got.Invented != 1 || got.Claimed != .5 || got.NodeF1 != 1 || got.Whole != 1 {
		t.Errorf("links where there are none: %+v", got)
	}
	s = planSums{}
	task := &toolTask{calls: []string{"a", "b"}, edges: [][2]int{{0, 1}}, stands: map[string]string{"other": "b"}}
	s.add(chain(suggest.TextEdge, a, suggest.Task{Tool: "other", Layer: 1}), task, known)
	if got = s.metrics(); got.NodeF1 != 1 || got.LinkF1 != 1 || got.Exact != 1 || got.Whole != 1 {
		t.Errorf("with an alternative: %+v", got)
	}
	s.add(chain(suggest.TextEdge, a, b, suggest.Task{Tool: "other", Layer: 2}), task, known)
	if got = s.metrics(); got.NodeF1 != .9 || got.Exact != .5 { // 1 and 2·2/(3+2)
		t.Errorf("with the call and its alternative: %+v", got)
	}
	s = planSums{}
	b.Prerequisite = true
	s.add(chain(suggest.InferredEdge, b, a), &toolTask{calls: []string{"a"}, unlinked: true}, known)
	if got = s.metrics(); got.NodeF1 != 1 || got.Exact != 1 {
		t.Errorf("with a prerequisite: %+v", got)
	}
	s.add(chain(suggest.InferredEdge, b, a), &toolTask{calls: []string{"a"}, edges: [][2]int{}}, known)
	if got = s.metrics(); got.Exact != .5 {
		t.Errorf("with a prerequisite, links known: %+v", got)
	}
}

// TestCalibrateByHand compares with values computed by hand.
func TestCalibrateByHand(t *testing.T) {
	c := calibrate([]judgement{{.9, true}, {.9, true}, {.1, false}, {.1, false}, {.95, false}, {.65, true}, {.65, false}, {1, true}})
	nine := c.Bins[9]
	if nine.Plans != 4 || math.Abs(nine.Confidence-.9375) > 1e-12 || nine.Right != .75 || c.Bins[0].Plans != 0 || c.Bins[1].Right != 0 || c.Bins[6].Right != .5 {
		t.Errorf("bins %+v", c.Bins)
	}
	if want := (4*.1875 + 2*.1 + 2*.15) / 8; math.Abs(c.ECE-want) > 1e-12 {
		t.Errorf("calibration error %v, want %v", c.ECE, want)
	}
}

// TestCalibrationByChance draws plans that are right as often as their confidence says.
func TestCalibrationByChance(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	const rounds = 400
	var error, chance float64
	for range rounds {
		judged := make([]judgement, 90)
		for i := range judged {
			p := draw.Float64()
			judged[i] = judgement{p, draw.Float64() < p}
		}
		c := calibrate(judged)
		error, chance = error+c.ECE/rounds, chance+c.Chance/rounds
	}
	if math.Abs(error/chance-1) > .05 {
		t.Errorf("calibration error %.4f, by chance %.4f", error, chance)
	}
}

func TestAveragePrecisionAt(t *testing.T) {
	rel := Relevance{"a": 1, "b": 1, "c": 1}
	for _, c := range []struct {
		ranking []string
		k       int
		want    float64
	}{
		{[]string{"a", "x", "b"}, 10, (1 + 2./3) / 3},
		{[]string{"a", "x", "b"}, 2, .5}, // two places could hold two of the three
		{[]string{"x"}, 10, 0}, {nil, 10, 0},
	} {
		if got := averagePrecisionAt(c.ranking, rel, c.k); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("AveragePrecisionAt(%v, %d) = %v, want %v", c.ranking, c.k, got, c.want)
		}
	}
	if got := averagePrecisionAt([]string{"a"}, Relevance{}, 10); got != 0 {
		t.Errorf("with nothing relevant %v", got)
	}
}

// writeToolSet writes a set of four tools and eight tasks in two splits.
func writeToolSet(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var tasks strings.Builder
	for i, split := range []string{"train", "test"} {
		for n, who := range []string{"Ann", "Bob", "Eve", "Joe"} {
			id := string(rune('a'+n)) + string(rune('0'+i))
			tasks.WriteString(`{"id":"` + id + `","split":"` + split + `","intent":"book a flight for ` + who + ` and send the ticket by mail","calls":[{"tool":"book_flight"},{"tool":"send_mail","relevance":2}],"edges":[[0,1]]}` + "\n")
		}
	}
	for name, content := range map[string]string{
		"tools.jsonl": `{"name":"book_flight","server":"air","description":"Book a flight","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}}
{"name":"send_mail","server":"post","description":"Send something by mail"}
{"name":"find_hotel","server":"air","description":"Find a hotel"}
{"name":"paint_fence","server":"home","description":"Paint a fence","depends_on":["find_hotel"]}
`,
		"tasks.jsonl": tasks.String(),
		"more.jsonl": `{"name":"far","server":"z","description":"Something far away"}
{"name":"sendMail","server":"z","description":"Send the ticket by mail"}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTools(t *testing.T) {
	dir := writeToolSet(t)
	e := &testutil.HashEmbedder{}
	report, err := Tools(context.Background(), ToolsOptions{Data: dir, LearnSplit: "train", TestSplit: "test", Embedder: e, Cache: t.TempDir(),
		Distractors: []string{filepath.Join(dir, "more.jsonl")}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Dataset != "tiny" || report.Tools != 4 || report.Intents != 4 || report.Folds != 1 {
		t.Errorf("%+v", report)
	}
	if a := report.Among; a == nil || a.Tools != 6 || a.Namesakes != 1 || a.Intents != 4 || len(a.Retrieval) != len(distractorRows)+1 ||
		len(report.Loss) != len(distractorRows)+1 || report.Loss[asideRow].Recall5 != 0 || report.Loss[asideRow].MRR != 0 || report.Loss["keyword"].NDCG10 <= 0 {
		t.Errorf("among distractors %+v, loss %+v", a, report.Loss)
	}
	for _, row := range toolRows {
		if m := report.Retrieval[row]; m.Recall5 != 1 || m.NDCG10 < .8 || m.Comp5 != 1 {
			t.Errorf("%s: %+v", row, m)
		}
	}
	if p := report.Plan; p.NodeF1 != 1 || p.LinkF1 != 1 || p.Exact != 1 || p.Hallucinated != 0 || p.Size != 2 {
		t.Errorf("plans learnt from the other split: %+v", p)
	}
	if report.Latency.Search.P50 <= 0 || report.Latency.Suggest.P50 <= 0 {
		t.Errorf("latency %+v", report.Latency)
	}
	checkJSON(t, report, `tools intents retrieval/keyword/ndcg@10 retrieval/semantic/recall@5 retrieval/hybrid/comp@5 retrieval/+adamic_adar/hit@1
		retrieval/+pagerank/mrr retrieval/+memory/map@10 retrieval/default/ndcg@10 plan/node_f1 plan/link_f1 plan/exact plan/hallucinated plan/support_bindings latency_ms/search`)
}

// TestToolFolds: no task is measured after it was learnt, and every one is
// measured once.
func TestToolFolds(t *testing.T) {
	set, err := readToolSet(writeToolSet(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		learn, test            string
		n, folds, taught, seen int
	}{{"", "", 4, 4, 6, 8}, {"train", "test", 0, 1, 4, 4}, {"train", "test", 2, 2, 6, 4}, {"", "", 0, 1, 0, 8}, {"train", "", 4, 4, 6, 8}} {
		folds, err := set.folds(c.learn, c.test, c.n)
		if err != nil || len(folds) != c.folds {
			t.Fatalf("%+v: %d folds, %v", c, len(folds), err)
		}
		seen := 0
		for _, f := range folds {
			if len(f.learn) != c.taught {
				t.Errorf("%+v: %d tasks taught, want %d", c, len(f.learn), c.taught)
			}
			for _, task := range f.test {
				seen++
				if slices.Contains(f.learn, task) {
					t.Errorf("%+v: task %s is learnt and measured", c, task.id)
				}
			}
		}
		if seen != c.seen {
			t.Errorf("%+v: %d tasks measured, want %d", c, seen, c.seen)
		}
	}
	for _, c := range []struct {
		learn, test string
		n           int
	}{{"none", "test", 0}, {"train", "none", 0}, {"train", "train", 0}, {"train", "", 0}, {"", "test", 9}} {
		if _, err := set.folds(c.learn, c.test, c.n); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestToolsRefusesDamage(t *testing.T) {
	for name, damage := range map[string][2]string{
		"tasks.jsonl:1": {"tasks.jsonl", "{"},
		"leads out":     {"tasks.jsonl", `{"intent":"x","calls":[{"tool":"a"}],"edges":[[0,7]]}`},
		"without":       {"tasks.jsonl", `{"intent":"x","calls":[]}`},
		"0 tasks":       {"tasks.jsonl", "\n"},
		"tools.jsonl":   {"tools.jsonl", "["},
	} {
		dir := writeToolSet(t)
		if err := os.WriteFile(filepath.Join(dir, damage[0]), []byte(damage[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Tools(context.Background(), ToolsOptions{Data: dir, Embedder: &testutil.HashEmbedder{}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with %q gives %v, want an error that says %s", damage[0], damage[1], err, name)
		}
	}
}
