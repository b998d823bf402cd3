package history

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// repository is a work tree made by git.
type repository struct {
	*testing.T
	dir string
	now time.Time
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	r := &repository{t, t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.git("init", "-q")
	return r
}

func (r *repository) git(args ...string) {
	r.Helper()
	c := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	date := r.now.Format(time.RFC3339)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_COMMITTER_DATE="+date, "GIT_AUTHOR_DATE="+date)
	if out, err := c.CombinedOutput(); err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// commit changes files and commits them a day later.
func (r *repository) commit(subject string, files ...string) {
	r.Helper()
	r.now = r.now.Add(24 * time.Hour)
	for _, name := range files {
		r.write(name, subject+" in "+name)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", subject)
}

func (r *repository) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// updated returns the history of the repository in a file, after an Update.
func (r *repository) updated(file string) *History {
	r.Helper()
	h := Open(r.dir, file, slog.New(slog.DiscardHandler))
	if err := h.Update(r.Context()); err != nil {
		r.Fatal(err)
	}
	return h
}

func TestCoChanged(t *testing.T) {
	r := newRepository(t)
	r.commit("parse numbers", "parse.go", "parse_test.go")
	r.commit("parse dates", "parse.go", "parse_test.go", "docs/dates.md")
	r.commit("log requests", "log.go", "server.go")
	var many []string
	for i := range maxFiles + 1 {
		many = append(many, fmt.Sprintf("all/%d.go", i))
	}
	r.commit("reformat", append(many, "parse.go", "log.go")...)
	r.git("mv", "parse_test.go", "tests.go")
	r.commit("move the tests")
	file := filepath.Join(t.TempDir(), "history")
	h := r.updated(file)
	paths := []string{"tests.go", "docs/dates.md", "server.go", "log.go", "parse.go", "all/1.go"}
	got := h.CoChanged([]string{"parse.go"}, paths)
	if !(got[0] > got[1] && got[1] > 0 && got[0] < 1) || got[2]+got[3]+got[4]+got[5] != 0 {
		t.Errorf("with parse.go: %v %v; want the tests, then the page, and no more", paths, got)
	}
	if got := h.CoChanged([]string{"new.go"}, paths); slices.Max(got) != 0 {
		t.Errorf("with an unknown file: %v", got)
	}
	files, commits := h.Similar("how are dates parsed?")
	if len(files) < 3 || len(commits) != 1 || commits[0].Subject != "parse dates" {
		t.Errorf("similar: %v, %v", files, commits)
	}
	if files, commits := h.Similar("zebra"); len(files)+len(commits) != 0 {
		t.Errorf("similar to an unknown word: %v, %v", files, commits)
	}
	if got := h.Near(nil); len(got) != 0 {
		t.Errorf("near no file: %v", got)
	}
	if got := slices.DeleteFunc(related(h.load().Commits, maxFiles), func(c commit) bool { return !slices.Contains(c.files, "parse.go") }); len(got) != 2 || got[0].Subject != "parse dates" {
		t.Errorf("commits of parse.go: %v; want two, without the large one", got)
	}
}

// TestUpdate checks that only new commits are read, and that a history can be replaced.
func TestUpdate(t *testing.T) {
	r := newRepository(t)
	file := filepath.Join(t.TempDir(), "history")
	if h := r.updated(file); h.load().graph() != nil {
		t.Error("a repository without commits has a history")
	}
	r.commit("first", "a.go", "b.go")
	r.updated(file)
	objects, err := filepath.Glob(filepath.Join(r.dir, ".git/objects/??/*"))
	if err != nil || len(objects) == 0 {
		t.Fatal(err)
	}
	r.commit("second", "a.go", "c.go")
	for _, old := range objects { // the tree of the parent is needed for the changes of "second"
		if content, err := exec.Command("git", "-C", r.dir, "cat-file", "-t", filepath.Base(filepath.Dir(old))+filepath.Base(old)).Output(); err == nil && string(content) == "blob\n" {
			if err := os.Remove(old); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := r.updated(file)
	if n := len(h.load().Commits); n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	again := r.updated(file) // reads the file
	if got := again.CoChanged([]string{"a.go"}, []string{"b.go", "c.go"}); got[0] == 0 || got[0] >= got[1] {
		t.Errorf("co-changed with a.go: %v; want c.go before b.go", got)
	}
	r.git("checkout", "-q", "--orphan", "other")
	r.git("rm", "-q", "-r", "--cached", ".") // so that the commit writes the removed blobs again
	r.commit("third", "d.go", "e.go")
	if n := len(r.updated(file).load().Commits); n != 1 {
		t.Errorf("%d commits after a branch without the others, want 1", n)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-3] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if h := Open(r.dir, file, slog.New(slog.DiscardHandler)); h.load().graph() != nil {
		t.Error("a damaged file was used")
	}
	if n := len(r.updated(file).load().Commits); n != 1 {
		t.Errorf("%d commits after damage, want 1", n)
	}
	if err := Open(t.TempDir(), file, slog.New(slog.DiscardHandler)).Update(t.Context()); err != nil {
		t.Errorf("outside of a repository: %v", err)
	}
}

func TestChanged(t *testing.T) {
	r := newRepository(t)
	r.commit("first", "a.go", "b.go")
	h := r.updated(filepath.Join(t.TempDir(), "history"))
	if got := h.Changed(); len(got) != 0 || h.Stale() {
		t.Errorf("changed: %v, stale %v; want nothing", got, h.Stale())
	}
	r.write("b.go", "another content")
	h.working.until = time.Time{}
	if got := h.Changed(); !slices.Equal(got, []string{"b.go"}) {
		t.Errorf("changed: %v, want b.go", got)
	}
	if got := h.Times(); len(got) != 1 || !got["a.go"].Equal(r.now) {
		t.Errorf("times: %v, want %v for a.go alone", got, r.now)
	}
	r.commit("second", "b.go")
	h.working.until = time.Time{}
	if got := h.Changed(); len(got) != 0 || !h.Stale() {
		t.Errorf("after a commit: %v, stale %v; want none, true", got, h.Stale())
	}
}
