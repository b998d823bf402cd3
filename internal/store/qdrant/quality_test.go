package qdrant

import (
	"bufio"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
	"cairn/internal/text/query"
)

// TestKeywordQuality compares the sparse vectors with the index on disk: nDCG@10 may
// differ by .01 on any collection of $CAIRN_DATA/docs, also for queries with an edit in
// each word of more than three letters.
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
				// The fake sorts all that a term finds, which may take a busy machine long.
				remote := index(t, dial(t, addr, &Options{ReadTimeout: time.Minute}).Current().Chunks(1, "m"))
				disk := remote.own
				for piece := range slices.Chunk(c.entries, 4096) {
					update(t, remote, piece)
				}
				for _, fuzzy := range []bool{false, true} {
					if fuzzy {
						c.misspell()
					}
					want, got := c.ndcg(t, disk, fuzzy), c.ndcg(t, remote, fuzzy)
					t.Logf("%-10s %6d chunks %5d queries, misspelt %-5v: nDCG@10 %.4f, on disk %.4f", set[0], len(c.entries), len(c.grades), fuzzy, got, want)
					if math.Abs(got-want) > .01 {
						t.Errorf("%s, misspelt %v: nDCG@10 %.4f, on disk %.4f, want within .01", set[0], fuzzy, got, want)
					}
				}
			})
		}
	})
}

type collection struct {
	entries []store.KeywordEntry
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
			c.entries = append(c.entries, store.KeywordEntry{Chunk: store.ChunkID(d.ID, "", i), Path: d.ID, Title: d.Title, Body: piece})
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

// misspell puts edits into the queries, the same ones each time.
func (c collection) misspell() {
	r := rand.New(rand.NewPCG(9, 10))
	for _, id := range slices.Sorted(maps.Keys(c.queries)) {
		c.queries[id] = misspelt(r, c.queries[id])
	}
}

// ndcg is the mean nDCG@10 of the queries in an index.
func (c collection) ndcg(t *testing.T, x store.Keyword, fuzzy bool) float64 {
	t.Helper()
	var sum float64
	for id, grades := range c.grades {
		q := query.Parse(c.queries[id])
		q.Fuzzy = fuzzy
		hits, err := x.Search(background, q, 100, store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		sum += storetest.NDCG(t, hits, grades)
	}
	return sum / float64(len(c.grades))
}
