package benchmarks

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// madeRun is a run whose relevant document is at the given ranks, 0 for not found.
func madeRun(system string, ranks ...int) *Run {
	r := &Run{System: system, Fingerprint: Fingerprint{Set: "made", Data: "data", Model: "m", Configuration: "c"}}
	for i, rank := range ranks {
		q := RunQuery{ID: fmt.Sprint(i + 1), Text: fmt.Sprint("question ", i+1), Relevant: Relevance{"good": 1}}
		for n := 1; n <= 10; n++ {
			id := fmt.Sprint("bad", n)
			if n == rank {
				id = "good"
			}
			q.Ranking = append(q.Ranking, Scored{id, 1 / float64(n)})
		}
		q.First = &Evidence{ID: q.Ranking[0].ID, Rank: 1, Score: 1, Vector: .7, Keyword: .3}
		if rank > 0 {
			q.Best = &Evidence{ID: "good", Rank: rank, Score: 1 / float64(rank)}
		}
		r.Queries = append(r.Queries, q)
	}
	return r
}

// TestCompare: of four queries B gains three and loses one. The p-value of MRR is by hand:
// the differences are 1/2, 1/2, 1/2 and -1/2, so of the 16 ways to swap, the sum is at
// least 1 either way in 10.
func TestCompare(t *testing.T) {
	a, b := madeRun("a", 2, 2, 2, 1, 3), madeRun("b", 1, 1, 1, 2, 3)
	c, err := Compare(a, b, CompareOptions{Metric: "mrr", Seed: 1, Moved: 10})
	if err != nil {
		t.Fatal(err)
	}
	if c.Wins != 3 || c.Losses != 1 || c.Ties != 1 || len(c.Moved) != 4 {
		t.Errorf("wins %d, losses %d, ties %d, %d moved; want 3, 1, 1 and 4", c.Wins, c.Losses, c.Ties, len(c.Moved))
	}
	for _, m := range c.Metrics {
		if m.Name == "mrr" && (math.Abs(m.P-10./16) > .02 || math.Abs(m.B-m.A-.2) > 1e-9) {
			t.Errorf("%+v, want p %.3f and a difference of .2", m, 10./16)
		}
	}
	again, err := Compare(a, b, CompareOptions{Metric: "mrr", Seed: 1, Moved: 10})
	if err != nil || again.String() != c.String() {
		t.Errorf("%v: the same seed gives another result", err)
	}
	for _, want := range []string{"mrr: B wins 3, loses 1, ties 1", "+0.5000  1  question 1", "  A rank 2, good: 0.500", "    behind rank 1, bad1: 1.000 = 0.700 meaning + 0.300 words"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("%s\nlacks %s", c, want)
		}
	}
	b.Fingerprint.Data = "other"
	if _, err := Compare(a, b, CompareOptions{Metric: "mrr"}); err == nil || !strings.Contains(err.Error(), "different data") {
		t.Errorf("other data give %v", err)
	}
	b.Fingerprint.Data = ""
	b.Queries = b.Queries[1:]
	if _, err := Compare(a, b, CompareOptions{Metric: "mrr"}); err == nil {
		t.Error("runs of other queries are compared")
	}
	if _, err := Compare(a, a, CompareOptions{Metric: "luck"}); err == nil || !strings.Contains(err.Error(), "ndcg@10") {
		t.Errorf("an unknown metric gives %v", err)
	}
}

func TestGate(t *testing.T) {
	dir := t.TempDir()
	if err := madeRun("hybrid", 1, 1, 2, 2).Write(filepath.Join(dir, "base.run")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gate.json")
	check := func(gate string, r *Run) (GateResult, error) {
		t.Helper()
		write(t, file, gate)
		g, err := ReadGate(file)
		if err != nil {
			return nil, err
		}
		return g.Check(r)
	}
	for _, c := range []struct {
		gate   string
		failed bool
	}{
		{`{"floors":{"mrr":0.75}}`, false},
		{`{"floors":{"mrr":0.76}}`, true},
		{`{"baseline":"base.run","max_drop":{"mrr":0}}`, false},
		{`{"baseline":"base.run","max_drop":{"hit@1":-0.1}}`, true},
		{`{"max_p95_ms":1}`, false},
	} {
		if got, err := check(c.gate, madeRun("hybrid", 1, 1, 2, 2)); err != nil || got.Failed() != c.failed || len(got) != 1 {
			t.Errorf("%s: %v %v, want failed %v", c.gate, got, err, c.failed)
		}
	}
	other := madeRun("hybrid", 1, 1, 2, 2)
	other.Fingerprint.Model = "bge"
	const drop = `{"baseline":"base.run","max_drop":{"mrr":0}%s}`
	if _, err := check(fmt.Sprintf(drop, ""), other); err == nil || !strings.Contains(err.Error(), "another model: m, and this run bge") {
		t.Errorf("a baseline of another model: %v", err)
	}
	if _, err := check(fmt.Sprintf(drop, `,"may_differ":["model"]`), other); err != nil {
		t.Errorf("a model that may differ: %v", err)
	}
	other.Fingerprint.Data = "changed"
	if _, err := check(fmt.Sprintf(drop, `,"may_differ":["model"]`), other); err == nil || !strings.Contains(err.Error(), "another data") {
		t.Errorf("a baseline of other data: %v", err)
	}
	for gate, want := range map[string]string{
		`{"floors":{"ndcg":1}}`:   `unknown metric "ndcg"`,
		`{"floor":{}}`:            "unknown field",
		`{}`:                      "no bound",
		`{"max_drop":{"mrr":0}}`:  "needs a baseline",
		`{"may_differ":["data"]}`: "may_differ",
		`{"baseline":"none.run","max_drop":{"mrr":0}}`: "none.run",
	} {
		if _, err := check(gate, other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want an error with %q", gate, err, want)
		}
	}
}
