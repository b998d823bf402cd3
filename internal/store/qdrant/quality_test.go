package qdrant

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/text"
)

// TestKeywordQuality holds the sparse vectors to the index on disk: nDCG@10 may
// differ by .01 on any collection of $CAIRN_DATA/docs.
func TestKeywordQuality(t *testing.T) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA is not set: no evaluation data")
	}
	servers(t, func(t *testing.T, addr string) {
		if strings.Contains(t.Name(), "FakeU") || strings.Contains(t.Name(), "FakeE") {
			t.Skip("the same as Fake for keywords")
		}
		for _, set := range [][2]string{
			{"scifact", "train"}, {"cranfield", "test"}, {"k8s-docs", "kubefix"}, {"cacm", "test"}, {"cisi", "test"}, {"npl", "test"},
		} {
			t.Run(set[0], func(t *testing.T) {
				c := readCollection(t, filepath.Join(data, "docs", set[0]), set[1])
				disk, err := text.Memory()
				if err != nil {
					t.Fatal(err)
				}
				defer disk.Close()
				want := c.ndcg(t, disk)
				got := c.ndcg(t, dial(t, addr, nil).Current().Keyword())
				t.Logf("%-10s %6d chunks %5d queries: nDCG@10 %.4f, on disk %.4f", set[0], len(c.entries), len(c.grades), got, want)
				if math.Abs(got-want) > .01 {
					t.Errorf("%s: nDCG@10 %.4f, on disk %.4f, want within .01", set[0], got, want)
				}
			})
		}
	})
}

type collection struct {
	entries []store.TextEntry
	queries map[string]string
	grades  map[string]map[string]float64 // query, document, gain
}

// readCollection reads a collection of documents, each as one chunk, or of
// Markdown one for each piece that begins with a heading.
func readCollection(t *testing.T, dir, split string) collection {
	t.Helper()
	c := collection{queries: map[string]string{}, grades: map[string]map[string]float64{}}
	lines(t, filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var d struct {
			ID    string `json:"_id"`
			Title string
			Text  string
		}
		err := json.Unmarshal(line, &d)
		for i, piece := range strings.Split(d.Text, "\n#") {
			c.entries = append(c.entries, store.TextEntry{Chunk: store.ChunkID(d.ID, "", i), Path: d.ID, Title: d.Title, Body: piece})
		}
		return err
	})
	lines(t, filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var q struct {
			ID   string `json:"_id"`
			Text string
		}
		err := json.Unmarshal(line, &q)
		c.queries[q.ID] = q.Text
		return err
	})
	lines(t, filepath.Join(dir, "qrels", split+".tsv"), func(line []byte) error {
		f := strings.Split(string(line), "\t")
		if grade, err := strconv.ParseFloat(f[2], 64); err == nil && grade > 0 {
			if c.grades[f[0]] == nil {
				c.grades[f[0]] = map[string]float64{}
			}
			c.grades[f[0]][f[1]] = grade
		}
		return nil
	})
	return c
}

func lines(t *testing.T, path string, fn func([]byte) error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if err := fn(s.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// ndcg is nDCG@10 of an index, a document counting as its best chunk.
func (c collection) ndcg(t *testing.T, x store.Keyword) float64 {
	t.Helper()
	for piece := range slices.Chunk(c.entries, 4096) {
		if err := x.Update(background, piece, nil); err != nil {
			t.Fatal(err)
		}
	}
	var sum float64
	for id, grades := range c.grades {
		hits, err := x.Search(background, store.KeywordQuery{Text: c.queries[id]}, 100, store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		var gains []float64
		for _, h := range hits {
			if doc, _, _, _ := store.SplitChunkID(h.Chunk); !seen[doc] {
				seen[doc] = true
				gains = append(gains, grades[doc])
			}
		}
		var ideal []float64
		for _, g := range grades {
			ideal = append(ideal, g)
		}
		slices.Sort(ideal)
		slices.Reverse(ideal)
		sum += dcg(gains) / dcg(ideal)
	}
	return sum / float64(len(c.grades))
}

func dcg(gains []float64) float64 {
	var sum float64
	for i, g := range gains[:min(10, len(gains))] {
		sum += g / math.Log2(float64(i)+2)
	}
	return sum
}
