package history

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/store/keyword"
)

// Commit is a commit that changed few files.
type Commit struct {
	Hash    string    `json:"hash"`
	Time    time.Time `json:"time"`
	Subject string    `json:"subject"`
	// Files are the names of today of the files that it changed.
	Files []string `json:"-"`
}

func (c *commit) public() Commit {
	return Commit{hex.EncodeToString(c.Hash[:]), time.Unix(c.Time, 0).UTC(), c.Subject, c.files}
}

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
func (x *subjects) similar(question string) (files []graphrank.Scored, commits []Commit) {
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
			commits = append(commits, c.public())
		}
		for _, f := range c.files {
			votes[f] += s * s * (1 + c.weight) / math.Sqrt(float64(len(c.files)))
		}
	}
	return ranked(votes), commits
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

// subjectsOf returns the subjects of the commits.
func (h *History) subjectsOf() *subjects {
	s := h.load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bySubject == nil {
		h.bySubject = newSubjects(s.Commits)
	}
	return h.bySubject
}

// Similar returns the files that commits with a subject like the question changed, best
// first with the score 1, and the commits most like it.
func (h *History) Similar(question string) ([]graphrank.Scored, []Commit) {
	return h.subjectsOf().similar(question)
}

// Last returns the last n commits that changed one of the files, the newest first.
func (h *History) Last(paths []string, n int) (commits []Commit) {
	x := h.subjectsOf()
	for i := range x.commits {
		if c := &x.commits[i]; len(commits) < n && slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(c.files, p) }) {
			commits = append(commits, c.public())
		}
	}
	return commits
}
