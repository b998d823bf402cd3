package benchmarks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/models/bpe"
	"cairn/retriever"
)

// TestAblations: each part is changed once, and the search is as before afterwards.
func TestAblations(t *testing.T) {
	dir, work := writeSet(t), t.TempDir()
	report, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "test", Embedder: &testutil.HashEmbedder{}, Work: work, Cache: t.TempDir(), Ablate: true, Modes: []retriever.Mode{retriever.Hybrid}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Main().System != "hybrid" || report.Main().Ablation || len(report.Runs) != 3+len(variants) {
		t.Fatalf("%d runs, the main one %+v", len(report.Runs), report.Main())
	}
	var names []string
	for _, a := range report.Ablations {
		names = append(names, a.Variant)
		if a.Change < a.CI[0] || a.Change > a.CI[1] || a.NDCG10-a.Change != report.Main().Metrics().NDCG10 {
			t.Errorf("%+v", a)
		}
		// Document d has nothing but its title.
		if a.Variant == "no title and headings" && a.Change >= 0 {
			t.Errorf("without titles the gardens are found as well: %+v", a)
		}
	}
	if want := []string{"words alone", "meaning alone", "weights 85/15", "weights 55/45", "no title and headings"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
	if !strings.Contains(report.String(), "weights 85/15") || len(report.Systems) != len(report.Runs) {
		t.Errorf("%s", report)
	}
}

// TestRerankerAblation: a re-ranker that prefers the worst passage is measured against the
// search without it. It can exchange two documents that match almost equally well.
func TestRerankerAblation(t *testing.T) {
	dir := writeSet(t)
	corpus, err := os.OpenFile(filepath.Join(dir, "corpus.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = corpus.WriteString(`{"_id":"f","title":"Soup: a \"recipe\"","text":"boil onions and carrots slowly"}` + "\n")
	if err := errors.Join(err, corpus.Close()); err != nil {
		t.Fatal(err)
	}
	report, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "test", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir(), Ablate: true, Modes: []retriever.Mode{retriever.Hybrid}, Reranker: reversed{}})
	if err != nil {
		t.Fatal(err)
	}
	last := report.Ablations[len(report.Ablations)-1]
	if last.Variant != "no re-ranker" || last.Change <= 0 || !strings.Contains(report.Main().Fingerprint.Configuration, "re-ranked") {
		t.Errorf("%+v of %s, want a gain without the re-ranker", last, report.Main().Fingerprint.Configuration)
	}
}

// reversed is a re-ranker that finds each text better than the one before it.
type reversed struct{}

func (reversed) Rerank(_ context.Context, _ string, texts []string) (scores []float64, err error) {
	for i := range texts {
		scores = append(scores, float64(10*i-5))
	}
	return scores, nil
}

func (reversed) Close() error { return nil }

// TestReadingWithinBudgets: answers, whole files and matching lines, with what they cost up
// to the first relevant text.
func TestReadingWithinBudgets(t *testing.T) {
	report, err := Docs(t.Context(), DocsOptions{Data: writeSet(t), Split: "test", Embedder: &testutil.HashEmbedder{}, Budget: &bpe.Counter{}, Work: t.TempDir(), Budgets: []int{500, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Budgets) != 6 || report.Main().Budgets == nil || report.Main().Index.Seconds <= 0 {
		t.Fatalf("%+v, want three ways of reading within two budgets", report.Budgets)
	}
	for _, b := range report.Budgets {
		want := 1.0
		if b.System == cairnReader {
			want = .75 // document d has no text to show
		}
		if b.Recall != want || b.TokensToFirst <= 0 || b.TokensToFirst > float64(b.Tokens) || b.Answer < b.Text {
			t.Errorf("%+v", b)
		}
	}
}

func TestPieces(t *testing.T) {
	f := newFileReader(&measurement{bench: &bench{o: &DocsOptions{Budget: words{}, Budgets: []int{100}}, paths: map[string]string{"a": "a.md", "b": "b.md"}},
		set: &beirSet{documents: []beirDocument{{ID: "a", Text: "one two\nthree\nfour\nfive\nsix\nseven\neight two\n"}, {ID: "b", Text: "Two three"}}}})
	pieces, err := f.whole(t.Context(), nil, []string{"b", "a"}, 5)
	if want := []piece{{"b", 1, 1, 2, 2}, {"a", 1, 3, 3, 3}}; err != nil || !slices.Equal(pieces, want) {
		t.Errorf("whole files %+v, %v; want %+v", pieces, err, want)
	}
	// In a, the lines 1 to 4 and 5 to 8 follow each other.
	pieces, err = f.grep(t.Context(), &RunQuery{ID: "1", Text: "two three to"}, nil, 100)
	if want := []piece{{"a", 1, 8, 9, 11}, {"b", 1, 1, 2, 3}}; err != nil || !slices.Equal(pieces, want) {
		t.Errorf("matching lines %+v, %v; want %+v", pieces, err, want)
	}
	if pieces, _ = f.grep(t.Context(), &RunQuery{ID: "1", Text: "two three to"}, nil, 12); len(pieces) != 2 || pieces[1].answer != 1 {
		t.Errorf("within 12 tokens %+v", pieces)
	}
	r := BudgetReport{Tokens: 20}
	r.add([]piece{{"a", 1, 2, 5, 6}, {"b", 1, 2, 5, 6}}, func(p piece) bool { return p.document == "b" })
	r.add([]piece{{"a", 1, 2, 5, 6}}, func(p piece) bool { return p.document == "b" })
	if r.Recall != 1 || r.TokensToFirst != 12+20 || r.Text != 15 || r.Results != 3 {
		t.Errorf("%+v", r)
	}
	gold := []piece{{document: "a", from: 4, to: 6}}
	if p := (piece{document: "a", from: 6, to: 9}); !p.overlaps(gold) || !p.overlaps(nil) || (piece{document: "a", from: 1, to: 3}).overlaps(gold) || (piece{document: "b", from: 4, to: 4}).overlaps(gold) {
		t.Error("lines 6 to 9 of a, and no others, have text of lines 4 to 6")
	}
}

// words counts words as tokens.
type words struct{}

func (words) CountTokens(text string) int { return len(strings.Fields(text)) }

// TestAdapters: a command gets the set, and its ranking and times are measured.
func TestAdapters(t *testing.T) {
	script := filepath.Join(t.TempDir(), "adapter.sh")
	write(t, script, `set -e
test "$(wc -l < "$1/queries.jsonl")" = 4
test "$(wc -c < "$1/queries.f32")" = $(( $(sed 's/.*"dimension":\([0-9]*\).*/\1/' "$1/set.json") * 16 ))
grep -q 'boil onions' "$1/passages.jsonl"
grep -q '"document":"https://x.org/a#1","path":"' "$1/files.jsonl"
printf '1 Q0 https://x.org/a#1 1 2 x\n2 Q0 c 1 2 x\n2 Q0 b 2 1 x\n' > "$1/run"
printf '1\t2.5\n2\t0.5\n' > "$1/times.tsv"
echo '{"program":"adapter 1.2","index_seconds":3}' > "$1/system.json"
`)
	o := DocsOptions{Data: writeSet(t), Split: "test", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir(), Modes: []retriever.Mode{retriever.Keyword},
		Adapters: []Adapter{{"other", "sh " + script}}}
	report, err := Docs(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	run := report.Runs[1]
	if run.System != "other" || run.Fingerprint.Program != "adapter 1.2" || run.Fingerprint.Data != report.Main().Fingerprint.Data || run.Index.Seconds != 3 {
		t.Errorf("%+v", run)
	}
	if m := run.Metrics(); m.MRR != (1+.5)/4 || run.Latency().P95 != 2.5 || run.Queries[1].Best.Rank != 2 {
		t.Errorf("%+v, %+v", m, run.Latency())
	}
	if report.Main().System != "keyword" || !strings.Contains(report.String(), "\nother ") {
		t.Errorf("%s", report)
	}
	for content, want := range map[string]string{
		"echo broken; exit 3": "exit status 3: broken", "true": "run: no such file",
		`echo "1 Q0 b 1 x" > "$1/run"`: "5 fields", `echo "1 Q0 b 1 1 x" > "$1/run"; echo "1 x" > "$1/times.tsv"`: "want a query, a tab",
	} {
		write(t, script, content)
		if _, err := Docs(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "adapter other") {
			t.Errorf("%s gives %v, want %q", content, err, want)
		}
	}
	for _, text := range []string{"", "a", "=b", "a="} {
		if _, err := ParseAdapter(text); err == nil {
			t.Errorf("%q is an adapter", text)
		}
	}
}

// TestPage: the page needs nothing else, and what people wrote is text in it.
func TestPage(t *testing.T) {
	a, b := madeRun("keyword", 1, 3, 0), madeRun("hybrid", 1, 1, 2)
	for i := range b.Queries {
		a.Queries[i].Milliseconds, b.Queries[i].Milliseconds = float64(i+1), float64(i+2)
		b.Queries[i].Groups = map[string]string{"kind": "a<b", "folder": "x"}
		b.Queries[i].Text = `<script>alert("1")</script>`
	}
	c := madeRun("other words", 2, 2, 2)
	c.Ablation = true
	b.Budgets = []BudgetReport{{System: cairnReader, Tokens: 500, Recall: .5}, {System: cairnReader, Tokens: 1000, Recall: .75}, {System: "grep", Tokens: 500}, {System: "grep", Tokens: 1000, Recall: .76}}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := WritePage(file, []*Run{a, b, c}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, want := range []string{"other words", "&lt;script&gt;", "answered within 1,000 tokens", "How long a search takes", "words alone", "a&lt;b", "The worst queries", "prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "src=", "@import", "NaN", "Inf", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	// Runs without times, budgets and groups, of another system.
	if err := WritePage(file, []*Run{{System: "bm25", Queries: []RunQuery{{ID: "1", Relevant: Relevance{"a": 1}}}}}); err != nil {
		t.Error(err)
	}
}
