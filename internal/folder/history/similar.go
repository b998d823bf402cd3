package history

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/store/keyword"
)

// similarCommits is how many commits vote for the files that they changed.
const similarCommits = 30

// Similar returns the files that commits with a subject like the question changed, best
// first and relative to the best, and the three commits most like it. The similarity s of a
// commit is the share of the question's terms in its subject, weighted by rarity. A commit
// of n files gives s²·(1 + 2^(-age/halfLife)) / √n to each.
func (h *History) Similar(question string) (files []graphrank.Scored, commits []Commit) {
	l := h.learn()
	if l == nil {
		return nil, nil
	}
	terms := keyword.Analyze(question)
	slices.Sort(terms)
	score, total := map[int32]float64{}, 0.0
	for _, t := range slices.Compact(terms) {
		rarity := math.Log(1 + float64(len(l.commits))/float64(max(1, len(l.terms[t]))))
		total += rarity
		for _, n := range l.terms[t] {
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
		c := &l.commits[n]
		s := score[n] / total
		if i < 3 && s > 0.5 {
			commits = append(commits, *c)
		}
		age := l.commits[0].Time.Sub(c.Time)
		for _, f := range c.Files {
			votes[f] += s * s * (1 + graphrank.HalfLifeFactor(age.Hours(), halfLife.Hours())) / math.Sqrt(float64(len(c.Files)))
		}
	}
	return ranked(votes), commits
}

// Recent returns the files that were changed most, weighted by age, relative to the first.
func (h *History) Recent() []graphrank.Scored {
	if l := h.learn(); l != nil {
		return ranked(l.recent)
	}
	return nil
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

// Commits returns the newest commits that changed a file, at most limit.
func (h *History) Commits(path string, limit int) (commits []Commit) {
	l := h.learn()
	if l == nil {
		return nil
	}
	for _, c := range l.commits {
		if len(commits) < limit && slices.Contains(c.Files, path) {
			commits = append(commits, c)
		}
	}
	return commits
}
