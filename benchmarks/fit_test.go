package benchmarks

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/suggest"
)

// TestFit fits the choice and the confidence to the sets of CAIRN_DATA, the folders that CAIRN_TOOLSETS lists and
// the development intents, but none that are reported, and compares what it reaches on sets left
// out with the least. CAIRN_FIT names a file that gets the weights. It takes minutes.
func TestFit(t *testing.T) {
	dir := toolSets(t)
	embedder, cache := toolModel(t)
	o := FitOptions{Embedder: embedder, Reader: toolReader, Cache: cache, Sets: []string{filepath.Join(dir, "bfcl")}}
	for _, name := range []string{"everyday-dev", "unfamiliar-dev", "small-dev"} {
		o.Sets = append(o.Sets, writeIntents(t, name))
	}
	o.Sets = append(o.Sets, writeCatalogues(t, "invented-dev", inventedCatalogues(t, "invented-dev")))
	for name := range planSets {
		if !strings.HasPrefix(name, "bfcl ") && !strings.HasSuffix(name, "+learnt") {
			o.Sets = append(o.Sets, filepath.Join(dir, name))
		}
	}
	slices.Sort(o.Sets)
	o.Sets = append(o.Sets, strings.Fields(os.Getenv("CAIRN_TOOLSETS"))...)
	r, err := Fit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", r)
	if r.All.AUC < .75 || r.All.ECE > .06 {
		t.Errorf("left out: %+v, want AUC .75 and calibration error .06", r.All)
	}
	if name := os.Getenv("CAIRN_FIT"); name != "" {
		if err := r.Write(name); err != nil {
			t.Fatal(err)
		}
	}
}

// writeIntents writes the intents of a file of testdata as questions with tools of their own, and
// returns the folder.
func writeIntents(t *testing.T, name string) string {
	t.Helper()
	list := everydayCatalogues(t, name+".json")
	for i := range list {
		list[i].tools = serverTools(t, os.Getenv("CAIRN_DATA"), list[i].Servers)
	}
	return writeCatalogues(t, name, list)
}

func writeCatalogues(t *testing.T, name string, list []everydayCatalogue) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := json.NewEncoder(f)
	for _, c := range list {
		for _, e := range c.Intents {
			err := out.Encode(map[string]any{"id": e.ID, "kind": c.Name, "intent": e.Intent, "tools": c.tools, "calls": e.Calls, "edges": append([][2]int{}, e.Edges...)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestLogistic fits plans whose probability is known.
func TestLogistic(t *testing.T) {
	var rows []fitRow
	for group := range 3 {
		for i := range 200 {
			f := make([]float64, len(suggest.Features))
			f[0], f[1], f[4], f[5] = 1, float64(i%10)/10, float64(i%2), 1
			rows = append(rows, planRow(group, "", f, i%10 >= i/10%10 && i%2 == 0))
		}
	}
	w := fitConfidence(rows, 2)
	if w[1] <= 0 || w[4] != 0 || math.IsNaN(w[5]) {
		t.Errorf("weights %.3f, want a positive one of the first feature and none of evidence that speaks against a plan", w)
	}
}

// TestFitChoice fits choices whose weights are known, and reports the share of the right ones.
func TestFitChoice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var rows []fitRow
	for i := range 3000 {
		r := fitRow{group: i % 3}
		best, at := math.Inf(-1), 0
		for c := range 8 {
			f := make([]float64, len(suggest.ChoiceFeatures))
			f[0], f[1], f[10] = random.Float64(), random.Float64(), float64(random.IntN(2))
			if s := 15*f[0] + 5*f[1] - 10*f[10] - math.Log(-math.Log(random.Float64())); s > best {
				best, at = s, c
			}
			r.features, r.right = append(r.features, f), append(r.right, false)
		}
		r.right[at] = true
		rows = append(rows, r)
	}
	w := fitChoice(rows, 2)
	// The penalty makes all weights smaller, and keeps their ratios.
	if math.Abs(w[0]-15) > 2 || math.Abs(w[0]/w[1]-3) > .2 || math.Abs(w[10]/w[1]+2) > .2 {
		t.Errorf("weights %.3f, want 15, 5 and −10", w)
	}
	if n, right := rightParts(rows, 2, w); n != 1000 || right < .7 {
		t.Errorf("%d parts, %.2f right, want most of 1000 of the group left out", n, right)
	}
}
