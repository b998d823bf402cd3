package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/folder/index"
	"cairn/retriever"
)

// TestHistoryRaises checks that a search prefers what was changed together with a file that
// differs from the last commit, and that it ranks as without a repository if none differs.
func TestHistoryRaises(t *testing.T) {
	sel := folder(t)
	git := gitIn(t, sel.Root)
	ask := func() *retriever.Trace {
		t.Helper()
		w := open(t, sel, Owning, hashed())
		defer w.Close()
		fill(t, w, index.IndexRequest{})
		trace, err := index.ExplainOp.Call(t.Context(), w.Folder, index.ExplainRequest{Query: retriever.Query{Text: "copy"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	scores := func(trace *retriever.Trace) (s []float64) {
		for _, r := range trace.Answer.Results {
			s = append(s, r.Score)
		}
		return s
	}
	before := ask()
	git("init", "-q")
	git("add", "docs/backup.md", "auth.md")
	git("commit", "-q", "-m", "one")
	git("add", ".")
	git("commit", "-q", "-m", "two")
	clean := ask()
	if !slices.Equal(scores(clean), scores(before)) || len(clean.Graph.Context) != 0 {
		t.Errorf("with a clean repository: scores %v, context %v; want %v, none", scores(clean), clean.Graph.Context, scores(before))
	}
	write(t, filepath.Join(sel.Root, "auth.md"), "# Auth\n\nChanged.\n")
	dirty := ask()
	if !slices.Equal(dirty.Graph.Context, []string{"auth.md"}) {
		t.Errorf("the context is %v, want auth.md", dirty.Graph.Context)
	}
	for _, r := range dirty.Answer.Results {
		if raised := r.Explain.Graph > 0; raised != (r.Path == "docs/backup.md") || r.Explain.Graph > retriever.CoUsageLimit {
			t.Errorf("%s gains %v; want a bonus for docs/backup.md alone", r.Path, r.Explain.Graph)
		}
	}
	if len(dirty.Answer.Results) < 2 {
		t.Errorf("results: %v", dirty.Answer.Results)
	}
}

// TestChangedFilter checks changed: by the last commit of a file, by the time of a file that
// differs from it, and by the time of a file that no commit has.
func TestChangedFilter(t *testing.T) {
	sel := folder(t)
	git := gitIn(t, sel.Root)
	t.Setenv("GIT_COMMITTER_DATE", "2020-01-02T03:04:05Z")
	git("init", "-q")
	git("add", "docs/backup.md", "auth.md")
	git("commit", "-q", "-m", "one")
	write(t, filepath.Join(sel.Root, "auth.md"), "# Auth\n\nChanged: copy.\n")
	w := open(t, sel, Owning, hashed())
	defer w.Close()
	fill(t, w, index.IndexRequest{})
	find := func(q retriever.Query) (paths []string) {
		t.Helper()
		a, err := index.SearchOp.Call(t.Context(), w.Folder, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range a.Results {
			paths = append(paths, r.Path)
		}
		return paths
	}
	old, recent := find(retriever.Query{Text: "copy changed:>1y"}), find(retriever.Query{Text: "changed:<2w copy"})
	if !slices.Equal(old, []string{"docs/backup.md"}) || !slices.Contains(recent, "auth.md") || slices.Contains(recent, "docs/backup.md") {
		t.Errorf("before a year ago: %v; within two weeks: %v; want docs/backup.md alone, and auth.md without it", old, recent)
	}
	if _, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "changed:2w"}, nil); err == nil {
		t.Error("changed: without words is accepted")
	}
}

// gitIn returns a function that runs git in a folder. It skips the test where there is no git.
func gitIn(t *testing.T, dir string) func(args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	return func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}
