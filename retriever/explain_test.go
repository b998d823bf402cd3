package retriever

import (
	"log/slog"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"cairn/internal/text/secret"
	"cairn/models"
)

// TestExplainAddsUp: with every field of Options set, the parts of every score add up to it,
// and each part counts in some score. A new field needs a value in allOptions if it is
// neither a number nor a flag.
func TestExplainAddsUp(t *testing.T) {
	files := numbered(40)
	files["d/heap.go"] = "package d\n\n// Needle returns number 7 of the heap.\nfunc Needle() int {\n\treturn 7\n}\n"
	o := allOptions(t)
	f := open(t, files, o, "d/03.md", "d/04.md")
	counted := map[string]bool{}
	for _, mode := range []Mode{Hybrid, Keyword, Semantic} {
		a := f.search(Query{Text: "needle number 7", Mode: mode, Limit: 50, Explain: true})
		if len(a.Results) < 30 {
			t.Fatalf("%s: %d results", mode, len(a.Results))
		}
		for _, r := range a.Results {
			sum := 0.0
			for _, p := range r.Explain.Parts() {
				sum += p.Weight * p.Value
				counted[p.Name] = counted[p.Name] || p.Weight*p.Value != 0
			}
			if math.Abs(sum-r.Score) > 1e-9 || r.Explain.Score != r.Score {
				t.Errorf("%s: the parts of %s add up to %g, its score is %g: %+v", mode, r.Path, sum, r.Score, r.Explain)
			}
			if r.Explain.Graph != o.ReweighLimit {
				t.Errorf("bonus is %g, want it cut to %g", r.Explain.Graph, o.ReweighLimit)
			}
		}
	}
	every := everySignal()
	for _, p := range every.Parts() {
		if !counted[p.Name] {
			t.Errorf("no score has the part %q: add a document that has the signal", p.Name)
		}
	}
}

// everySignal returns an Explanation whose numbers are all .5.
func everySignal() Explanation {
	e := Explanation{Logit: new(.5)}
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanFloat() && v.Type().Field(i).IsExported() {
			v.Field(i).SetFloat(.5)
		}
	}
	return e
}

// allOptions returns Options without a zero field.
func allOptions(t *testing.T) *Options {
	o := &Options{
		RerankBudget: time.Minute, Extensions: []string{".md", ".go"}, Contexts: map[string]string{"d": "A heap."},
		Reweigher: bonus(.9), Log: slog.New(slog.DiscardHandler),
		Reranker: func() (models.Reranker, error) { return &wordReranker{word: "heap"}, nil },
	}
	o.Masks, _ = secret.New()
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case !field.IsZero():
		case field.CanFloat():
			field.SetFloat(.5)
		case field.CanInt():
			field.SetInt(1000)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		default:
			t.Fatalf("allOptions has no value for the field %s", v.Type().Field(i).Name)
		}
	}
	return o
}

// TestSignalsAreParts: every number of an Explanation changes the sum of the parts, except
// for those from which another number follows.
func TestSignalsAreParts(t *testing.T) {
	follows := []string{"BM25", "ChunkKeyword", "BestKeyword", "Cosine", "ChunkVector", "BestVector", "Score"}
	e := everySignal()
	v := reflect.ValueOf(&e).Elem()
	before := e.Recompute()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).CanFloat() && v.Field(i).CanSet() {
			v.Field(i).SetFloat(.75)
			if changed := e.Recompute() != before; changed == slices.Contains(follows, name) {
				t.Errorf("a change of %s changes the score: %v; every number is in a call of visit in Explanation.each, or in the list of this test", name, changed)
			}
			v.Field(i).SetFloat(.5)
		}
	}
}
