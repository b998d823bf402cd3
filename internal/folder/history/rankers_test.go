package history

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/store/keyword"
)

// The rankings with which TestRecall compares the graph.

// similarCommits is how many commits vote for the files that they changed.
const similarCommits = 30

// subjects are commits with the terms of their subjects.
type subjects struct {
	commits []commit
	terms   map[string][]int32 // the commits with a term
}

func newSubjects(records []record) *subjects {
	x := &subjects{related(records), map[string][]int32{}}
	for n, c := range x.commits {
		terms := keyword.Analyze(c.Subject)
		slices.Sort(terms)
		for _, term := range slices.Compact(terms) {
			x.terms[term] = append(x.terms[term], int32(n))
		}
	}
	return x
}

// similar returns the files that commits with a subject like the question changed, best
// first and relative to the best, and the three commits most like it. The similarity s of a
// commit is the share of the question's terms in its subject, weighted by rarity. A commit
// of n files gives s²·(1 + 2^(-age/halfLife)) / √n to each.
func (x *subjects) similar(question string) (files []graphrank.Scored, commits []commit) {
	terms := keyword.Analyze(question)
	slices.Sort(terms)
	score, total := map[int32]float64{}, 0.0
	for _, t := range slices.Compact(terms) {
		rarity := math.Log(1 + float64(len(x.commits))/float64(max(1, len(x.terms[t]))))
		total += rarity
		for _, n := range x.terms[t] {
			score[n] += rarity
		}
	}
	best := make([]int32, 0, len(score))
	for n := range score {
		best = append(best, n)
	}
	slices.SortFunc(best, func(a, b int32) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	votes := map[string]float64{}
	for i, n := range best[:min(similarCommits, len(best))] {
		c := &x.commits[n]
		s := score[n] / total
		if i < 3 && s > 0.5 {
			commits = append(commits, *c)
		}
		for _, f := range c.files {
			votes[f] += s * s * (1 + c.weight) / math.Sqrt(float64(len(c.files)))
		}
	}
	return ranked(votes), commits
}

// recent returns the files that were changed most, weighted by age, relative to the first.
func (x *subjects) recent() []graphrank.Scored {
	weights := map[string]float64{}
	for _, c := range x.commits {
		for _, f := range c.files {
			weights[f] += c.weight
		}
	}
	return ranked(weights)
}

// ranked returns the files with a score, best first and relative to the best.
func ranked(scores map[string]float64) []graphrank.Scored {
	list := make([]graphrank.Scored, 0, len(scores))
	for path, s := range scores {
		list = append(list, graphrank.Scored{ID: path, Score: s})
	}
	slices.SortFunc(list, func(a, b graphrank.Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	for i := range slices.Backward(list) {
		list[i].Score /= list[0].Score
	}
	return list
}
