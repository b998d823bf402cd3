package benchmarks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Gate holds bounds for a run. Its file is JSON:
//
//	{
//	  "floors":   {"ndcg@10": 0.85, "hit@5": 0.95},
//	  "baseline": "handbook.run",
//	  "max_drop": {"ndcg@10": 0.01},
//	  "max_p95_ms": 50
//	}
type Gate struct {
	// Floors holds the minimum values of metrics.
	Floors map[string]float64 `json:"floors"`
	// Baseline is the file of an earlier run, relative to the file of the gate. MaxDrop
	// holds the largest allowed decreases of metrics from the baseline.
	Baseline string             `json:"baseline"`
	MaxDrop  map[string]float64 `json:"max_drop"`
	// Differ lists the parts of the baseline's fingerprint that may differ in addition to
	// the program and the machine: "configuration" and "model".
	Differ []string `json:"may_differ"`
	// MaxP95 bounds the 95th percentile of the latency in milliseconds; 0 means no bound.
	MaxP95 float64 `json:"max_p95_ms"`

	baseline *Run
}

// GateResult is the result of a gate, with a line for each bound.
type GateResult []GateLine

// GateLine is the result of one bound.
type GateLine struct {
	What string  `json:"what"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"` // at least; for a latency at most
	OK   bool    `json:"ok"`
}

// ReadGate reads a gate and its baseline.
func ReadGate(file string) (*Gate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &Gate{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(g); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	for _, bounds := range []map[string]float64{g.Floors, g.MaxDrop} {
		for name := range bounds {
			if !slices.Contains(metricNames, name) {
				return nil, fmt.Errorf("reading %s: %w", file, unknownMetric(name))
			}
		}
	}
	for _, part := range g.Differ {
		if part != "configuration" && part != "model" {
			return nil, fmt.Errorf("reading %s: may_differ has %q, want {configuration,model}", file, part)
		}
	}
	switch {
	case len(g.Floors) == 0 && len(g.MaxDrop) == 0 && g.MaxP95 == 0:
		return nil, fmt.Errorf("reading %s: it has no bound, want floors, max_drop or max_p95_ms", file)
	case g.Baseline != "":
		if !filepath.IsAbs(g.Baseline) {
			g.Baseline = filepath.Join(filepath.Dir(file), g.Baseline)
		}
		g.baseline, err = ReadRun(g.Baseline, "")
	}
	return g, err
}

// Against sets the baseline of a gate that has none.
func (g *Gate) Against(baseline *Run) {
	g.baseline = cmp.Or(g.baseline, baseline)
}

// Check compares a run with the bounds. It fails if the fingerprint of the baseline does not
// match.
func (g *Gate) Check(r *Run) (GateResult, error) {
	if len(g.MaxDrop) > 0 && g.baseline == nil {
		return nil, fmt.Errorf("max_drop needs a baseline")
	}
	got := r.Metrics()
	var result GateResult
	for _, name := range slices.Sorted(maps.Keys(g.Floors)) {
		v := got.named(name)
		result = append(result, GateLine{name, v, g.Floors[name], v >= g.Floors[name]})
	}
	if g.baseline != nil {
		was, is := g.baseline.Fingerprint, r.Fingerprint
		for _, part := range []struct{ name, was, is string }{{"data", was.Data, is.Data}, {"configuration", was.Configuration, is.Configuration}, {"model", was.Model, is.Model}} {
			if part.was != part.is && !slices.Contains(g.Differ, part.name) {
				return nil, fmt.Errorf("the baseline has another %s: %.80s, and this run %.80s; record the baseline again%s",
					part.name, part.was, part.is, map[bool]string{true: "", false: ", or name it in may_differ"}[part.name == "data"])
			}
		}
		before := g.baseline.Metrics()
		for _, name := range slices.Sorted(maps.Keys(g.MaxDrop)) {
			v, want := got.named(name), before.named(name)-g.MaxDrop[name]
			result = append(result, GateLine{name + " of the baseline", v, want, v >= want-1e-9})
		}
	}
	if g.MaxP95 > 0 {
		p95 := r.Latency().P95
		result = append(result, GateLine{"p95 ms", p95, g.MaxP95, p95 <= g.MaxP95})
	}
	return result, nil
}

// Failed reports whether the run exceeds a bound.
func (r GateResult) Failed() bool {
	return slices.ContainsFunc(r, func(l GateLine) bool { return !l.OK })
}

// String returns a line for each bound, each after a line break.
func (r GateResult) String() string {
	var b strings.Builder
	for _, l := range r {
		verdict, sign := "ok    ", ">="
		if !l.OK {
			verdict = "FAILED"
		}
		if l.What == "p95 ms" {
			sign = "<="
		}
		fmt.Fprintf(&b, "\n%s %s %.4f, wanted %s %.4f", verdict, l.What, l.Got, sign, l.Want)
	}
	return b.String()
}
