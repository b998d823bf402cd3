package history

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/graphrank"
	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// TestRecall measures how well the history of public repositories predicts which files a
// commit changes; benchmarks/history.md has its figures. CAIRN_HISTORIES is a pattern of git
// directories whose folders are named OWNER+NAME. Half of them, by hash of the name, were
// used for tuning.
func TestRecall(t *testing.T) {
	dirs, err := filepath.Glob(os.Getenv("CAIRN_HISTORIES"))
	if err != nil || len(dirs) == 0 {
		t.Skip("CAIRN_HISTORIES names no git directories")
	}
	part := cmp.Or(os.Getenv("CAIRN_HISTORIES_PART"), "tuning")
	means := map[string][]float64{}
	fmt.Printf("| repository | commits | asked |%s\n", strings.Repeat(" |", 2*len(rankers)))
	for _, dir := range dirs {
		name := strings.ReplaceAll(filepath.Base(filepath.Dir(dir)), "+", "/")
		if tuning := sha256.Sum256([]byte(strings.ReplaceAll(name, "/", "+")))[0]%2 == 0; tuning != (part == "tuning") {
			continue
		}
		q := asked(t, dir)
		if q == nil {
			continue
		}
		fmt.Printf("| %s | %d | %d |", name, len(q.records), len(q.commits))
		for _, frozen := range []bool{true, false} {
			recall := q.recall(frozen)
			for _, r := range rankers {
				key := fmt.Sprint(r.name, " ", frozen)
				means[key] = append(means[key], recall[r.name])
				fmt.Printf(" %.2f |", recall[r.name])
			}
		}
		fmt.Println()
	}
	for _, frozen := range []bool{true, false} {
		for _, r := range rankers {
			list := means[fmt.Sprint(r.name, " ", frozen)]
			sum := 0.0
			for _, v := range list {
				sum += v
			}
			fmt.Printf("%-24s frozen %-5v %.3f of %d\n", r.name, frozen, sum/float64(len(list)), len(list))
		}
	}
}

// questions are the newest quarter of the commits of a repository.
type questions struct {
	records []record // the newest first
	commits []int    // indices into records of the commits that are asked
	quarter int
}

const maxAsked = 60

func wanted(p string) bool {
	o := walk.Options{Extensions: markdown.Extensions(), Code: walk.CodeOn}
	return p != "" && !strings.HasPrefix(p, ".") && !strings.Contains(p, "/.") && !walk.IsIgnoreFile(path.Base(p)) && o.Wants()(path.Base(p))
}

func asked(t *testing.T, dir string) *questions {
	r, err := git.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(t.Context(), r, head, &stored{})
	if err != nil {
		t.Fatal(err)
	}
	q := &questions{}
	for _, c := range s.Commits {
		if len(c.Parents) < 2 {
			q.records = append(q.records, c)
		}
	}
	q.quarter = len(q.records) / 4
	for i, c := range q.records[:q.quarter] {
		n := 0
		for _, f := range c.Changes {
			if wanted(cmp.Or(f.New, f.Old)) {
				n++
			}
		}
		if n >= 2 && n <= 8 {
			q.commits = append(q.commits, i)
		}
	}
	if len(q.commits) < 20 {
		return nil
	}
	for len(q.commits) > maxAsked { // evenly
		step := float64(len(q.commits)) / maxAsked
		var some []int
		for i := range maxAsked {
			some = append(some, q.commits[int(float64(i)*step)])
		}
		q.commits = some
	}
	return q
}

// known is what is known when a commit is asked.
type known struct {
	*History
	*subjects
	files []string
}

// ranker scores files, given one changed file and the subject of the commit.
type ranker struct {
	name  string
	score func(h *known, files []string, given, subject string) []float64
}

var rankers = []ranker{
	{"most changed", func(h *known, files []string, _, _ string) []float64 { return h.changedOf(files) }},
	{"same folder", func(h *known, files []string, given, _ string) []float64 { return sameFolder(h, files, given) }},
	{"counts", func(h *known, files []string, given, _ string) []float64 {
		return each(files, func(f string) float64 {
			e, _ := h.load().graph().Edge(graphrank.DocumentID(given), graphrank.DocumentID(f))
			return e.Count
		})
	}},
	{"Adamic-Adar", func(h *known, files []string, given, _ string) []float64 {
		return each(files, func(f string) float64 {
			e, _ := h.load().graph().Edge(graphrank.DocumentID(given), graphrank.DocumentID(f))
			return e.Count + h.load().graph().AdamicAdar(graphrank.DocumentID(given), graphrank.DocumentID(f))/10
		})
	}},
	{"PageRank", func(h *known, files []string, given, _ string) []float64 {
		return h.CoChanged([]string{given}, files)
	}},
	{"near", func(h *known, files []string, given, _ string) []float64 { return of(h.Near([]string{given}), files) }},
	{"subject alone", func(h *known, files []string, _, subject string) []float64 {
		similar, _ := h.Similar(subject)
		return of(similar, files)
	}},
	{"near + subject", func(h *known, files []string, given, subject string) []float64 {
		near, similar := of(h.Near([]string{given}), files), []graphrank.Scored(nil)
		similar, _ = h.Similar(subject)
		for i, s := range of(similar, files) {
			near[i] += .7 * s
		}
		return near
	}},
}

func each(files []string, score func(string) float64) []float64 {
	out := make([]float64, len(files))
	for i, f := range files {
		out[i] = score(f)
	}
	return out
}

func of(list []graphrank.Scored, files []string) []float64 {
	score := map[string]float64{}
	for _, s := range list {
		score[s.ID] = s.Score
	}
	return each(files, func(f string) float64 { return score[f] })
}

// changedOf returns how much each file was changed.
func (h *known) changedOf(files []string) []float64 {
	changed := map[string]float64{}
	for _, c := range h.commits {
		for _, f := range c.files {
			changed[f] += c.weight
		}
	}
	return each(files, func(f string) float64 { return changed[f] })
}

func sameFolder(h *known, files []string, given string) []float64 {
	recent := h.changedOf(files)
	for i, f := range files {
		if path.Dir(f) != path.Dir(given) {
			recent[i] = 0
		} else {
			recent[i] += 1e-6
		}
	}
	return recent
}

// recall returns the mean recall@10 of the other files of a commit, given each one in turn,
// by ranker. What is known are the commits before the quarter if frozen, and otherwise those
// before the commit.
func (q *questions) recall(frozen bool) map[string]float64 {
	sums, n := map[string]float64{}, 0
	var h *known
	for _, i := range q.commits {
		if !frozen || h == nil {
			from := q.quarter
			if !frozen {
				from = i + 1
			}
			x := newSubjects(q.records[from:])
			h = &known{&History{memory: remember(stored{Commits: q.records[from:]})}, x, existing(q.records[from:])}
		}
		files := h.files
		var truth []string
		for _, c := range q.records[i].Changes {
			if c.Old != "" && slices.Contains(files, c.Old) {
				truth = append(truth, c.Old)
			}
		}
		if len(truth) < 2 {
			continue
		}
		n++
		for _, r := range rankers {
			found := 0
			for _, given := range truth {
				scores := map[string]float64{}
				for k, s := range r.score(h, files, given, q.records[i].Subject) {
					scores[files[k]] = s
				}
				delete(scores, given)
				top := ranked(scores)
				for _, s := range top[:min(10, len(top))] {
					if s.Score > 0 && slices.Contains(truth, s.ID) {
						found++
					}
				}
			}
			sums[r.name] += float64(found) / float64(len(truth)*(len(truth)-1))
		}
	}
	for name := range sums {
		sums[name] /= float64(n)
	}
	return sums
}

// existing returns the files that exist after the commits, the newest first.
func existing(records []record) []string {
	exists := map[string]bool{}
	for _, r := range slices.Backward(records) {
		for _, c := range r.Changes {
			if c.Old != c.New {
				delete(exists, c.Old)
			}
			if c.New != "" && wanted(c.New) {
				exists[c.New] = true
			}
		}
	}
	var files []string
	for f := range exists {
		files = append(files, f)
	}
	slices.Sort(files)
	return files
}
