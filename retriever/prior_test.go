package retriever

import (
	"cmp"
	"slices"
	"testing"
)

// TestDocumentsAnswerQuestions: a manual comes before code and before records for a question
// in plain words, and code before it for a description of code that it matches better.
func TestDocumentsAnswerQuestions(t *testing.T) {
	for query, want := range map[string]string{
		"how is it opened":              "docs/a.md a.go runs/2026-01-02/a.md",
		"open the index":                "a.go docs/a.md runs/2026-01-02/a.md",
		"how was it opened 2026-01-02":  "runs/2026-01-02/a.md docs/a.md a.go",
		"how is it opened by openIndex": "a.go docs/a.md runs/2026-01-02/a.md",
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

func TestIsQuestion(t *testing.T) {
	for query, want := range map[string]bool{
		"how many tools are listed": true, "What is masked?": true, "where is the delay computed": false, "parse a header": false,
		"how does parseHeader work": false, "what is std::sort": false, "how are foo_bar and x used": false, "how": false,
	} {
		if got := isQuestion(query); got != want {
			t.Errorf("isQuestion(%q) = %v, want %v", query, got, want)
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
