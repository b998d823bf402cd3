package benchmarks

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
)

// TestRunFiles: a run that is written and read again gives the same figures, with ids that
// trec_eval would divide and scores that it would take for equal.
func TestRunFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.run")
	r := &Run{System: "hybrid words", Fingerprint: Fingerprint{Set: "tiny/test", Data: "d"}, Queries: []RunQuery{
		{ID: "what is it", Text: "what is <it>", Relevant: Relevance{"a 100%": 1, "b": 2}, Ranking: []Scored{{"c", .5}, {"a 100%", .5}, {"b", .5 - 1e-12}}},
		{ID: "none", Text: "none", Relevant: Relevance{"b": 1}},
	}}
	if err := r.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRun(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Queries[0].ids(), []string{"c", "a 100%", "b"}) || got.Queries[1].Text != "none" {
		t.Errorf("%+v, want the ranking as it was", got.Queries)
	}
	if d := cmp.Diff(r.Metrics(), got.Metrics()); d != "" || got.System != "hybrid words" || got.Fingerprint != r.Fingerprint {
		t.Errorf("%+v, want the figures and the fingerprint of the run written: %s", got, d)
	}
	text, err := os.ReadFile(file)
	if want := "what%20is%20it Q0 c 1 0.5 hybrid_words\nwhat%20is%20it Q0 a%20100%25 2 0.49999997 hybrid_words\n"; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%s, %v, want first %s", text, err, want)
	}
}

// TestRunWithOtherJudgements: the best relevant document is that of the judgements that
// replace those of the run, and the parts of known scores stay.
func TestRunWithOtherJudgements(t *testing.T) {
	dir := t.TempDir()
	run, qrels := filepath.Join(dir, "run"), filepath.Join(dir, "qrels")
	first, best := &Evidence{ID: "a", Rank: 1, Score: 3, Vector: 2, Keyword: 1}, &Evidence{ID: "b", Rank: 2, Score: 2, Vector: 1, Keyword: 1}
	r := &Run{System: "hybrid", Queries: []RunQuery{{ID: "1", Relevant: Relevance{"b": 1}, Ranking: []Scored{{"a", 3}, {"b", 2}, {"c", 1}}, First: first, Best: best}}}
	if err := r.Write(run); err != nil {
		t.Fatal(err)
	}
	write(t, qrels, "1 0 c 1\n")
	for _, c := range []struct {
		qrels string
		want  *Evidence
	}{{"", best}, {qrels, &Evidence{ID: "c", Rank: 3, Score: 1}}} {
		got, err := ReadRun(run, c.qrels)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, got.Queries[0].Best); d != "" {
			t.Errorf("judgements %q: best (-want +got):\n%s", c.qrels, d)
		}
		if d := cmp.Diff(first, got.Queries[0].First); d != "" {
			t.Errorf("judgements %q: first (-want +got):\n%s", c.qrels, d)
		}
	}
}

// TestRunOfAnotherSystem reads a run and judgements that cairn did not write.
func TestRunOfAnotherSystem(t *testing.T) {
	dir := t.TempDir()
	run, qrels := filepath.Join(dir, "run"), filepath.Join(dir, "qrels")
	write(t, run, "1 Q0 a 9 1.5 bm25\n1\tQ0\tb 8 2 bm25\n1 Q0 c 7 2 bm25\n9 Q0 a 1 1 bm25\n")
	write(t, qrels, "1 0 b 1\n1 0 a 0\n2 0 a 1\n")
	r, err := ReadRun(run, qrels)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Metrics(); r.System != "bm25" || len(r.Queries) != 2 || m.MRR != .25 {
		t.Errorf("%s, %d queries, %+v: want b second of query 1, since c of the same score goes before it, and nothing for query 2", r.System, len(r.Queries), m)
	}
	for text, want := range map[string]string{
		"1 Q0 a 1\n":                         "run:1: 4 fields",
		"1 Q0 a 1 x bm25\n":                  "run:1: the score",
		"1 Q0 a 1 NaN bm25\n":                "run:1: the score",
		"1 Q0 a 1 2 s\n\n1 Q0 a 2 1 s\n":     `run:3: document "a" stands twice`,
		strings.Repeat("1 Q0 a 1 2 s\n", 20): "run:2:",
	} {
		write(t, run, text)
		if _, err := ReadRun(run, qrels); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want an error with %q", text, err, want)
		}
	}
	if _, err := ReadRun(run, ""); err == nil || !strings.Contains(err.Error(), "no judgements") {
		t.Errorf("a run without judgements gives %v", err)
	}
	write(t, qrels, "1 0 b 0\n")
	if _, err := ReadRun(run, qrels); err == nil || !strings.Contains(err.Error(), "no document relevant") {
		t.Errorf("judgements without a relevant document give %v", err)
	}
}

// TestDocsRuns: Docs makes a run of each mode, whose figures are those of the report, and a
// fingerprint that changes with the data.
func TestDocsRuns(t *testing.T) {
	dir := writeSet(t)
	docs := func() *DocsReport {
		report, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "test", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir(), Program: "p"})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	report := docs()
	if len(report.Runs) != 3 {
		t.Fatalf("%d runs, want 3", len(report.Runs))
	}
	run := report.Runs[2]
	if f := run.Fingerprint; run.System != "hybrid" || f.Set != "tiny/test" || f.Program != "p" || f.Model == "" || !strings.Contains(f.Configuration, "semantic_weight") {
		t.Errorf("%s, %+v", run.System, f)
	}
	if d := cmp.Diff(report.Modes["hybrid"].Metrics, run.Metrics()); d != "" {
		t.Error(d)
	}
	q := run.Queries[0]
	if q.Text != "onions recipe" || q.First == nil || q.Best == nil || q.Best.ID != "https://x.org/a#1" || q.Best.Rank != 1 {
		t.Errorf("%+v, want the evidence of the relevant document", q)
	}
	if sum := q.Best.Vector + q.Best.Keyword + q.Best.Graph; sum < q.Best.Score-1e-9 || sum > q.Best.Score+1e-9 {
		t.Errorf("%v does not add up", q.Best)
	}
	write(t, filepath.Join(dir, "qrels", "test.tsv"), "query-id\tcorpus-id\tscore\n1\tb\t1\n")
	if again := docs().Runs[2]; again.Fingerprint.Data == run.Fingerprint.Data {
		t.Error("other judgements have the same fingerprint")
	}
}

// TestTrecEval compares with the means that trec_eval -c gives (pytrec_eval-terrier 0.5.11)
// for a run with many equal scores, grades, and a query without an answer.
func TestTrecEval(t *testing.T) {
	r, err := ReadRun("testdata/trec/random.run", "")
	if err != nil {
		t.Fatal(err)
	}
	got := r.Metrics()
	for name, want := range map[string]float64{
		"ndcg@10":    0.3837,
		"mrr":        0.5208,
		"map":        0.2854,
		"recall@3":   0.1356,
		"recall@5":   0.167,
		"recall@10":  0.3025,
		"recall@100": 0.6091,
		"hit@1":      0.5,
		"hit@5":      0.5,
	} {
		if v := got.named(name); math.Abs(v-want) > .00005 {
			t.Errorf("%s is %.6f, trec_eval has %.4f", name, v, want)
		}
	}
}

func TestMetricNames(t *testing.T) {
	var m Metrics
	for i, f := range m.fields() {
		*f = float64(i + 1)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for i, name := range metricNames {
		if v := m.named(name); v != float64(i+1) || got[name] != v {
			t.Errorf("%s is %g, in JSON %g; want %d", name, v, got[name], i+1)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
