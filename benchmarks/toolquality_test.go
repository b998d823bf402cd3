package benchmarks

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"cairn/models"
	"cairn/models/minilm"
)

// toolGoals are what each set must reach; every figure is a row's and a metric's, or
// "plan". What is reached is in toolquality.md.
var toolGoals = []struct {
	set   string
	folds int
	least map[string]float64
}{
	{"mcpproxy-golden", 0, map[string]float64{"default/recall@5": .92, "default/ndcg@10": .9}},
	{"gtc-k8s", 0, map[string]float64{"default/recall@5": .93, "default/ndcg@10": .84}},
	{"gtc-github", 0, map[string]float64{"default/recall@5": .975}},
	{"gtc-mixed_mcp", 0, map[string]float64{"default/recall@5": .966}},
	{"gtc-multi_mcp", 0, map[string]float64{"default/recall@5": .93}},
	{"gtc-petstore", 0, map[string]float64{"default/recall@5": .92}},
	{"gtc-ecommerce", 0, nil},
	{"toollinkos", 0, map[string]float64{"default/map@10": .898}},
	{"seal-tools", 0, map[string]float64{"default/ndcg@10": .945}},
	{"g4tp-ultratool", 5, map[string]float64{"hybrid/ndcg@10": .74, "without_memory/ndcg@10": .80, "default/ndcg@10": .944, "plan/node_f1": .842, "plan/link_f1": .595, "plan_cold/node_f1": .69, "plan_cold/link_f1": .35}},
}

// toolReader opens the model that reads requests once for all tests.
var toolReader = sync.OnceValues(func() (models.Reader, error) { return minilm.OpenReader(nil) })

// toolModel opens the built-in model and names the folder of its embeddings of tools.
func toolModel(t *testing.T) (model models.Embedder, cache string) {
	t.Helper()
	model, err := minilm.OpenTools(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	if dir := os.Getenv("CAIRN_CACHE"); dir != "" {
		return model, filepath.Join(dir, "tools")
	}
	return model, t.TempDir()
}

// toolSets returns the folder of the tool sets. It skips the test where there is none, and
// in short runs.
func toolSets(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CAIRN_DATA")
	if dir == "" {
		t.Skip("CAIRN_DATA names no folder of evaluation data")
	}
	if testing.Short() {
		t.Skip("-short is set: this measures every tool set of CAIRN_DATA")
	}
	return filepath.Join(dir, "tools")
}

// TestToolQuality holds the goals on the folder named by CAIRN_DATA, which
// takes minutes. CAIRN_CACHE names a folder that keeps embeddings.
func TestToolQuality(t *testing.T) {
	dir := toolSets(t)
	model, cache := toolModel(t)
	for _, goal := range toolGoals {
		t.Run(goal.set, func(t *testing.T) {
			report, err := Tools(context.Background(), ToolsOptions{Data: filepath.Join(dir, goal.set), Folds: goal.folds, Embedder: model, Reader: toolReader, Cache: cache})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", text)
			var figures struct {
				Retrieval map[string]map[string]float64
				Plan      map[string]float64
				Cold      map[string]float64 `json:"plan_cold"`
			}
			if err := json.Unmarshal(text, &figures); err != nil {
				t.Fatal(err)
			}
			for name, least := range goal.least {
				row, metric := filepath.Split(name)
				got, ok := figures.Retrieval[filepath.Clean(row)][metric], true
				switch row {
				case "plan/":
					got, ok = figures.Plan[metric]
				case "plan_cold/":
					got, ok = figures.Cold[metric]
				}
				if !ok || got < least {
					t.Errorf("%s is %.4f, want %.4f", name, got, least)
				}
			}
			rows := report.Retrieval
			lost := mostLegLoss
			if goal.set == "gtc-petstore" {
				lost = .021 // one intent of 23, which toolquality.md records as missed
			}
			if h, best := rows["hybrid"].NDCG10, max(rows["keyword"].NDCG10, rows["semantic"].NDCG10); h < best-lost {
				t.Errorf("hybrid %.4f, the better leg %.4f", h, best)
			}
			for _, row := range []string{"+adamic_adar", "+pagerank", "+transitions", "+closure", "without_memory"} {
				if rows[row].NDCG10 < rows["hybrid"].NDCG10-.005 {
					t.Errorf("%s %.4f loses on hybrid %.4f", row, rows[row].NDCG10, rows["hybrid"].NDCG10)
				}
			}
			// Where nothing is learnt and nothing declared, no term has a say.
			if goal.folds == 0 && goal.set != "toollinkos" && rows["default"] != rows["hybrid"] {
				t.Errorf("with nothing learnt the default %+v is not the hybrid %+v", rows["default"], rows["hybrid"])
			}
			if report.Plan.Hallucinated != 0 {
				t.Errorf("%.4f of the planned tools are not in the catalogue", report.Plan.Hallucinated)
			}
		})
	}
}

// mostLegLoss is the most nDCG@10 that a blend may lose on its better leg, an intent of the
// smallest sets. mostLoss is the most that a figure of a set may lose by learning, and
// mostToolError the most calibration error of the confidence of plans.
const (
	mostLegLoss   = .0095
	mostLoss      = .005
	mostToolError = .08
)

// TestLearning learns four fifths of the intents of each set of the folder named by
// CAIRN_DATA and asks the others: ranking loses nothing by what was learnt, although most
// tools serve one intent alone and have siblings. It pools the confidence of the plans, cold
// and learnt, each set by the square root of its size as the weights were fitted.
func TestLearning(t *testing.T) {
	dir := toolSets(t)
	model, cache := toolModel(t)
	var stated, right, weight [calibrationBins]float64
	var all float64
	for _, goal := range toolGoals {
		o := ToolsOptions{Data: filepath.Join(dir, goal.set), Folds: 5, MaxTasks: 140, Embedder: model, Reader: toolReader, Cache: cache, Rows: []string{"hybrid", "default"}}
		r, err := Tools(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		hybrid, learnt := r.Retrieval["hybrid"], r.Retrieval["default"]
		t.Logf("%-16s nDCG@10 %.4f, learnt %.4f; hit@1 %.3f, learnt %.3f; node F1 %.4f, learnt %.4f; calibration error %.3f, learnt %.3f", goal.set,
			hybrid.NDCG10, learnt.NDCG10, hybrid.Hit1, learnt.Hit1, r.Cold.NodeF1, r.Plan.NodeF1, r.ColdCalibration.ECE, r.Calibration.ECE)
		lost := mostLoss
		if goal.set == "gtc-multi_mcp" {
			lost = .011 // one intent, which plans.md records as missed
		}
		if learnt.NDCG10 < hybrid.NDCG10-lost || learnt.Hit1 < hybrid.Hit1-lost || r.Plan.NodeF1 < r.Cold.NodeF1-lost {
			t.Errorf("%s loses by learning", goal.set)
		}
		each := 1 / math.Sqrt(float64(r.Intents))
		for _, c := range []*Calibration{r.Calibration, r.ColdCalibration} {
			for i, b := range c.Bins {
				n := each * float64(b.Plans)
				stated[i], right[i], weight[i] = stated[i]+n*b.Confidence, right[i]+n*b.Right, weight[i]+n
				all += n
			}
		}
	}
	var off float64
	for i := range stated {
		off += math.Abs(stated[i]-right[i]) / all
		t.Logf("confidence %.3f, right %.3f, share of the plans %.3f", stated[i]/max(weight[i], 1e-9), right[i]/max(weight[i], 1e-9), weight[i]/all)
	}
	t.Logf("calibration error of all sets: %.4f", off)
	if off > mostToolError {
		t.Errorf("calibration error %.4f, want %.2f", off, mostToolError)
	}
}
