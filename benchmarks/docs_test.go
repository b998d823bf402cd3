package benchmarks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/retriever"
)

// writeSet writes a set in BEIR's layout: ids that are no file names, a document
// given twice, one with front matter of its own, one with a title alone.
func writeSet(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	for name, content := range map[string]string{
		"corpus.jsonl": `{"_id":"https://x.org/a#1","title":"Soup: a \"recipe\"","text":"boil onions and carrots"}
{"_id":"b","title":"","text":"old version of b"}

{"_id":"b","title":"","text":"index the folder and search it"}
{"_id":"c","title":"Given","text":"---\ntitle: Front matter\n---\n\n# Head\n\nvectors of chunks"}
{"_id":"d","title":"Only a title about gardens","text":""}
{"_id":"e","title":"Added","text":"---\nweight: 3\n---\ntrains and stations"}
`,
		"queries.jsonl": `{"_id":"1","text":"onions recipe"}
{"_id":"2","text":"search folder"}
{"_id":"3","text":"gardens"}
{"_id":"4","text":"not judged"}
{"_id":"5","text":"chunks vectors front matter"}
`,
		"qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\thttps://x.org/a#1\t2\n2\tb\t1\n2\tc\t0\n3\td\t1\n5\tc\t1\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDocs(t *testing.T) {
	dir, work, cache := writeSet(t), t.TempDir(), t.TempDir()
	var embedded int
	for run := range 2 {
		e := &testutil.HashEmbedder{}
		report, err := Docs(context.Background(), DocsOptions{Data: dir, Split: "test", Embedder: e, Cache: cache, Work: work})
		if err != nil {
			t.Fatal(err)
		}
		if report.Dataset != "tiny" || report.Split != "test" || report.Documents != 5 || report.Queries != 4 || len(report.Modes) != 3 {
			t.Errorf("report is %+v", report)
		}
		for mode, m := range report.Modes {
			if m.NDCG10 != 1 || m.MRR != 1 || m.Recall100 != 1 {
				t.Errorf("%s: %+v, want every document found first", mode, m.Metrics)
			}
			if l := m.Latency; l.P50 <= 0 || l.P95 < l.P50 || l.P99 < l.P95 {
				t.Errorf("%s: latency %+v", mode, l)
			}
		}
		if report.Index.Bytes <= 0 || report.Index.Seconds <= 0 {
			t.Errorf("index is %+v", report.Index)
		}
		if run == 0 {
			embedded = e.Embedded()
		} else if e.Embedded() != 0 || embedded == 0 {
			t.Errorf("the second run embeds %d texts, the first %d", e.Embedded(), embedded)
		}
		checkJSON(t, report, `dataset split documents queries modes/hybrid/ndcg@10 modes/hybrid/mrr modes/hybrid/mrr@10 modes/hybrid/map
		modes/hybrid/recall@3 modes/hybrid/recall@5 modes/hybrid/recall@10 modes/hybrid/recall@100 modes/hybrid/hit@1 modes/hybrid/hit@5
		modes/keyword/latency_ms/p50 modes/semantic/latency_ms/p95 modes/hybrid/latency_ms/p99 index/seconds index/bytes index/peak_rss_bytes`)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// TestHandbookSet: the bundled set holds the pages of the handbook as they are.
func TestHandbookSet(t *testing.T) {
	set, err := readBEIR("../examples/handbook.bench", "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range set.documents {
		page, err := os.ReadFile("../examples/handbook/" + d.ID + ".md")
		if err != nil || string(page) != d.Text {
			t.Errorf("%s in examples/handbook.bench/corpus.jsonl is not the page of examples/handbook (%v): copy it", d.ID, err)
		}
	}
}

// TestContext learns that b and c are used together: with b given, c is found
// before a document that shares more words with the query.
func TestContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "together")
	for name, content := range map[string]string{
		"corpus.jsonl":    `{"_id":"b","text":"search the folder"}` + "\n" + `{"_id":"c","text":"sort lines of the folder listing by their size and name"}` + "\n" + `{"_id":"d","text":"lines of the folder"}`,
		"queries.jsonl":   `{"_id":"1","text":"lines of the folder"}` + "\n" + `{"_id":"2","text":"past one"}`,
		"qrels/dev.tsv":   "query-id\tcorpus-id\tscore\n1\tb\t1\n1\tc\t1\n",
		"qrels/train.tsv": "query-id\tcorpus-id\tscore\n2\tb\t1\n2\tc\t1\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "dev", Learn: "train", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c := report.Context
	if c == nil || c.Queries != 1 || c.Pairs != 2 || c.Edges != 1 || c.Worse != 0 || c.With < c.Without || c.Without <= 0 {
		t.Errorf("%+v, want one query of two pairs that gains", c)
	}
	if _, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "dev", Learn: "dev", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir()}); err == nil {
		t.Error("of one query none is held out, and yet it is measured")
	}
	if _, err := Docs(t.Context(), DocsOptions{Data: dir, Split: "dev", Learn: "absent", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir()}); err == nil {
		t.Error("an absent split is learnt")
	}
}

// checkJSON holds the names, separated by slashes, that readers of a report rely on.
func checkJSON(t *testing.T, report any, names string) {
	t.Helper()
	b, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(names) {
		var at any = got
		for _, key := range strings.Split(path, "/") {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		if at == nil {
			t.Errorf("the report lacks %s: %s", path, b)
		}
	}
}

func TestDocsModesAndLimit(t *testing.T) {
	report, err := Docs(context.Background(), DocsOptions{
		Data: writeSet(t), Split: "test", Embedder: &testutil.HashEmbedder{}, Work: t.TempDir(), Modes: []retriever.Mode{retriever.Keyword}, MaxQueries: 2,
		Progress: func(p job.Progress) {
			if p.Phase == indexer.PhaseVectors {
				t.Error("a keyword run made vectors")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Modes) != 1 || report.Queries != 2 || len(report.Runs) != 1 || len(report.Runs[0].Queries) != 2 {
		t.Errorf("%d modes, %d queries, %d runs; want 1, 2 and 1", len(report.Modes), report.Queries, len(report.Runs))
	}
}

func TestDocsRefusesDamage(t *testing.T) {
	for name, damage := range map[string][2]string{
		"corpus.jsonl:1":   {"corpus.jsonl", "{"},
		"queries.jsonl:1":  {"queries.jsonl", "[]"},
		"test.tsv:2":       {"qrels/test.tsv", "h\n1\tb\n"},
		"query \"9\"":      {"qrels/test.tsv", "h\n9\tb\t1\n"},
		"0 judged queries": {"qrels/test.tsv", "h\n"},
	} {
		dir := writeSet(t)
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(damage[0])), []byte(damage[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Docs(context.Background(), DocsOptions{Data: dir, Split: "test", Embedder: &testutil.HashEmbedder{}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with %q gives %v, want an error that says %s", damage[0], damage[1], err, name)
		}
	}
	if _, err := Docs(context.Background(), DocsOptions{Data: writeSet(t), Split: "none", Embedder: &testutil.HashEmbedder{}}); err == nil {
		t.Error("an unknown split gives no error")
	}
}
