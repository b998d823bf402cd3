package support

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"cairn/models/minilm"
)

// TestFit fits the weights to the pairs in the file that CAIRN_PAIRS names, which
// TestSupportQuality of benchmarks writes, and prints them.
func TestFit(t *testing.T) {
	name := os.Getenv("CAIRN_PAIRS")
	if name == "" {
		t.Skip("CAIRN_PAIRS names no file")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []struct {
		Kind, Question, Answer string
		Sources                []Source
	}
	if err := json.Unmarshal(text, &pairs); err != nil {
		t.Fatal(err)
	}
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var rows [][9]float64
	var labels, counts []float64
	for _, p := range pairs {
		c, doc, err := compare(t.Context(), e, p.Question, p.Answer, p.Sources)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range c {
			// A changed number or negation leaves the other sentences supported.
			if (p.Kind == "number changed" || p.Kind == "negated") && len(c) > 1 {
				continue
			}
			f, _ := one.features(doc)
			rows, counts = append(rows, f.list()), append(counts, 1/float64(len(c)))
			label := 0.0
			if p.Kind == "supported" {
				label = 4 // as many as of the other kinds together
			}
			labels = append(labels, label)
		}
	}
	var w [9]float64
	for range 20000 {
		var gradient [9]float64
		total := 0.0
		for i, x := range rows {
			z := 0.0
			for j := range x {
				z += w[j] * x[j]
			}
			p, y, weight := 1/(1+math.Exp(-z)), min(labels[i], 1), counts[i]*max(labels[i], 1)
			total += weight
			for j := range x {
				gradient[j] += weight * (y - p) * x[j]
			}
		}
		for j := range w {
			w[j] += 2 * (gradient[j]/total - .0005*w[j])
		}
	}
	t.Logf("%d rows: bias, cosine, near, all, number, numberNear, name, negated, parity: %.2f", len(rows), w)
}
