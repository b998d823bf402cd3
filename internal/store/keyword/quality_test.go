package keyword

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
	"cairn/internal/text/query"
)

// sets are the collections of $CAIRN_DATA/docs, each with the nDCG@10 that
// bm25s 0.3 (k1 1.5, b .75, its stop words, Snowball English) reaches on title
// and text, k8s-docs split at headings.
var sets = []struct {
	name, split string
	bm25s       float64
}{
	{"scifact", "train", .6964},
	{"cranfield", "test", .3650},
	{"cacm", "test", .4935},
	{"cisi", "test", .3858},
	{"npl", "test", .4280},
	{"nl2bash-tldr", "dev", .3229},
	{"k8s-docs", "kubefix", .7627},
	{"k8s-docs", "realistic", .2746},
	{"anthropic-docs", "test", .7220},
}

type collection struct {
	entries []store.KeywordEntry
	queries map[string]string
	grades  map[string]map[string]float64 // query -> document -> gain
}

// TestQuality checks that the index is at least as good as forty lines of Python, on
// average and, within .03, on every collection. The largest difference, .023, is on
// anthropic-docs, whose 56 queries cannot distinguish less than .04; b is .60 because that
// is better on the other collections.
func TestQuality(t *testing.T) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA is not set: no evaluation data")
	}
	var sum, sumRef float64
	for _, set := range sets {
		c := readCollection(t, filepath.Join(data, "docs", set.name), set.split)
		got := c.ndcg(t)
		sum += got
		sumRef += set.bm25s
		t.Logf("%-15s %-10s nDCG@10 %.4f, bm25s %.4f", set.name, set.split, got, set.bm25s)
		if got < set.bm25s-.03 {
			t.Errorf("%s %s: nDCG@10 %.4f, want at least %.4f", set.name, set.split, got, set.bm25s-.03)
		}
	}
	n := float64(len(sets))
	t.Logf("mean nDCG@10 %.4f, bm25s %.4f", sum/n, sumRef/n)
	if sum < sumRef {
		t.Errorf("mean nDCG@10 %.4f, want at least %.4f", sum/n, sumRef/n)
	}
}

func readCollection(t *testing.T, dir, split string) collection {
	t.Helper()
	c := collection{queries: make(map[string]string), grades: make(map[string]map[string]float64)}
	readLines(t, filepath.Join(dir, "corpus.jsonl"), func(line []byte) {
		var d struct {
			ID    string `json:"_id"`
			Title string
			Text  string
		}
		if err := json.Unmarshal(line, &d); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(dir) != "k8s-docs" {
			c.entries = append(c.entries, store.KeywordEntry{Chunk: store.ChunkID(d.ID, "", 0), Title: d.Title, Body: d.Text})
			return
		}
		for i, s := range splitHeadings(d.Text) {
			c.entries = append(c.entries, store.KeywordEntry{
				Chunk: store.ChunkID(d.ID, "", i), Path: strings.ReplaceAll(d.ID, "_", "/") + ".md",
				Title: d.Title, Trail: s.trail, Body: s.body,
			})
		}
	})
	readLines(t, filepath.Join(dir, "queries.jsonl"), func(line []byte) {
		var q struct {
			ID   string `json:"_id"`
			Text string
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		c.queries[q.ID] = q.Text
	})
	readLines(t, filepath.Join(dir, "qrels", split+".tsv"), func(line []byte) {
		f := strings.Split(string(line), "\t")
		if grade, err := strconv.ParseFloat(f[2], 64); err == nil && grade > 0 {
			if c.grades[f[0]] == nil {
				c.grades[f[0]] = make(map[string]float64)
			}
			c.grades[f[0]][f[1]] = grade
		}
	})
	return c
}

func readLines(t *testing.T, path string, fn func([]byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		fn(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

type piece struct {
	trail []string
	body  string
}

// splitHeadings cuts Markdown at ATX headings outside fences: enough for a
// measurement, where internal/text/markdown would be for an index.
func splitHeadings(text string) []piece {
	var pieces []piece
	var stack [7]string
	var body strings.Builder
	flush := func() {
		if strings.TrimSpace(body.String()) != "" {
			var trail []string
			for _, h := range stack {
				if h != "" {
					trail = append(trail, h)
				}
			}
			pieces = append(pieces, piece{trail, body.String()})
		}
		body.Reset()
	}
	fence := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if !fence && level >= 1 && level <= 6 && strings.HasPrefix(line[level:], " ") {
			flush()
			stack[level] = strings.TrimSpace(line[level:])
			clear(stack[level+1:])
		}
		body.WriteString(line)
	}
	flush()
	return pieces
}

// ndcg indexes the collection and returns the mean nDCG@10 of its queries.
func (c collection) ndcg(t *testing.T) float64 {
	t.Helper()
	x, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	ctx := context.Background()
	if err := x.Update(ctx, c.entries, nil); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for id, grades := range c.grades {
		hits, err := x.Search(ctx, query.Parse(c.queries[id]), 100, store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		sum += storetest.NDCG(t, hits, grades)
	}
	return sum / float64(len(c.grades))
}
