package history

import (
	"cmp"
	"encoding/hex"
	"maps"
	"math"
	"path"
	"regexp"
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
}

func (c *commit) public() Commit {
	return Commit{hex.EncodeToString(c.Hash[:]), time.Unix(c.Time, 0).UTC(), c.Subject}
}

// similarCommits is how many commits vote for the files that they changed.
const similarCommits = 30

// nameWeight is the weight of a file whose path has the words of a question, relative to
// the file that similar commits changed most.
const nameWeight = 0.8

// subjects are commits with the terms of their subjects, and their files with those of
// their paths.
type subjects struct {
	commits []commit
	terms   map[string][]int32 // the commits with a term
	files   []string
	paths   map[string][]int32 // the files with a term
	stems   map[string][]int32 // the files with a stem
	recent  []float64          // the sum of 2^(-n/recentCommits) over the commits n of a file
}

func newSubjects(records []record) *subjects {
	x := &subjects{commits: related(records, maxFiles), terms: map[string][]int32{}, paths: map[string][]int32{}, stems: map[string][]int32{}}
	known := map[string]int{}
	for n, c := range x.commits {
		for _, term := range termsOf(c.Subject) {
			x.terms[term] = append(x.terms[term], int32(n))
		}
		for _, f := range c.files {
			i, ok := known[f]
			if !ok {
				i = len(x.files)
				known[f], x.files, x.recent = i, append(x.files, f), append(x.recent, 0)
				for _, term := range termsOf(f) {
					x.paths[term] = append(x.paths[term], int32(i))
				}
				if s := stem(f); s != "" {
					x.stems[s] = append(x.stems[s], int32(i))
				}
			}
			x.recent[i] += math.Exp2(-float64(n) / recentCommits)
		}
	}
	return x
}

// termsOf returns the different terms of a text.
func termsOf(text string) []string {
	terms := keyword.Analyze(text)
	slices.Sort(terms)
	return slices.Compact(terms)
}

var testWord = regexp.MustCompile(`(?i)^(tests?|specs?)[._-]|[._-](tests?|specs?)$|Tests?$`)

// stem returns the name of a file without its extension and what marks a test, "" if many
// files have that name.
func stem(file string) string {
	name := path.Base(file)
	name = strings.ToLower(testWord.ReplaceAllString(strings.TrimSuffix(name, path.Ext(name)), ""))
	switch name {
	case "index", "main", "mod", "lib", "__init__", "init", "readme":
		return ""
	}
	return name
}

// shares returns the share of the terms that each of n texts has, weighted by rarity. having
// lists the texts with a term.
func shares(terms []string, having map[string][]int32, n int) map[int32]float64 {
	score, total := map[int32]float64{}, 0.0
	for _, t := range terms {
		rarity := math.Log(1 + float64(n)/float64(max(1, len(having[t]))))
		total += rarity
		for _, i := range having[t] {
			score[i] += rarity
		}
	}
	for i := range score {
		score[i] /= total
	}
	return score
}

// Similar returns the files that commits with a subject like the question changed, or whose
// paths have its words, best first, and the three commits most like it. The similarity s of a
// commit is the share of the question's terms in its subject. A commit of n files gives
// s²·(1 + 2^(-age/halfLife)) / √n to each; these votes count relative to the highest.
func (h *History) Similar(question string) (files []graphrank.Scored, commits []Commit) {
	x := h.load().subjects()
	terms := termsOf(question)
	score := shares(terms, x.terms, len(x.commits))
	best := slices.SortedFunc(maps.Keys(score), func(a, b int32) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	votes, most := map[string]float64{}, 0.0
	for i, n := range best[:min(similarCommits, len(best))] {
		c, s := &x.commits[n], score[n]
		if i < 3 && s > 0.5 {
			commits = append(commits, c.public())
		}
		for _, f := range c.files {
			votes[f] += s * s * (1 + c.weight) / math.Sqrt(float64(len(c.files)))
			most = max(most, votes[f])
		}
	}
	for f := range votes {
		votes[f] /= most
	}
	for i, s := range shares(terms, x.paths, len(x.files)) {
		votes[x.files[i]] += nameWeight * s
	}
	return ranked(votes), commits
}

// ranked returns the files with a score, best first.
func ranked(scores map[string]float64) []graphrank.Scored {
	list := make([]graphrank.Scored, 0, len(scores))
	for path, s := range scores {
		list = append(list, graphrank.Scored{ID: path, Score: s})
	}
	slices.SortFunc(list, func(a, b graphrank.Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	return list
}

// Times returns when the last commit changed each file, as far as it was read. Files that may
// differ from the last commit are missing.
func (h *History) Times() map[string]time.Time {
	times := map[string]time.Time{}
	for _, c := range slices.Backward(related(h.load().Commits, math.MaxInt)) {
		for _, f := range c.files {
			times[f] = time.Unix(c.Time, 0)
		}
	}
	for _, f := range h.Changed() {
		delete(times, f)
	}
	return times
}

// Last returns the last n commits that changed one of the files, the newest first.
func (h *History) Last(paths []string, n int) (commits []Commit) {
	x := h.load().subjects()
	for i := range x.commits {
		if c := &x.commits[i]; len(commits) < n && slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(c.files, p) }) {
			commits = append(commits, c.public())
		}
	}
	return commits
}
