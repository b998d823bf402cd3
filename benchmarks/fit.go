package benchmarks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/models"
)

// fitTasks bounds the tasks of a set, or of a kind of its questions, in the fit. Ridge is the weight
// of the sum of the squared weights, of features scaled to deviation 1, choiceRidge that of half
// the squared weights of the choice.
const (
	fitTasks    = 60
	ridge       = 1e-3
	choiceRidge = 1e-2
)

// FitOptions configures Fit. Sets and Embedder are required.
type FitOptions struct {
	// Sets lists folders with tasks.jsonl, and with tools.jsonl unless each task has tools of
	// its own.
	Sets     []string
	Embedder models.Embedder
	// Reader opens the model that reads requests; nil means none.
	Reader func() (models.Reader, error)
	Cache  string // as in ToolsOptions
	// Progress, if not nil, receives the number of sets that are planned.
	Progress func(job.Progress)
}

// FitReport holds fitted weights with their origin. Its JSON is weights.json of package suggest.
type FitReport struct {
	// Choice and Weights hold the weights of suggest.ChoiceFeatures and of suggest.Features.
	Choice  map[string]float64 `json:"choice"`
	Weights map[string]float64 `json:"weights"`
	// Sharpness is the factor by which the fit of the choice had larger weights.
	Sharpness float64 `json:"sharpness"`
	Date      string  `json:"date"`
	Model     string  `json:"model"`
	Plans     int     `json:"plans"`
	Tasks     int     `json:"tasks_of_a_set"`
	Ridge     float64 `json:"ridge"`
	// Sets holds the figures of each set with weights that were fitted without it.
	Sets []FitSet `json:"left_out"`
	// All has the mean AUC by the square root of the pairs, and the calibration error of all
	// plans, each by the weights without its set.
	All FitSet `json:"all_left_out"`
}

// FitSet is how well the weights choose the tools of a set, and its confidence states and orders
// the plans.
type FitSet struct {
	Set   string  `json:"set"`
	Parts int     `json:"parts"` // of intents with as many parts as tools
	Right float64 `json:"right"` // share of them for which the right tool has the best score
	Plans int     `json:"plans"`
	AUC   float64 `json:"auc"` // within a catalogue
	ECE   float64 `json:"calibration_error"`
}

func (r *FitReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %6s %6s %6s %6s %12s\n", "left out", "parts", "right", "plans", "AUC", "calibration")
	for _, s := range append(slices.Clone(r.Sets), r.All) {
		fmt.Fprintf(&b, "%-24s %6d %6.3f %6d %6.3f %12.3f\n", s.Set, s.Parts, s.Right, s.Plans, s.AUC, s.ECE)
	}
	for _, f := range suggest.ChoiceFeatures {
		fmt.Fprintf(&b, "%-24s %+.3f\n", f, r.Choice[f])
	}
	for _, f := range suggest.Features {
		fmt.Fprintf(&b, "%-24s %+.3f\n", f, r.Weights[f])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Write writes the report to a file as JSON.
func (r *FitReport) Write(name string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

// fitRow is a choice of the fit: among the candidates for a part of an intent, or between a plan,
// which is the first, and none. Its group is left out as a whole.
type fitRow struct {
	group     int
	catalogue string      // of a plan
	features  [][]float64 // of each candidate
	right     []bool
}

// fitRows holds what the tasks of sets give to the fit.
type fitRows struct{ plans, choices []fitRow }

// Fit fits the choice of a tool for each part of an intent to the tasks of sets, a multinomial
// logistic regression on suggest.ChoiceFeatures, and the confidence of plans, a logistic one on
// suggest.Features. The plans are those of the choice in use: run Fit again with a new one. It
// validates the fit by leaving each set out as a whole, together with those that have the same
// tools.
func Fit(ctx context.Context, o FitOptions) (*FitReport, error) {
	r := &FitReport{Date: time.Now().UTC().Format(time.DateOnly), Model: o.Embedder.Description().ID, Tasks: fitTasks, Ridge: ridge}
	var all fitRows
	var names []string
	groups := map[string]int{} // by tools
	for n, dir := range o.Sets {
		show(o.Progress, "sets", n, len(o.Sets))
		tools, err := os.ReadFile(filepath.Join(dir, "tools.jsonl"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the set: %w", err)
		}
		key, name := cmp.Or(string(tools), "\x00"+filepath.Clean(dir)), filepath.Base(filepath.Clean(dir))
		g, known := groups[key]
		if known {
			names[g] += ", " + name
		} else {
			g, names = len(names), append(names, name)
			groups[key] = g
		}
		before := len(all.plans)
		if err := all.plan(ctx, dir, g, len(tools) > 0, &o); err != nil {
			return nil, fmt.Errorf("planning the tasks of %s: %w", dir, err)
		}
		if len(all.plans) == before {
			return nil, fmt.Errorf("no task of %s has a plan", dir)
		}
	}
	if len(names) < 2 {
		return nil, errors.New("a fit needs sets of different tools: each is left out once")
	}
	var left fitSums
	var right float64
	for g, name := range names {
		s := left.add(all.plans, g, fitConfidence(all.plans, g))
		s.Set = name
		s.Parts, s.Right = rightParts(all.choices, g, fitChoice(all.choices, g))
		right += s.Right * float64(s.Parts)
		r.Sets = append(r.Sets, s)
	}
	parts := len(all.choices)
	r.Plans, r.All = len(all.plans), FitSet{"all", parts, right / float64(max(1, parts)), len(all.plans), left.ordered / max(1, left.pairs), calibrate(left.all).ECE}
	r.Choice, r.Weights = map[string]float64{}, map[string]float64{}
	choice := fitChoice(all.choices, -1)
	for _, w := range choice[:cosines] {
		r.Sharpness += w / 2
	}
	for i, w := range choice {
		r.Choice[suggest.ChoiceFeatures[i]] = w / r.Sharpness
	}
	for i, w := range fitConfidence(all.plans, -1) {
		r.Weights[suggest.Features[i]] = w
	}
	return r, nil
}

// plan plans tasks of a set, with nothing learnt. It omits plans without tools, and choices
// for intents with another number of parts than of tools.
func (rows *fitRows) plan(ctx context.Context, dir string, group int, shared bool, o *FitOptions) error {
	questions, err := fitQuestions(dir, shared)
	if err != nil {
		return err
	}
	options := &ToolsOptions{Embedder: o.Embedder, Reader: o.Reader, Cache: o.Cache}
	for i := 0; i < len(questions); {
		b, err := openToolBench(ctx, &toolSet{tools: questions[i].catalogue}, options)
		if err != nil {
			return err
		}
		for same := questions[i].tools; err == nil && i < len(questions) && bytes.Equal(questions[i].tools, same); i++ {
			err = rows.add(ctx, b.index, group, dir+" "+questions[i].kind, &questions[i].task)
		}
		b.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// fitQuestions reads the tasks of a set, those with the same tools one after the other. shared
// means that all have the tools of the set.
func fitQuestions(dir string, shared bool) ([]question, error) {
	if !shared {
		return someQuestions(dir, fitTasks, func(kind string) string { return kind })
	}
	set, err := readToolSet(dir)
	if err != nil {
		return nil, err
	}
	var list []question
	for _, task := range spread(set.tasks, fitTasks) {
		list = append(list, question{catalogue: set.tools, task: task})
	}
	return list, nil
}

// add adds the plan of a task and the choices for its parts.
func (rows *fitRows) add(ctx context.Context, x *toolsearch.Index, group int, catalogue string, task *toolTask) error {
	plan, err := suggest.Suggest(ctx, x, suggest.Request{Intent: task.intent})
	if err != nil {
		return fmt.Errorf("task %s: %w", task.id, err)
	}
	if len(plan.Tasks) > 0 {
		var sums planSums
		sums.add(plan, task, func(string) bool { return true })
		rows.plans = append(rows.plans, planRow(group, catalogue, plan.Parts.Features(), sums.exact > 0 && len(task.calls) > 0))
	}
	choices, err := suggest.Choices(ctx, x, task.intent)
	if err != nil || len(choices) != len(task.calls) {
		return err
	}
	for n, c := range choices {
		row := fitRow{group: group, features: c.Features}
		for _, id := range c.Tools {
			row.right = append(row.right, cmp.Or(task.stands[id], id) == task.calls[n])
		}
		if slices.Contains(row.right, true) {
			rows.choices = append(rows.choices, row)
		}
	}
	return nil
}

// planRow returns the row of a plan. None has no features, so that its score is 0.
func planRow(group int, catalogue string, features []float64, right bool) fitRow {
	return fitRow{group, catalogue, [][]float64{features, make([]float64, len(features))}, []bool{right, !right}}
}

// fitSums sums the groups: their plans, and their AUC by the square root of its pairs.
type fitSums struct {
	all            []judgement
	pairs, ordered float64
}

// add adds a group with the confidence by some weights, and returns its figures.
func (s *fitSums) add(rows []fitRow, group int, weights []float64) FitSet {
	by := map[string][]judgement{}
	var own []judgement
	for i := range rows {
		if r := &rows[i]; r.group == group {
			j := judgement{1 / (1 + math.Exp(-inner(weights, r.features[0]))), r.right[0]}
			own, by[r.catalogue] = append(own, j), append(by[r.catalogue], j)
		}
	}
	var pairs, ordered float64
	for _, list := range by {
		n, k := concordant(list)
		pairs, ordered = pairs+n, ordered+k
	}
	auc := ordered / max(1, pairs)
	s.all, s.pairs, s.ordered = append(s.all, own...), s.pairs+math.Sqrt(pairs), s.ordered+math.Sqrt(pairs)*auc
	return FitSet{Plans: len(own), AUC: auc, ECE: calibrate(own).ECE}
}

// concordant returns the pairs of a right and a wrong plan, and those in which the right one is
// surer; a tie counts half.
func concordant(list []judgement) (pairs, ordered float64) {
	for _, r := range list {
		for _, w := range list {
			if r.right && !w.right {
				pairs++
				if r.confidence > w.confidence {
					ordered++
				} else if r.confidence == w.confidence {
					ordered += .5
				}
			}
		}
	}
	return pairs, ordered
}

// fitConfidence fits the probability that a plan is right to the groups but one. Evidence does
// not lower it and missing inputs do not raise it: a weight of the other sign becomes 0. The
// penalty leaves the bias, whose deviation is 0, alone.
func fitConfidence(all []fitRow, without int) []float64 {
	rows, weights := others(all, without)
	var total float64
	for _, weight := range weights {
		total += weight
	}
	penalty := make([]float64, len(suggest.Features))
	for k := range penalty {
		var mean, square float64
		for i := range rows {
			v := rows[i].features[0][k]
			mean, square = mean+v/float64(len(rows)), square+v*v/float64(len(rows))
		}
		penalty[k] = 2*ridge*total*max(0, square-mean*mean) + 1e-9
	}
	sign := map[string]float64{"evidence": 1, "unmatched": -1}
	for {
		w := newton(rows, weights, penalty)
		wrong := slices.IndexFunc(suggest.Features, func(f string) bool { return sign[f]*w[slices.Index(suggest.Features, f)] < 0 })
		if wrong < 0 {
			return w
		}
		for i := range rows {
			f := slices.Clone(rows[i].features[0])
			f[wrong] = 0
			rows[i].features = [][]float64{f, rows[i].features[1]}
		}
	}
}

// cosines is the number of features whose weights Fit scales to a sum of 2.
const cosines = 6

// fitChoice fits the probability that a candidate is the right one for its part to the groups but
// one.
func fitChoice(all []fitRow, without int) []float64 {
	rows, weights := others(all, without)
	return newton(rows, weights, slices.Repeat([]float64{choiceRidge}, len(suggest.ChoiceFeatures)))
}

// others returns the rows of the groups but one with their weights. A group weighs the square
// root of its size.
func others(all []fitRow, without int) (rows []fitRow, weights []float64) {
	size := map[int]float64{}
	for i := range all {
		size[all[i].group]++
	}
	for _, r := range all {
		if r.group != without {
			rows, weights = append(rows, r), append(weights, 1/math.Sqrt(size[r.group]))
		}
	}
	return rows, weights
}

// newton fits the probability that a candidate is the right one of its row, by Newton's method
// with half the step where that makes the fit worse. Half of each squared weight times its
// penalty counts against the fit.
func newton(rows []fitRow, weights, penalty []float64) []float64 {
	n := len(penalty)
	w, before, reached := make([]float64, n), make([]float64, n), math.Inf(-1)
	for range 60 {
		likelihood, gradient, curvature := 0.0, make([]float64, n), make([][]float64, n)
		for k := range curvature {
			curvature[k] = make([]float64, n)
			likelihood -= penalty[k] / 2 * w[k] * w[k]
			gradient[k], curvature[k][k] = -penalty[k]*w[k], penalty[k]
		}
		for i := range rows {
			likelihood += rows[i].climb(w, weights[i], gradient, curvature)
		}
		if likelihood < reached {
			for k := range w {
				w[k] = (w[k] + before[k]) / 2
			}
			continue
		}
		if likelihood-reached < 1e-9 {
			break
		}
		reached = likelihood
		copy(before, w)
		for k, d := range solve(curvature, gradient) {
			w[k] += d
		}
	}
	return w
}

// climb returns the logarithm of the probability of the right candidates times weight, and adds its
// gradient and the curvature of all candidates.
func (r *fitRow) climb(w []float64, weight float64, gradient []float64, curvature [][]float64) float64 {
	p, top := make([]float64, len(r.features)), math.Inf(-1)
	for i, f := range r.features {
		p[i] = inner(w, f)
		top = max(top, p[i])
	}
	var all, right float64
	for i := range p {
		p[i] = math.Exp(p[i] - top)
		all += p[i]
		if r.right[i] {
			right += p[i]
		}
	}
	mean := make([]float64, len(w))
	for i, f := range r.features {
		for k := range f {
			mean[k] += p[i] / all * f[k]
			if r.right[i] {
				gradient[k] += weight * p[i] / right * f[k]
			}
		}
	}
	for i, f := range r.features {
		for k := range f {
			for l := range f {
				curvature[k][l] += weight * p[i] / all * (f[k] - mean[k]) * (f[l] - mean[l])
			}
		}
	}
	for k := range mean {
		gradient[k] -= weight * mean[k]
	}
	return weight * math.Log(max(right, 1e-300)/all)
}

// rightParts returns the parts of a group, and the share whose best candidate is right.
func rightParts(all []fitRow, group int, w []float64) (parts int, right float64) {
	for i := range all {
		if all[i].group != group {
			continue
		}
		parts++
		best := 0
		for c, f := range all[i].features {
			if inner(w, f) > inner(w, all[i].features[best]) {
				best = c
			}
		}
		if all[i].right[best] {
			right++
		}
	}
	return parts, right / float64(max(1, parts))
}

// solve solves a system with a positive definite matrix, which it changes, as b.
func solve(a [][]float64, b []float64) []float64 {
	for k := range a {
		for i := range a {
			if i == k {
				continue
			}
			f := a[i][k] / a[k][k]
			for l := range a[i] {
				a[i][l] -= f * a[k][l]
			}
			b[i] -= f * b[k]
		}
	}
	for k := range b {
		b[k] /= a[k][k]
	}
	return b
}

func inner(w, f []float64) (sum float64) {
	for i := range f {
		sum += w[i] * f[i]
	}
	return sum
}
