package toolsearch

import "math"

// The weight of the keyword leg. Its evidence is the best BM25 score over ln(1+N),
// about the number of rare words of the query in the best tool: below one for
// paraphrases, three and more for long, specific intents. The constants were chosen
// on ten sets of intents together; benchmarks/toolquality.md compares other values.
const (
	leastKeywordWeight = 0.05
	mostKeywordWeight  = 0.45
	littleEvidence     = 0.75
	muchEvidence       = 2.25
	// disagreement is the share of the weight that the leg loses when the nearest tool
	// by vector has no word of the query and the evidence is little.
	disagreement = 0.25
	// lostWeight is the least weight of the keywords when the similarity of the
	// nearest tool by vector is lostMargin below chance, the model's MinSimilarity.
	// It falls to 0 at chance.
	lostWeight = 0.20
	lostMargin = 0.05
	// fartherCosine is the share of the farther of a tool's two vectors.
	fartherCosine = 0.15
	// partWeight is the weight of the best part of an intent; the whole has 1.
	partWeight = 0.5
)

// Leg is how well a tool fits one text, the whole intent or a part of it:
//
//	Score = (1−KeywordWeight)·Vector + KeywordWeight·Keyword
//	Vector = 0.85·max(NameCosine, TextCosine) + 0.15·min(NameCosine, TextCosine)
//
// with cosines clipped to [0, 1].
type Leg struct {
	BM25          float64 `json:"bm25"`    // raw
	Keyword       float64 `json:"keyword"` // BM25 over the text's best, in [0, 1]
	NameCosine    float64 `json:"name_cosine"`
	TextCosine    float64 `json:"text_cosine"`
	Vector        float64 `json:"vector"`
	KeywordWeight float64 `json:"keyword_weight"`
	// Imputed is set when the tool has no vectors yet and Vector is an estimate
	// from its keyword score.
	Imputed bool    `json:"imputed,omitempty"`
	Score   float64 `json:"score"`
}

// calibrate computes the best scores and the weight of the keyword leg from the raw
// legs of the tools that were found.
func (u *unit) calibrate(legs []Leg, q *intentQuery) {
	for _, l := range legs {
		u.best = max(u.best, l.BM25)
	}
	u.evidence = u.best / math.Log(1+float64(max(1, q.tools)))
	var agreement float64
	for i := range legs {
		v, k := legs[i].nearness(), u.keyword(legs[i].BM25)
		if v > u.nearest || v == u.nearest && k > agreement {
			u.nearest, agreement = v, k
		}
	}
	switch {
	case q.legs == SemanticOnly:
		u.weight = 0
	case u.vector == nil || q.legs == KeywordOnly:
		u.weight = 1
	default:
		u.weight = max(keywordWeight(u.evidence, agreement), lostWeight*clip((q.chance-u.nearest)/lostMargin))
	}
}

// weigh computes the score of a leg from its raw scores.
func (u *unit) weigh(l *Leg) {
	l.Keyword, l.Vector, l.KeywordWeight = u.keyword(l.BM25), l.nearness(), u.weight
	if l.Imputed { // the estimate that the retriever uses
		l.Vector = u.nearest * (0.45 + 0.45*l.Keyword)
	}
	l.Score = l.recompute()
}

func (u *unit) keyword(bm25 float64) float64 {
	if u.best <= 0 {
		return 0
	}
	return bm25 / u.best
}

// nearness blends the two cosines.
func (l *Leg) nearness() float64 {
	a, b := clip(l.NameCosine), clip(l.TextCosine)
	return (1-fartherCosine)*max(a, b) + fartherCosine*min(a, b)
}

// keywordWeight is the share of the keyword leg, in [0.0375, 0.45]. agreement is
// the keyword score of the nearest tool by vector, in [0, 1].
func keywordWeight(evidence, agreement float64) float64 {
	sure := clip((evidence - littleEvidence) / (muchEvidence - littleEvidence))
	w := leastKeywordWeight + (mostKeywordWeight-leastKeywordWeight)*sure
	return w * (1 - disagreement + disagreement*max(agreement, sure))
}

// join returns the score over the whole intent and the best of its parts; part is nil
// without parts.
func join(whole Leg, part *Leg) float64 {
	if part == nil {
		return whole.Score
	}
	return (whole.Score + partWeight*part.Score) / (1 + partWeight)
}

func clip(v float64) float64 {
	if !(v > 0) { // NaN too
		return 0
	}
	return min(v, 1)
}

func (l *Leg) recompute() float64 {
	return (1-l.KeywordWeight)*l.Vector + l.KeywordWeight*l.Keyword
}
