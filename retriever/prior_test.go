package retriever

import (
	"cmp"
	"slices"
	"testing"
)

// TestDocumentsAnswerQuestions: a manual comes before code and before records for a question
// about use, and code before it for any other question that it matches better.
func TestDocumentsAnswerQuestions(t *testing.T) {
	for query, want := range map[string]string{
		"how do I open it":               "docs/a.md runs/2026-01-02/a.md a.go",
		"how is it opened":               "a.go docs/a.md runs/2026-01-02/a.md",
		"how do I open it on 2026-01-02": "runs/2026-01-02/a.md docs/a.md a.go",
		"how do I call openIndex":        "a.go docs/a.md runs/2026-01-02/a.md",
	} {
		cs := []candidate{{path: "a.go", anchor: "f"}, {path: "docs/a.md"}, {path: "runs/2026-01-02/a.md"}}
		for i, score := range []float64{0.9, 0.8, 0.81} {
			cs[i].VectorWeight, cs[i].Vector = 1, score
		}
		must(t, placeCode(cs, query, nothing))
		slices.SortFunc(cs, func(a, b candidate) int { return cmp.Compare(b.Score, a.Score) })
		if got := cs[0].path + " " + cs[1].path + " " + cs[2].path; got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

func TestIsAboutUse(t *testing.T) {
	for query, want := range map[string]bool{
		"how can I list tools": true, "What masks my token?": true, "How to mask a token": true, "mask our tokens": true,
		"how are tools listed": false, "tell how to mask": false, "list tools": false, "where in the index": false,
		"how do I use parseHeader": false, "can I copy std::sort": false, "may we use foo_bar": false,
	} {
		if got := isAboutUse(query); got != want {
			t.Errorf("isAboutUse(%q) = %v, want %v", query, got, want)
		}
	}
}

func TestAside(t *testing.T) {
	for file, want := range map[string]bool{
		"docs/a.md": false, "a/testdata/b.md": true, "docs/mkdocs.yml": true, "CHANGELOG.md": true, "runs/2026-01-02-x/a.md": true, "2026.md": false, "docs/latest.md": false, "tests.md": true,
		"HISTORY.md": true, "docs/whats-new-in-2.md": true, "release_notes/v2.md": true, "what-is-newer.md": false,
	} {
		if got := aside(file, "how are cards locked"); got != want {
			t.Errorf("aside(%q) = %v, want %v", file, got, want)
		}
	}
	if aside("CHANGELOG.md", "what does the changelog say") {
		t.Error("the query names the file")
	}
	if aside("docs/whats_new_2.md", "what's new in 2") {
		t.Error("the query is for the list of changes")
	}
}
