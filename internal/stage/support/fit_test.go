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
			// A changed number, negation or name leaves the other sentences supported.
			if (p.Kind == "number changed" || p.Kind == "negated" || p.Kind == "name changed") && len(c) > 1 {
				continue
			}
			f, _ := one.features(doc)
			rows, counts = append(rows, f.list()), append(counts, 1/float64(len(c)))
			label := 0.0
			if p.Kind == "supported" {
				label = 5 // as many as of the other kinds together
			}
			labels = append(labels, label)
		}
	}
	w := logistic(rows, labels, counts)
	t.Logf("%d rows: bias, cosine, near, all, number, numberNear, name, negated, parity: %.2f", len(rows), w)
}

// logistic fits a logistic regression with a small ridge by Newton's method.
func logistic(rows [][9]float64, labels, counts []float64) (w [9]float64) {
	const n = 9
	for range 30 {
		var m [n][n + 1]float64 // the Hessian and the gradient
		for j := range n {
			m[j][j], m[j][n] = .5, -.5*w[j]
		}
		for i, x := range rows {
			z := 0.0
			for j := range x {
				z += w[j] * x[j]
			}
			p, y, weight := 1/(1+math.Exp(-z)), min(labels[i], 1), counts[i]*max(labels[i], 1)
			for j := range x {
				m[j][n] += weight * (y - p) * x[j]
				for k := range x {
					m[j][k] += weight * p * (1 - p) * x[j] * x[k]
				}
			}
		}
		for i := range n { // Gauss and Jordan
			for j := n; j >= i; j-- {
				m[i][j] /= m[i][i]
			}
			for r := range n {
				if r == i {
					continue
				}
				for j := n; j >= i; j-- {
					m[r][j] -= m[r][i] * m[i][j]
				}
			}
		}
		for j := range n {
			w[j] += m[j][n]
		}
	}
	return w
}
