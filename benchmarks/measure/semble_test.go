package main

import (
	"encoding/json"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"cairn"
	"cairn/internal/store"
)

// target is a relevant file, or lines of it, in semble's labels: a path or an object.
type target struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
}

func (t *target) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &t.Path)
	}
	type plain target
	return json.Unmarshal(b, (*plain)(t))
}

func (t *target) matches(path string, start, end int) bool {
	return path == t.Path && (t.EndLine == 0 || start <= t.EndLine && end >= t.StartLine)
}

// TestSemble measures the ranking with the labels of MinishLab/semble, by its rules: the
// results are sections of source code, and a target has the rank of the first one in it.
//
//	CAIRN_SEMBLE=DIR CAIRN_CODE_WORK=DIR CAIRN_CODE_HALF=tuning go test ./benchmarks/measure -run Semble -v
//
// DIR has benchmarks/ of semble's repository, and the pinned revision of each repository in
// checkout/NAME. Repositories without both are left out.
func TestSemble(t *testing.T) {
	dir, work := os.Getenv("CAIRN_SEMBLE"), os.Getenv("CAIRN_CODE_WORK")
	if dir == "" || work == "" {
		t.Skip("needs CAIRN_SEMBLE, a folder with benchmarks and checkout, and CAIRN_CODE_WORK, a folder for the indexes")
	}
	t.Setenv("CAIRN_HOME", filepath.Join(work, ".semble"))
	var repos []struct {
		Name string
		Root string `json:"benchmark_root"`
	}
	read(t, filepath.Join(dir, "benchmarks/repos.json"), &repos)
	var sum, files float64
	n := 0
	for _, r := range repos {
		root := filepath.Join(dir, "checkout", r.Name, r.Root)
		labels := filepath.Join(dir, "benchmarks/annotations", r.Name+".json")
		if _, err := os.Stat(labels); err != nil || heldOut(r.Name) != (os.Getenv("CAIRN_CODE_HALF") == "held-out") {
			continue
		}
		if _, err := os.Stat(root); err != nil {
			continue
		}
		bySection, byFile, queries := sembleRepo(t, filepath.Join(dir, "checkout", r.Name), r.Root, labels)
		t.Logf("%-20s %3d queries: nDCG@10 %.3f, by file %.3f", r.Name, queries, bySection, byFile)
		sum, files, n = sum+bySection, files+byFile, n+1
	}
	t.Logf("mean of %d repositories: nDCG@10 %.3f, by file %.3f", n, sum/float64(n), files/float64(n))
}

// sembleRepo returns the mean nDCG@10 of a repository's queries, with the results as they
// are, and with each file once.
func sembleRepo(t *testing.T, checkout, root, labels string) (bySection, byFile float64, queries int) {
	var tasks []struct {
		Query               string
		Relevant, Secondary []target
	}
	read(t, labels, &tasks)
	folder, err := cairn.Open(t.Context(), filepath.Join(checkout, root), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := folder.Index(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		answer, err := folder.Search(t.Context(), cairn.Query{Text: task.Query, Limit: 40, Filter: cairn.Filter{Kind: store.Code}})
		if err != nil {
			t.Fatal(err)
		}
		wanted := 0
		var ranks, fileRanks []int
		for _, w := range slices.Concat(task.Relevant, task.Secondary) {
			if _, err := os.Stat(filepath.Join(checkout, w.Path)); err != nil {
				continue
			}
			wanted++
			var files []string
			for i, r := range answer.Results {
				if !slices.Contains(files, r.Path) {
					files = append(files, r.Path)
				}
				if w.matches(path.Join(root, r.Path), r.LineRange.Start, r.LineRange.End) {
					ranks, fileRanks = append(ranks, i+1), append(fileRanks, len(files))
					break
				}
			}
		}
		if os.Getenv("CAIRN_CODE_VERBOSE") != "" {
			t.Logf("  %v of %d: %s", ranks, wanted, task.Query)
		}
		bySection += ndcg10(ranks, wanted)
		byFile += ndcg10(fileRanks, wanted)
	}
	n := float64(len(tasks))
	return bySection / n, byFile / n, len(tasks)
}

// ndcg10 returns nDCG@10 for the ranks of some of the wanted targets.
func ndcg10(ranks []int, wanted int) float64 {
	found := map[int]bool{}
	for _, r := range ranks {
		found[r] = true
	}
	var sum, ideal float64
	for i := range 10 {
		gain := 1 / math.Log2(float64(i+2))
		if found[i+1] {
			sum += gain
		}
		if i < wanted {
			ideal += gain
		}
	}
	if ideal == 0 {
		return 0
	}
	return sum / ideal
}

func read(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}
