package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/face/term"
	"cairn/internal/folder/config"
	"cairn/internal/folder/encoder"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/text/markdown"
	"cairn/retriever"
)

// TestSameAnswersFromAStore copies the index of the folder $CAIRN_OVERLAP_FOLDER to
// a store and sends 1,000 queries to both, which are headings of its documents. The best ten
// overlap by at least .98, and with exact search the semantic results are equal. QDRANT_ADDR
// names a server; without it, the test uses the fake.
func TestSameAnswersFromAStore(t *testing.T) {
	root := os.Getenv("CAIRN_OVERLAP_FOLDER")
	if root == "" {
		t.Skip("CAIRN_OVERLAP_FOLDER is not set: a folder with an index to compare a store with")
	}
	addr, which := os.Getenv("QDRANT_ADDR"), "the server at QDRANT_ADDR"
	if addr == "" {
		addr, which = qdranttest.New(t, nil).Addr(), "the fake of qdranttest"
	}
	sel, err := config.Select(root)
	if err != nil {
		t.Fatal(err)
	}
	options := func(exact string) workspace.Options {
		o := workspace.Options{Command: "test"}
		if err := new(encoder.Model).Apply(&o); err != nil {
			t.Fatal(err)
		}
		if exact == "" {
			return o
		}
		if o.Store, err = mirror.ParseStore(fmt.Sprintf("qdrant://%s/cairn-overlap-%d", addr, os.Getpid()), func(name string) string {
			return map[string]string{"CAIRN_STORE_EXACT": exact}[name]
		}); err != nil {
			t.Fatal(err)
		}
		o.Stateless = true
		return o
	}
	out := options("false")
	report, err := workspace.CopyOut(t.Context(), sel, config.Default(), out.Store, options(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d chunks copied to %s in %.0f s, probes overlap by %.3f", report.Documents, report.Chunks, which, report.Seconds, report.Overlap)
	open := func(sel config.Selection, o workspace.Options) *workspace.Workspace {
		w, err := workspace.Open(t.Context(), sel, config.Default(), workspace.Reading, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	flat := open(sel, options(""))
	elsewhere := config.Selection{Root: t.TempDir(), Rule: config.RuleFlag}
	quantised, exact := open(elsewhere, out), open(elsewhere, options("true"))
	queries := headings(t, root, 1000)
	for _, mode := range []retriever.Mode{retriever.Semantic, retriever.Hybrid, retriever.Keyword} {
		var same, total, equal, equalExact int
		for _, text := range queries {
			best := func(w *workspace.Workspace) (ids []string) {
				query := retriever.Query{Text: text, Mode: mode, Limit: 10}
				a, err := index.SearchOp.Call(t.Context(), w.Folder, query, nil)
				for range 10 { // the fake compares with all there is, which may take a busy machine longer than a search waits
					if !mirror.Unavailable(err) && (err != nil || !slices.Contains(a.Degraded, "vectors")) {
						break
					}
					a, err = index.SearchOp.Call(t.Context(), w.Folder, query, nil)
				}
				if err != nil || slices.Contains(a.Degraded, "vectors") {
					t.Fatalf("%q: %v, want an answer with vectors", text, err)
				}
				for _, r := range a.Results {
					ids = append(ids, r.Path+"#"+r.Anchor)
				}
				return ids
			}
			want, got := best(flat), best(quantised)
			for _, id := range want {
				total++
				if slices.Contains(got, id) {
					same++
				}
			}
			if slices.Equal(want, got) {
				equal++
			}
			if slices.Equal(want, best(exact)) {
				equalExact++
			}
		}
		overlap := float64(same) / float64(max(1, total))
		t.Logf("%-8s %d queries: the best ten overlap by %.4f, %d lists are identical; with exact search %d are", mode, len(queries), overlap, equal, equalExact)
		if overlap < .98 || len(queries) == 0 {
			t.Errorf("%s: overlap %.4f of %d queries, want .98", mode, overlap, len(queries))
		}
		if mode == retriever.Semantic && equalExact != len(queries) {
			t.Errorf("%d of %d lists by meaning are identical with exact search, want all", equalExact, len(queries))
		}
	}
}

// headings returns n headings of a folder's documents, evenly spread, each with the title of its
// document.
func headings(t *testing.T, root string, n int) (queries []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range markdown.Parse(path, text).Sections {
			if s.Level > 1 && len(s.Trail) > 1 {
				if q := term.Plain(s.Trail[0] + " " + s.Trail[len(s.Trail)-1]); len(q) < 120 {
					queries = append(queries, q)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(queries)
	queries = slices.Compact(queries)
	for i := range min(n, len(queries)) {
		queries[i] = queries[i*len(queries)/min(n, len(queries))]
	}
	return queries[:min(n, len(queries))]
}
