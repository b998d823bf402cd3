package benchmarks

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// fitTasks bounds the tasks of a set in the fit, and ridge is the weight of the sum of the squared
// weights, of features scaled to deviation 1.
const (
	fitTasks = 60
	ridge    = 1e-3
)

// fitRow is one plan of the fit. Group is left out as a whole.
type fitRow struct {
	group, catalogue string
	features         []float64 // 1, and what the confidence depends on
	confidence       float64
	right            bool
}

// TestFitConfidence fits the confidence of package suggest to all sets but one, for each set, and
// reports how well that orders and states the plans of the set left out, next to the confidence in
// use. It reads the sets of CAIRN_DATA, the folders that CAIRN_TOOLSETS lists and the development
// intents, but not testdata/everyday.json. It takes minutes.
func TestFitConfidence(t *testing.T) {
	rows := fitRows(t)
	var used, fitted leftOut
	done := map[string]bool{}
	for _, r := range rows {
		if done[r.group] {
			continue
		}
		done[r.group] = true
		weights := fitConfidence(rows, r.group)
		now, then := used.add(rows, r.group, func(o fitRow) float64 { return o.confidence }), fitted.add(rows, r.group, func(o fitRow) float64 { return 1 / (1 + math.Exp(-inner(weights, o.features))) })
		t.Logf("%-16s AUC and calibration error in use %.3f, fitted without it %.3f", r.group, now, then)
	}
	t.Logf("all: in use AUC %.3f, error %.3f; left out %.3f, %.3f; weights %.3f", used.ordered/used.pairs, calibrate(used.all).ECE,
		fitted.ordered/fitted.pairs, calibrate(fitted.all).ECE, fitConfidence(rows, ""))
}

// leftOut sums the groups: their plans, and their pairs by the square root of the number.
type leftOut struct {
	all            []judgement
	pairs, ordered float64
}

// add adds a group with the confidence that of returns, and returns its AUC within a catalogue and
// its calibration error.
func (l *leftOut) add(rows []fitRow, group string, of func(fitRow) float64) [2]float64 {
	by := map[string][]judgement{}
	var own []judgement
	for _, r := range rows {
		if r.group == group {
			j := judgement{of(r), r.right}
			own, by[r.catalogue] = append(own, j), append(by[r.catalogue], j)
		}
	}
	var pairs, ordered float64
	for _, list := range by {
		n, k := concordant(list)
		pairs, ordered = pairs+n, ordered+k
	}
	auc := ordered / max(1, pairs)
	l.all, l.pairs, l.ordered = append(l.all, own...), l.pairs+math.Sqrt(pairs), l.ordered+math.Sqrt(pairs)*auc
	return [2]float64{auc, calibrate(own).ECE}
}

// fitRows plans tasks of every set, with nothing learnt and after four fifths were learnt. Sets
// of one origin are one group.
func fitRows(t *testing.T) (rows []fitRow) {
	dir := toolSets(t)
	embedder, cache := toolModel(t)
	p := &planRun{t: t, options: &ToolsOptions{Embedder: embedder, Cache: cache, Progress: func(string, int, int) {}}, sums: map[string]*planSums{}, refused: map[string]int{}, tasks: fitTasks}
	group := ""
	p.each = func(name string, task *toolTask, _ *toolsearch.Index, plan *suggest.Suggestion) {
		if len(plan.Tasks) == 0 {
			return
		}
		var sums planSums
		sums.add(plan, task, func(string) bool { return true })
		c := &plan.Parts
		r := fitRow{group, name, []float64{1, c.Weakest, c.Lead, c.Covered, c.Evidence, float64(min(5, c.Missing))}, c.Value, sums.exact > 0 && len(task.calls) > 0}
		if group == "" {
			r.group, _, _ = strings.Cut(name, " ")
			for _, suffix := range []string{"+learnt", "-single", "-multi"} {
				r.group = strings.TrimSuffix(r.group, suffix)
			}
		}
		rows = append(rows, r)
	}
	p.all(dir)
	group = "everyday-dev"
	for _, c := range everydayCatalogues(t, "everyday-dev.json") {
		b := p.open(serverTools(t, os.Getenv("CAIRN_DATA"), c.Servers))
		for i := range c.Intents {
			p.plan(c.Name, c.Intents[i].task(), b.index)
		}
		b.close()
	}
	return rows
}

// fitConfidence fits the probability that a plan is right to the groups but one, each by the
// square root of its size. Evidence does not lower it and missing inputs do not raise it: a
// weight of the other sign becomes 0.
func fitConfidence(all []fitRow, without string) []float64 {
	size := map[string]float64{}
	for _, r := range all {
		size[r.group]++
	}
	var rows [][]float64
	var right []bool
	var weights []float64
	for _, r := range all {
		if r.group != without {
			rows, right, weights = append(rows, slices.Clone(r.features)), append(right, r.right), append(weights, 1/math.Sqrt(size[r.group]))
		}
	}
	for {
		w := logistic(rows, right, weights)
		wrong := -1
		if w[4] < 0 {
			wrong = 4
		} else if w[5] > 0 {
			wrong = 5
		}
		if wrong < 0 {
			return w
		}
		for i := range rows {
			rows[i][wrong] = 0
		}
	}
}

// logistic fits the probability that a row is right.
func logistic(rows [][]float64, right []bool, weights []float64) []float64 {
	var total float64
	for _, w := range weights {
		total += w
	}
	return ascend(deviations(rows), func(w []float64, gradient []float64, curvature [][]float64) {
		for i, r := range rows {
			q := 1 / (1 + math.Exp(-inner(w, r)))
			g := -q
			if right[i] {
				g++
			}
			for k := range r {
				gradient[k] += weights[i] / total * g * r[k]
				for l := range r {
					curvature[k][l] += weights[i] / total * q * (1 - q) * r[k] * r[l]
				}
			}
		}
	})
}

// ascend maximises a concave likelihood less ridge by Newton's method. Scale holds the
// deviations of the features; one of 0 is the bias, which ridge leaves alone.
func ascend(scale []float64, likelihood func(w, gradient []float64, curvature [][]float64)) []float64 {
	n := len(scale)
	w := make([]float64, n)
	for range 30 {
		gradient, curvature := make([]float64, n), make([][]float64, n)
		for k := range curvature {
			curvature[k] = make([]float64, n)
		}
		likelihood(w, gradient, curvature)
		for k, s := range scale {
			gradient[k] -= 2 * ridge * s * s * w[k]
			curvature[k][k] += 2*ridge*s*s + 1e-9
		}
		for k, d := range solve(curvature, gradient) {
			w[k] += d
		}
	}
	return w
}

// solve solves a system with a positive definite matrix, which it changes.
func solve(a [][]float64, b []float64) []float64 {
	x := slices.Clone(b)
	for k := range a {
		for i := range a {
			if i == k {
				continue
			}
			f := a[i][k] / a[k][k]
			for l := range a[i] {
				a[i][l] -= f * a[k][l]
			}
			x[i] -= f * x[k]
		}
	}
	for k := range x {
		x[k] /= a[k][k]
	}
	return x
}

// deviations returns the standard deviation of each feature.
func deviations(rows [][]float64) []float64 {
	n := len(rows[0])
	mean, square := make([]float64, n), make([]float64, n)
	for _, r := range rows {
		for k, v := range r {
			mean[k] += v / float64(len(rows))
			square[k] += v * v / float64(len(rows))
		}
	}
	for k := range square {
		square[k] = math.Sqrt(max(0, square[k]-mean[k]*mean[k]))
	}
	return square
}

func inner(w, f []float64) (sum float64) {
	for i := range f {
		sum += w[i] * f[i]
	}
	return sum
}
