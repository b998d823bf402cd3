package keyword

import (
	"context"
	"math"
	"slices"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// sparseEntries are few chunks in which every kind of operator finds and misses.
var sparseEntries = []store.KeywordEntry{
	{Chunk: "a#x.0", Path: "a", Title: "Rotating a token", Body: "Rotate the access token with rotateToken and --dry-run, never by hand."},
	{Chunk: "b#x.0", Path: "b", Title: "Gateways", Trail: []string{"Gateways", "Access"}, Body: "The token of the gateway gives access. Access is logged."},
	{Chunk: "c#x.0", Path: "c", Title: "Find", Body: "find . -name '*.md' prints names; token rotation is not its work"},
	{Chunk: "d#x.0", Path: "d", Title: "日本語", Body: "日本語の文書を検索する access"},
}

// TestQuestionAgreesWithIndex scores by Weights and Question as a store of
// sparse vectors does and compares with the index.
func TestQuestionAgreesWithIndex(t *testing.T) {
	x, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	ctx := context.Background()
	if err := x.Update(ctx, sparseEntries, nil); err != nil {
		t.Fatal(err)
	}
	total := 0
	var freqs []map[string]float64
	for _, e := range sparseEntries {
		f, length := Terms(e)
		freqs = append(freqs, f)
		total += length
	}
	avg := float64(total) / float64(len(sparseEntries))
	held := func(term string) (bool, error) {
		return slices.ContainsFunc(freqs, func(f map[string]float64) bool { return f[term] > 0 }), nil
	}
	for _, text := range []string{
		"token", "access token", `"access token"`, `"token access"`, "token -gateway", `access -"access is logged"`, "find -name token", "find -rotate token",
		"rotateToken", "--dry-run", "日本語", `"the access"`, "nothing of this",
	} {
		q, err := NewQuery(query.Parse(text)).Resolve(held)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, e := range sparseEntries {
			weights := Weights(e, avg)
			score := 0.0
			for term, count := range q.Terms() {
				df := 0
				for _, f := range freqs {
					if f[term] > 0 {
						df++
					}
				}
				score += count * idf(uint64(len(sparseEntries)), uint64(df)) * weights[term]
			}
			if score > 0 && (!q.Restricted() || q.Admits(e)) {
				got[e.Chunk] = score
			}
		}
		hits, err := x.Search(ctx, query.Parse(text), 10, store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) != len(got) {
			t.Errorf("%q: %v, the index finds %v", text, got, hits)
		}
		for _, h := range hits {
			if math.Abs(got[h.Chunk]-h.Score) > 1e-5 {
				t.Errorf("%q: %s scores %v, in the index %v", text, h.Chunk, got[h.Chunk], h.Score)
			}
		}
	}
}
