package benchmarks

import (
	"maps"
	"math"
	"slices"
)

// Relevance maps the IDs of documents to their grades in the relevance judgements of one
// query. Missing documents, and those with grades of 0 and below, are not relevant.
type Relevance map[string]int

// Metrics holds the figures of one query, or their means over many.
type Metrics struct {
	NDCG10    float64 `json:"ndcg@10"`
	MRR       float64 `json:"mrr"`
	MRR10     float64 `json:"mrr@10"`
	MAP       float64 `json:"map"`
	Recall3   float64 `json:"recall@3"`
	Recall5   float64 `json:"recall@5"`
	Recall10  float64 `json:"recall@10"`
	Recall100 float64 `json:"recall@100"`
	Hit1      float64 `json:"hit@1"`
	Hit5      float64 `json:"hit@5"`
}

// measureRanking returns the figures of one ranking, best document first and each document
// at most once. It ignores documents after rank 100.
func measureRanking(ranking []string, rel Relevance) Metrics {
	ranking = ranking[:min(100, len(ranking))]
	return Metrics{
		NDCG10: ndcg(ranking, rel, 10), MRR: reciprocalRank(ranking, rel, len(ranking)), MRR10: reciprocalRank(ranking, rel, 10),
		MAP: averagePrecisionAt(ranking, rel, math.MaxInt), Recall3: recall(ranking, rel, 3), Recall5: recall(ranking, rel, 5),
		Recall10: recall(ranking, rel, 10), Recall100: recall(ranking, rel, 100), Hit1: hit(ranking, rel, 1), Hit5: hit(ranking, rel, 5),
	}
}

// meanMetrics returns the mean of each figure; zeros for no queries.
func meanMetrics(of []Metrics) Metrics { return meanOf(of, (*Metrics).fields) }

// meanOf returns the mean of each of the fields; zeros for none.
func meanOf[M any](of []M, fields func(*M) []*float64) (sum M) {
	for i := range of {
		for j, f := range fields(&of[i]) {
			*fields(&sum)[j] += *f
		}
	}
	for _, f := range fields(&sum) {
		*f /= float64(max(1, len(of)))
	}
	return sum
}

// metricNames lists the names of the fields in JSON.
var metricNames = []string{"ndcg@10", "mrr", "mrr@10", "map", "recall@3", "recall@5", "recall@10", "recall@100", "hit@1", "hit@5"}

// named returns the figure with one of metricNames.
func (m *Metrics) named(name string) float64 { return *m.fields()[slices.Index(metricNames, name)] }

func (m *Metrics) fields() []*float64 {
	return []*float64{&m.NDCG10, &m.MRR, &m.MRR10, &m.MAP, &m.Recall3, &m.Recall5, &m.Recall10, &m.Recall100, &m.Hit1, &m.Hit5}
}

// ndcg is the normalized discounted cumulative gain of the first k ranks, as in trec_eval's
// ndcg_cut (Järvelin and Kekäläinen, TOIS 2002). The gain of a rank is the document's
// grade, the discount is log2(rank+1) with ranks from 1, and the ideal ranking has all
// judged documents. It is 0 if no document is relevant.
func ndcg(ranking []string, rel Relevance, k int) float64 {
	grades := slices.SortedFunc(maps.Values(rel), func(a, b int) int { return b - a })
	var ideal, gained float64
	for i, g := range grades[:min(k, len(grades))] {
		ideal += float64(max(0, g)) / math.Log2(float64(i)+2)
	}
	if ideal == 0 {
		return 0
	}
	for i, id := range ranking[:min(k, len(ranking))] {
		if g := rel[id]; g > 0 {
			gained += float64(g) / math.Log2(float64(i)+2)
		}
	}
	return gained / ideal
}

// reciprocalRank is 1 divided by the rank of the first relevant document among the first k,
// 0 if there is none.
func reciprocalRank(ranking []string, rel Relevance, k int) float64 {
	for i, id := range ranking[:min(k, len(ranking))] {
		if rel[id] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// recall is the share of the relevant documents among the first k, 0 if no document is
// relevant.
func recall(ranking []string, rel Relevance, k int) float64 {
	found := 0
	for _, id := range ranking[:min(k, len(ranking))] {
		if rel[id] > 0 {
			found++
		}
	}
	if n := relevant(rel); n > 0 {
		return float64(found) / float64(n)
	}
	return 0
}

// hit is 1 if a relevant document is among the first k, and 0 otherwise.
func hit(ranking []string, rel Relevance, k int) float64 {
	if reciprocalRank(ranking, rel, k) > 0 {
		return 1
	}
	return 0
}

func relevant(rel Relevance) int {
	n := 0
	for _, g := range rel {
		if g > 0 {
			n++
		}
	}
	return n
}

// percentiles returns the percentiles of values in milliseconds. It sorts the values.
func percentiles(ms []float64) Latency {
	return Latency{Percentile(ms, 50), Percentile(ms, 95), Percentile(ms, 99)}
}

// Percentile returns the smallest value that is not less than p percent of the values
// (nearest rank), for p in (0, 100], and 0 for no values. It sorts values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[max(0, int(math.Ceil(p/100*float64(len(values))))-1)]
}

// Calibration compares the confidence of plans with the share of right ones, which have
// exactly the tools that were called.
type Calibration struct {
	// ECE is the expected calibration error (Naeini et al., AAAI 2015): the mean distance
	// between confidence and share of right plans over the bins, weighted by plans.
	ECE float64 `json:"ece"`
	// Chance is the error that a planner with these confidences has on average if each of them
	// is the probability that its plan is right, by the normal approximation to the right
	// plans of a bin. With few plans it is large.
	Chance float64          `json:"chance"`
	Bins   []CalibrationBin `json:"bins"`
}

// CalibrationBin holds the plans with a confidence in [From, To); the last bin includes 1.
type CalibrationBin struct {
	From       float64 `json:"from"`
	To         float64 `json:"to"`
	Plans      int     `json:"plans"`
	Confidence float64 `json:"confidence"` // mean
	Right      float64 `json:"right"`      // share
}

// calibrationBins is the number of bins, of equal width.
const calibrationBins = 10

func calibrate(judged []judgement) *Calibration {
	c := &Calibration{Bins: make([]CalibrationBin, calibrationBins)}
	variance := make([]float64, calibrationBins) // of the right plans of a bin
	for i := range c.Bins {
		c.Bins[i].From, c.Bins[i].To = float64(i)/calibrationBins, float64(i+1)/calibrationBins
	}
	for _, j := range judged {
		bin := min(calibrationBins-1, max(0, int(j.confidence*calibrationBins)))
		b := &c.Bins[bin]
		variance[bin] += j.confidence * (1 - j.confidence)
		b.Plans++
		b.Confidence += j.confidence
		if j.right {
			b.Right++
		}
	}
	for i := range c.Bins {
		b := &c.Bins[i]
		if b.Plans == 0 {
			continue
		}
		c.ECE += math.Abs(b.Confidence-b.Right) / float64(len(judged))
		c.Chance += math.Sqrt(2/math.Pi*variance[i]) / float64(len(judged))
		b.Confidence /= float64(b.Plans)
		b.Right /= float64(b.Plans)
	}
	return c
}
