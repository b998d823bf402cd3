package toolsearch

import (
	"cmp"
	"iter"
	"slices"

	"cairn/graphrank"
)

// heaviest returns the maxRelated edges of most weight. Ties go to the larger count.
func heaviest(edges iter.Seq[graphrank.Edge]) []graphrank.Edge {
	list := slices.SortedStableFunc(edges, func(a, b graphrank.Edge) int {
		return cmp.Or(cmp.Compare(b.Weight(), a.Weight()), cmp.Compare(b.Count, a.Count))
	})
	return list[:min(len(list), maxRelated)]
}
