package benchmarks

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"cairn/retriever"
)

// fusion replaces the components of a leg in the scores of documents. The search itself
// weighs the clipped cosine and BM25 divided by the query's best.
type fusion func(leg []*float64)

// fuse replaces the components of both legs and sorts the documents again.
func fuse(documents []retriever.RankedDocument, f fusion) {
	for _, leg := range []func(*retriever.RankedDocument) *float64{
		func(d *retriever.RankedDocument) *float64 { return &d.Vector },
		func(d *retriever.RankedDocument) *float64 { return &d.Keyword },
	} {
		var values []*float64
		for i := range documents {
			if v := leg(&documents[i]); *v > 0 {
				values = append(values, v)
			}
		}
		f(values)
	}
	for i := range documents {
		documents[i].Score = documents[i].Recompute()
	}
	slices.SortFunc(documents, func(a, b retriever.RankedDocument) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path))
	})
}

// rankConstant is the constant k of reciprocal rank fusion.
const rankConstant = 60

// reciprocalRanks is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009),
// scaled so that the first rank has the value 1.
func reciprocalRanks(leg []*float64) {
	slices.SortStableFunc(leg, func(a, b *float64) int { return cmp.Compare(*b, *a) })
	for i, v := range leg {
		*v = (rankConstant + 1) / float64(rankConstant+i+1)
	}
}

// rescaledLegs is relative score fusion: it maps a leg from its worst to its best document
// to the range from 0 to 1.
func rescaledLegs(leg []*float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range leg {
		low, high = min(low, *v), max(high, *v)
	}
	for _, v := range leg {
		if high > low {
			*v = (*v - low) / (high - low)
		} else {
			*v = 1
		}
	}
}
