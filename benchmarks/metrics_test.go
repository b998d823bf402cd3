package benchmarks

import (
	"math"
	"testing"
)

// TestMetricsByHand compares with values computed by hand. With discounts
// 1, 1/log2(3) = .63093, .5, 1/log2(5) = .43068:
func TestMetricsByHand(t *testing.T) {
	graded := Relevance{"a": 3, "b": 2, "c": 1, "z": 0, "neg": -1}
	for _, c := range []struct {
		name    string
		ranking []string
		rel     Relevance
		want    map[string]float64
	}{
		{"ideal", []string{"a", "b", "c"}, graded, map[string]float64{"ndcg@10": 1, "mrr": 1, "map": 1, "recall@3": 1, "hit@1": 1}},
		{"reversed", []string{"c", "b", "a"}, graded,
			// (1 + 2·.63093 + 3·.5) / (3 + 2·.63093 + .5) = 3.76186 / 4.76186
			map[string]float64{"ndcg@10": .7899980, "mrr": 1, "map": 1, "recall@3": 1, "hit@1": 1}},
		{"with what is not relevant", []string{"x", "b", "z", "a"}, graded,
			// (2·.63093 + 3·.43068) / 4.76186; precision 1/2 and 2/4, over three
			map[string]float64{"ndcg@10": .5363218, "mrr": .5, "map": (.5 + .5) / 3, "recall@3": 1. / 3, "recall@5": 2. / 3, "hit@1": 0, "hit@5": 1}},
		{"nothing found", []string{"x", "y"}, graded, map[string]float64{"ndcg@10": 0, "mrr": 0, "map": 0, "recall@100": 0, "hit@5": 0}},
		{"nothing relevant", []string{"z"}, Relevance{"z": 0}, map[string]float64{"ndcg@10": 0, "mrr": 0, "map": 0, "recall@100": 0, "hit@1": 0}},
		{"empty", nil, graded, map[string]float64{"ndcg@10": 0, "mrr": 0, "map": 0}},
		{"eleventh", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "a"}, Relevance{"a": 1},
			map[string]float64{"ndcg@10": 0, "mrr": 1. / 11, "mrr@10": 0, "map": 1. / 11, "recall@10": 0, "recall@100": 1, "hit@5": 0}},
		{"a negative grade gains nothing", []string{"neg", "a"}, Relevance{"neg": -1, "a": 1}, map[string]float64{"ndcg@10": 1 / math.Log2(3), "mrr": .5}},
	} {
		m := measureRanking(c.ranking, c.rel)
		got := map[string]float64{
			"ndcg@10": m.NDCG10, "mrr": m.MRR, "mrr@10": m.MRR10, "map": m.MAP, "recall@3": m.Recall3, "recall@5": m.Recall5,
			"recall@10": m.Recall10, "recall@100": m.Recall100, "hit@1": m.Hit1, "hit@5": m.Hit5,
		}
		for name, want := range c.want {
			if math.Abs(got[name]-want) > 1e-6 {
				t.Errorf("%s: %s is %.7f, want %.7f", c.name, name, got[name], want)
			}
		}
	}
}

// TestIdealCountsWhatWasNotFound: more relevant documents than places.
func TestIdealCountsWhatWasNotFound(t *testing.T) {
	rel := Relevance{}
	for _, id := range []string{"a", "b", "c"} {
		rel[id] = 1
	}
	// 1 / (1 + .63093) within two places.
	if got, want := ndcg([]string{"a", "x"}, rel, 2), 1/(1+1/math.Log2(3)); math.Abs(got-want) > 1e-12 {
		t.Errorf("NDCG is %g, want %g", got, want)
	}
}

func TestMean(t *testing.T) {
	got := meanMetrics([]Metrics{{NDCG10: 1, Hit5: 1}, {NDCG10: .5}, {}, {MAP: 1}})
	if want := (Metrics{NDCG10: .375, Hit5: .25, MAP: .25}); got != want {
		t.Errorf("mean is %+v, want %+v", got, want)
	}
	if got := meanMetrics(nil); got != (Metrics{}) {
		t.Errorf("mean of nothing is %+v", got)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for _, c := range []struct{ p, want float64 }{{1, 1}, {20, 1}, {50, 3}, {80, 4}, {95, 5}, {100, 5}} {
		if got := Percentile(values, c.p); got != c.want {
			t.Errorf("percentile %g is %g, want %g", c.p, got, c.want)
		}
	}
	if got := Percentile(nil, 50); got != 0 {
		t.Errorf("percentile of nothing is %g", got)
	}
}
