package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/folder/config"
	"cairn/retriever"
)

// pastFolder returns a folder with three commits: v1, one that changes a section of a.md and
// moves old.md to new.md, and one that adds a section. Later a file is changed again.
func pastFolder(t *testing.T) (string, *Tasks) {
	t.Helper()
	dir := t.TempDir()
	git := gitIn(t, dir)
	write := func(files ...string) {
		t.Helper()
		for i := 0; i < len(files); i += 2 {
			path := filepath.Join(dir, files[i])
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	git("init", "-q", "-b", "main")
	write("a.md", "# A\n\nFirst.\n\n## One\n\nOld text, with the key AKIAIOSFODNN7EXAMPLE.\n\n## Two\n\nThe same.\n", "old.md", "# Old\n\n## Kept\n\nKept.\n",
		".env", "TOP-SECRET", "ignored/x.md", "TOP-SECRET", "removed.md", "TOP-SECRET")
	git("add", "-A", "-f")
	git("commit", "-q", "-m", "first")
	git("tag", "v1")
	git("tag", "-a", "signed", "-m", "x")
	write("a.md", "# A\n\nFirst.\n\n## One\n\nNew text.\n\n## Two\n\nThe same.\n", ".gitignore", "ignored\n")
	git("mv", "old.md", "new.md")
	git("rm", "-q", "removed.md")
	git("add", "-A")
	git("commit", "-q", "-m", "change One")
	write("new.md", "# Old\n\n## Kept\n\nKept.\n\n## Added\n\nMore.\n")
	git("commit", "-q", "-a", "-m", "add a section")
	write("new.md", "# Old\n\n## Kept\n\nKept, but changed.\n\n## Added\n\nMore.\n")
	tasks, err := OpenTasks(config.Selection{Root: dir}, config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tasks.Close() })
	return dir, tasks
}

func TestPastRead(t *testing.T) {
	_, tasks := pastFolder(t)
	for _, c := range []struct{ ref, place, want, failure string }{
		{"v1", "a.md#one", "## One\n\nOld text", ""},
		{"signed", "a.md:5-7", "## One\n\nOld text", ""},
		{"HEAD~2", "a.md:3", "First.", ""},
		{"main~1", "a.md", "# A\n\nFirst.\n\n## One\n\nNew text.", ""},
		{"HEAD", "new.md#added", "## Added", ""},
		{"v1", "new.md", "", "has no"},
		{"v1", "a.md#three", "", "no section"},
		{"v1", "a.md:400", "", "11 lines"},
		{"v1", "a.md:3-1", "", "want a range"},
		{"v1", ".env", "", "not a document of the index"},
		{"v1", "ignored/x.md", "", "not a document of the index"},
		{"v1", "removed.md", "", "not a document of the index"},
		{"v1", ".git/config", "", "not a document of the index"},
		{"v1", "../a.md", "", "a.md"},
		{"v1", "/etc/passwd", "", "passwd"},
		{"v1", "", "", ""},
		{"v2", "a.md", "", "no branch, tag"},
		{"../../HEAD", "a.md", "", "no branch, tag"},
		{"--help", "a.md", "", "no branch, tag"},
		{"a\x00b", "a.md", "", "no branch, tag"},
		{"v1~99999999999999999999", "a.md", "", "no commit"},
		{strings.Repeat("x/", 5000), "a.md", "", "no branch, tag"},
		{"", "a.md", "", "no branch, tag"},
	} {
		p, err := tasks.At(c.ref)
		if err == nil {
			r, e := p.Read(t.Context(), c.place)
			if err = e; err == nil {
				if c.want == "" || !strings.HasPrefix(r.Content, c.want) || strings.Contains(r.Content, "IOSFODNN") || strings.Contains(r.Content, "TOP-SECRET") {
					t.Errorf("%s@%s: %q, want %q", c.place, c.ref, r.Content, c.want)
				}
			}
			p.Close()
		}
		if c.want != "" && err != nil || c.want == "" && (err == nil || !strings.Contains(err.Error(), c.failure)) {
			t.Errorf("%s@%.40s: error %v, want %q", c.place, c.ref, err, c.failure)
		}
	}
}

func TestPastChanges(t *testing.T) {
	dir, tasks := pastFolder(t)
	p, err := tasks.At("v1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	changes, err := p.Changes(t.Context(), []SectionPlace{{"a.md", "one"}, {"a.md", "two"}, {"new.md", "kept"}, {"new.md", "added"}, {".env", ""}, {"removed.md", ""}})
	if err != nil || !changes.Complete {
		t.Fatalf("%+v, %v", changes, err)
	}
	var got []string
	for _, s := range changes.Sections {
		line := s.Path + "#" + s.Anchor
		for _, c := range s.Commits {
			line += " " + c.Subject
		}
		if s.Added {
			line += ", new"
		}
		if s.Uncommitted {
			line += ", not committed"
		}
		got = append(got, line)
	}
	if want := "a.md#one change One\nnew.md#kept, not committed\nnew.md#added add a section, new"; strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.At("v1"); err == nil || !strings.Contains(err.Error(), "not the top of a git repository") {
		t.Errorf("without a repository: %v", err)
	}
}

// TestPastSearch: the documents of today are found as the commit has them, with secrets
// masked, and no other file of the commit.
func TestPastSearch(t *testing.T) {
	dir, tasks := pastFolder(t)
	w := open(t, config.Selection{Root: dir}, Owning, hashed())
	p, err := tasks.At("v1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for query, want := range map[string]string{"old text": "a.md", "AKIAIOSFODNN7EXAMPLE": "", "new": "", "TOP-SECRET": "", "kept": ""} {
		a, err := p.Search(t.Context(), w, retriever.Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range a.Results {
			got += r.Path
		}
		if got != want {
			t.Errorf("%q at v1 is in %q, want %q", query, got, want)
		}
	}
}
