package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
)

// The weights of a commit: see benchmarks/history.md.
const (
	halfLife = 365 * 24 * time.Hour // of a commit's weight
	maxFiles = 30                   // a commit that changes more files relates none of them
	maxPairs = 1_000_000            // pairs of files that are related, those of the newest commits
	damping  = 0.5                  // of the walk from the given files

	// The weights of what makes a file near, relative to the best proximity: the terms of its
	// path, its stem, and how much the last commits changed it. Paths are compared with maxLike
	// files.
	pathWeight    = 0.15
	stemWeight    = 0.2
	recentWeight  = 0.06
	recentCommits = 5
	maxLike       = 10
)

// commit is a commit with the files that it changes.
type commit struct {
	*record
	files  []string // sorted, by their names of today, which need not exist any more
	weight float64  // 2^(-age/halfLife)
}

// related returns the commits that change 1 to most files, in the order of the records.
func related(records []record, most int) (commits []commit) {
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
	for i := range records {
		r := &records[i]
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
		if len(files) == 0 || len(files) > most {
			continue
		}
		commits = append(commits, commit{r, files, graphrank.HalfLifeFactor(float64(records[0].Time-r.Time), halfLife.Seconds())})
	}
	return commits
}

// learn relates the files of each commit to each other: a pair of its n files gains the
// commit's weight / (n-1).
func learn(records []record) *graphrank.Graph {
	if len(records) == 0 {
		return nil
	}
	type pair struct{ a, b string }
	weights := map[pair]float64{}
	for _, c := range related(records, maxFiles) {
		for i, a := range c.files {
			for _, b := range c.files[i+1:] {
				if len(weights) < maxPairs {
					weights[pair{a, b}] += c.weight / float64(len(c.files)-1)
				}
			}
		}
	}
	graph := &graphrank.Graph{}
	for p, w := range weights {
		a, b := graphrank.DocumentID(p.a), graphrank.DocumentID(p.b)
		graph.Set(graphrank.Edge{From: a, To: b, Type: graphrank.CoChange, Source: graphrank.Observed, Count: w})
		graph.Set(graphrank.Edge{From: b, To: a, Type: graphrank.CoChange, Source: graphrank.Observed, Count: w})
	}
	return graph
}

// CoChanged returns how closely each document is related to those of context by the
// commits that changed them together, in [0, 1): see graphrank.Proximity.
func (h *History) CoChanged(context, documents []string) []float64 {
	g := h.load().graph()
	if g == nil {
		return make([]float64, len(documents))
	}
	return g.Proximity(ids(context), ids(documents), damping)
}

func ids(paths []string) (ids []string) {
	for _, p := range paths {
		ids = append(ids, graphrank.DocumentID(p))
	}
	return ids
}

// Near returns the files that were changed together with those given, or whose paths are
// like theirs, best first; none if no file is given.
func (h *History) Near(given []string) []graphrank.Scored {
	known := h.load()
	g, x := known.graph(), known.subjects()
	if g == nil || len(given) == 0 {
		return nil
	}
	score := map[string]float64{}
	for i, f := range x.files {
		score[f] = recentWeight * x.recent[i]
	}
	near := map[string]bool{}
	for _, id := range ids(given) {
		for e := range g.Out(id) {
			near[e.To] = true
		}
	}
	nodes := slices.Sorted(maps.Keys(near))
	for i, proximity := range g.Proximity(ids(given), nodes, damping) {
		score[strings.TrimPrefix(nodes[i], graphrank.DocumentPrefix)] += proximity
	}
	like := given[:min(len(given), maxLike)]
	for _, f := range like {
		for i, s := range shares(termsOf(f), x.paths, len(x.files)) {
			score[x.files[i]] += pathWeight * s / float64(len(like))
		}
		for _, i := range x.stems[stem(f)] {
			score[x.files[i]] += stemWeight / float64(len(like))
		}
	}
	for _, f := range given {
		delete(score, f)
	}
	return ranked(score)
}
