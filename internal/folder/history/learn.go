package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"cairn/graphrank"
	"cairn/internal/store/keyword"
)

// The weights of a commit, chosen by benchmarks/history.md.
const (
	halfLife = 365 * 24 * time.Hour // of a commit's weight
	maxFiles = 30                   // a commit that changes more files relates none of them
	maxPairs = 1_000_000            // pairs of files that are related, those of the newest commits
)

// learned is what follows from the commits.
type learned struct {
	commits []Commit // those that change at most maxFiles files, the newest first
	graph   *graphrank.Graph
	recent  map[string]float64 // the weight of the commits that change a file
	terms   map[string][]int32 // the commits with a term in their subject
}

// learn returns what follows from the commits, nil if there are none.
func (h *History) learn() *learned {
	s := h.load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.learned == nil && len(s.Commits) > 0 {
		h.learned = learn(s.Commits)
	}
	return h.learned
}

// learn relates the files of each commit to each other: a pair of its n files gains
// 2^(-age/halfLife) / (n-1). A file that was moved has its new name in all commits.
func learn(records []record) *learned {
	l := &learned{graph: &graphrank.Graph{}, recent: map[string]float64{}, terms: map[string][]int32{}}
	moved := map[string]string{}
	name := func(path string) string {
		for range 20 {
			to, ok := moved[path]
			if !ok {
				break
			}
			path = to
		}
		return path
	}
	type pair struct{ a, b string }
	weights := map[pair]float64{}
	for _, r := range records {
		var files []string
		for _, c := range r.Changes {
			to := name(cmp.Or(c.New, c.Old))
			if c.New != "" && c.Old != "" && c.Old != c.New && to != c.Old {
				moved[c.Old] = to
			}
			files = append(files, to)
		}
		slices.Sort(files)
		files = slices.Compact(files)
		if len(files) == 0 || len(files) > maxFiles {
			continue
		}
		weight := math.Exp2(-float64(records[0].Time-r.Time) / halfLife.Seconds())
		for i, a := range files {
			l.recent[a] += weight
			for _, b := range files[i+1:] {
				if len(weights) < maxPairs {
					weights[pair{a, b}] += weight / float64(len(files)-1)
				}
			}
		}
		for _, term := range keyword.Analyze(r.Subject) {
			n := int32(len(l.commits))
			if list := l.terms[term]; len(list) == 0 || list[len(list)-1] != n {
				l.terms[term] = append(list, n)
			}
		}
		l.commits = append(l.commits, Commit{r.Hash.String(), time.Unix(r.Time, 0).UTC(), r.Subject, files})
	}
	for p, w := range weights {
		a, b := graphrank.DocumentID(p.a), graphrank.DocumentID(p.b)
		l.graph.Set(graphrank.Edge{From: a, To: b, Type: graphrank.CoChange, Source: graphrank.Observed, Count: w})
		l.graph.Set(graphrank.Edge{From: b, To: a, Type: graphrank.CoChange, Source: graphrank.Observed, Count: w})
	}
	return l
}

// CoChanged returns how closely each document is related to those of context by the
// commits that changed them together, in [0, 1): see graphrank.Proximity.
func (h *History) CoChanged(context, documents []string) []float64 {
	l := h.learn()
	if l == nil {
		return make([]float64, len(documents))
	}
	ids := func(paths []string) (ids []string) {
		for _, p := range paths {
			ids = append(ids, graphrank.DocumentID(p))
		}
		return ids
	}
	return l.graph.Proximity(ids(context), ids(documents))
}
