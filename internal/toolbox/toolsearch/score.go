package toolsearch

import "math"

// Constants of the weight of the keyword leg. The evidence of the leg is the best BM25
// score divided by ln(1+N), about the number of rare words of the query in the best tool: less
// than one for paraphrases, three and more for long, specific intents. benchmarks/toolquality.md
// compares other values.
const (
	leastKeywordWeight = 0.05
	mostKeywordWeight  = 0.45
	littleEvidence     = 0.75
	muchEvidence       = 2.25
	// fartherCosine is the weight of the farther of a tool's two vectors.
	fartherCosine = 0.15
	// partWeight is the weight of the best part of an intent, relative to the whole.
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
	// Imputed reports that the tool has no vectors yet and Vector is an estimate from its
	// keyword score.
	Imputed bool    `json:"imputed,omitempty"`
	Score   float64 `json:"score"`
}

// calibrate computes the best scores and the weight of the keyword leg from the raw scores
// of the tools found.
func (u *unit) calibrate(legs []Leg, q *intentQuery) {
	for _, l := range legs {
		u.best = max(u.best, l.BM25)
	}
	for i := range legs {
		u.nearest = max(u.nearest, legs[i].nearness())
	}
	switch {
	case q.legs == SemanticOnly:
		u.weight = 0
	case u.vector == nil:
		u.weight = 1
	default:
		u.weight = keywordWeight(u.best / math.Log(1+float64(max(1, q.tools))))
	}
}

// weigh computes the score of a leg from its raw scores.
func (u *unit) weigh(l *Leg) {
	l.Vector, l.KeywordWeight = l.nearness(), u.weight
	if u.best > 0 {
		l.Keyword = l.BM25 / u.best
	}
	if l.Imputed { // the retriever uses the same estimate
		l.Vector = u.nearest * (0.45 + 0.45*l.Keyword)
	}
	l.Score = (1-l.KeywordWeight)*l.Vector + l.KeywordWeight*l.Keyword
}

// nearness blends the two cosines.
func (l *Leg) nearness() float64 {
	a, b := clip(l.NameCosine), clip(l.TextCosine)
	return (1-fartherCosine)*max(a, b) + fartherCosine*min(a, b)
}

// Cosines returns the cosines of the tool's text and of its name, clipped to [0, 1], or for both the
// estimate of a tool without vectors.
func (l *Leg) Cosines() (text, name float64) {
	if l.Imputed {
		return l.Vector, l.Vector
	}
	return clip(l.TextCosine), clip(l.NameCosine)
}

// keywordWeight returns the weight of the keyword leg, in [0.05, 0.45].
func keywordWeight(evidence float64) float64 {
	return leastKeywordWeight + (mostKeywordWeight-leastKeywordWeight)*clip((evidence-littleEvidence)/(muchEvidence-littleEvidence))
}

// join blends the scores for the whole intent and for its best part. part is nil if the
// intent has no parts.
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
