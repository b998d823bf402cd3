package keyword

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

var _ store.Keyword = (*Index)(nil)

var ctx = context.Background()

func memory(t *testing.T, entries ...store.KeywordEntry) *Index {
	t.Helper()
	x, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	update(t, x, entries)
	return x
}

func update(t *testing.T, x *Index, entries []store.KeywordEntry, stale ...string) {
	t.Helper()
	if err := x.Update(ctx, entries, stale); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, x *Index, text string, k int, f store.Filter) []store.Hit {
	t.Helper()
	hits, err := x.Search(ctx, query.Parse(text), k, f)
	if err != nil {
		t.Fatalf("Search(%q): %v", text, err)
	}
	return hits
}

func ids(hits []store.Hit) string {
	var s []string
	for _, h := range hits {
		s = append(s, h.Chunk)
	}
	return strings.Join(s, " ")
}

func entry(id, body string) store.KeywordEntry { return store.KeywordEntry{Chunk: id, Body: body} }

func TestUpdate(t *testing.T) {
	x := memory(t, entry("a", "apple"), entry("b", "pear"))
	update(t, x, []store.KeywordEntry{entry("a", "plum"), entry("c", "cherry"), entry("c", "fig")}, "b", "a", "unknown")
	for _, c := range []struct{ query, want string }{
		{"apple", ""}, {"pear", ""}, {"plum", "a"}, {"cherry", ""}, {"fig", "c"},
	} {
		if got := ids(search(t, x, c.query, 10, store.Filter{})); got != c.want {
			t.Errorf("Search(%q) = %q, want %q", c.query, got, c.want)
		}
	}
	if n, err := x.Count(); n != 2 || err != nil {
		t.Errorf("Count() = %d, %v, want 2", n, err)
	}
	if err := x.Update(ctx, nil, nil); err != nil {
		t.Errorf("empty update: %v", err)
	}
	if err := x.Update(ctx, []store.KeywordEntry{entry("", "grape")}, nil); err == nil {
		t.Error("an entry without chunk id was taken")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.Search(cancelled, query.Parse("fig"), 1, store.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: %v, want %v", err, context.Canceled)
	}
	if err := x.Update(cancelled, []store.KeywordEntry{entry("g", "grape")}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled update: %v, want %v", err, context.Canceled)
	}
}

func TestSearchEdges(t *testing.T) {
	x := memory(t, entry("a", "apple"))
	for _, query := range []string{"", " ", "\"\"", "!?", "zebra"} {
		if got := search(t, x, query, 10, store.Filter{}); len(got) != 0 {
			t.Errorf("Search(%q) = %v, want none", query, got)
		}
	}
	for _, k := range []int{0, -1} {
		if got := search(t, x, "apple", k, store.Filter{}); len(got) != 0 {
			t.Errorf("Search with k %d = %v, want none", k, got)
		}
	}
	if got := search(t, x, "apple", math.MaxInt, store.Filter{}); ids(got) != "a" {
		t.Errorf("Search with the largest k = %v, want a", got)
	}
	if got := search(t, memory(t), "apple", 10, store.Filter{}); len(got) != 0 {
		t.Errorf("Search of an empty index = %v, want none", got)
	}
}

// TestScore compares with values computed by hand: three chunks of 2, 1 and 3
// words, average 2; apple is in two, so its idf is ln(1 + 1.5/2.5).
func TestScore(t *testing.T) {
	x := memory(t, entry("a", "apple tree"), entry("b", "pear"), entry("c", "apple apple pie"))
	idf := math.Log(1 + 1.5/2.5)
	want := []store.Hit{
		{Chunk: "c", Score: idf * 2 / (2 + 1.5*(.40+.60*3/2))},
		{Chunk: "a", Score: idf * 1 / (1 + 1.5*(.40+.60*2/2))},
	}
	got := search(t, x, "apple", 10, store.Filter{})
	if len(got) != len(want) {
		t.Fatalf("Search(apple) = %v, want %v", got, want)
	}
	for i := range want {
		if got[i].Chunk != want[i].Chunk || math.Abs(got[i].Score-want[i].Score) > 1e-6 {
			t.Errorf("hit %d = %v, want %v", i, got[i], want[i])
		}
	}
}

func TestHeadingsCountMore(t *testing.T) {
	x := memory(t,
		store.KeywordEntry{Chunk: "body", Path: "a.md", Title: "Guide", Trail: []string{"Guide", "Setup"}, Body: "install quota words"},
		store.KeywordEntry{Chunk: "trail", Path: "b.md", Title: "Guide", Trail: []string{"Guide", "Quota"}, Body: "install setup words"})
	if got := ids(search(t, x, "quota", 10, store.Filter{})); got != "trail body" {
		t.Errorf("Search(quota) = %q, want the heading first", got)
	}
	update(t, x, []store.KeywordEntry{{Chunk: "file", Path: "docs/retry-policy.md", Body: "words"}})
	if got := ids(search(t, x, "retryPolicy", 10, store.Filter{})); got != "file" {
		t.Errorf("Search(retryPolicy) = %q, want the file of that name", got)
	}
	if got := ids(search(t, x, `"setup install"`, 10, store.Filter{})); got != "" {
		t.Errorf("a phrase ran from the trail into the body: %q", got)
	}
}

func TestTiesByChunk(t *testing.T) {
	x := memory(t)
	var want []string
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(100) {
		id := fmt.Sprintf("c%02d", i)
		want = append(want, id)
		update(t, x, []store.KeywordEntry{entry(id, "same words")}) // a segment each
	}
	slices.Sort(want)
	if got := ids(search(t, x, "same words", 7, store.Filter{})); got != strings.Join(want[:7], " ") {
		t.Errorf("ties: %q, want %q", got, want[:7])
	}
}

// synthetic makes n entries of Zipf-distributed words with labels and paths.
func synthetic(r *rand.Rand, n int) []store.KeywordEntry {
	zipf := rand.NewZipf(r, 1.1, 4, 2000)
	var entries []store.KeywordEntry
	for i := range n {
		var b strings.Builder
		for range 3 + r.IntN(60) {
			fmt.Fprintf(&b, "word%d ", zipf.Uint64())
		}
		path := fmt.Sprintf("docs/%c/x%d.md", 'a'+rune(r.IntN(4)), r.IntN(30))
		e := store.KeywordEntry{Chunk: store.ChunkID(path, "", i), Path: path, Body: b.String()}
		if r.IntN(3) > 0 {
			e.Labels = store.Labels{Found: true, Tags: []string{fmt.Sprint("Tag", r.IntN(5)), "all"},
				Priority: []string{"", "High", "low"}[r.IntN(3)], Assignee: []string{"", "ada", "Kö"}[r.IntN(3)]}
		}
		entries = append(entries, e)
	}
	return entries
}

// exhaustive scores every entry by the formula, without an index.
type exhaustive struct {
	entries []store.KeywordEntry
	freqs   []map[string]float64
	lengths []int
	docFreq map[string]uint64
	avg     float64
}

func newExhaustive(entries []store.KeywordEntry) *exhaustive {
	x := &exhaustive{entries: entries, docFreq: make(map[string]uint64)}
	var total float64
	for _, e := range entries {
		freqs, length := Terms(e)
		x.freqs = append(x.freqs, freqs)
		x.lengths = append(x.lengths, length)
		total += float64(length)
		for term := range freqs {
			x.docFreq[term]++
		}
	}
	x.avg = total / float64(len(entries))
	return x
}

func (x *exhaustive) search(text string, k int, f store.Filter) []store.Hit {
	q := NewQuery(query.Parse(text))
	var hits []store.Hit
	for i, e := range x.entries {
		var score float64
		for _, w := range q.terms {
			n := x.freqs[i][w.term]
			score += w.count * idf(uint64(len(x.entries)), x.docFreq[w.term]) * n / (n + k1*(1-b+b*float64(x.lengths[i])/x.avg))
		}
		if score > 0 && f.Match(e.Path, e.Labels) {
			hits = append(hits, store.Hit{Chunk: e.Chunk, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(k, len(hits))]
}

// TestAgainstExhaustive compares pruned, filtered answers over several segments
// with deletions to the formula applied to every chunk.
func TestAgainstExhaustive(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	all := synthetic(r, 3000)
	x := memory(t)
	for i := 0; i < len(all); i += 700 {
		update(t, x, all[i:min(i+700, len(all))])
	}
	var stale []string
	var live []store.KeywordEntry
	for i, e := range all {
		if i%7 == 0 {
			stale = append(stale, e.Chunk)
		} else {
			live = append(live, e)
		}
	}
	update(t, x, nil, stale...)

	slow := newExhaustive(live)
	filters := []store.Filter{
		{}, {}, {Tags: []string{"TAG1", "tag3"}}, {Priority: "HIGH"}, {Assignee: "kÖ"}, {PathPrefix: "docs/a/"},
		{PathPrefix: "docs/b/x1"}, {PathPrefix: "docs"}, {PathPrefix: "nowhere"}, {Tags: []string{"all"}, Priority: "low", PathPrefix: "docs/c"},
	}
	for i := range 300 {
		var words []string
		for range 1 + r.IntN(8) {
			words = append(words, fmt.Sprint("word", int(math.Pow(2000, r.Float64()))))
		}
		query, k, f := strings.Join(words, " "), []int{1, 10, 150}[i%3], filters[i%len(filters)]
		got, want := search(t, x, query, k, f), slow.search(query, k, f)
		if len(got) != len(want) {
			t.Fatalf("Search(%q, %d, %+v): %d hits, want %d", query, k, f, len(got), len(want))
		}
		for j := range want {
			if math.Abs(got[j].Score-want[j].Score) > 1e-4 {
				t.Fatalf("Search(%q, %d, %+v) hit %d = %v, want %v", query, k, f, j, got[j], want[j])
			}
		}
	}
}

func TestFilterKeepsScores(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := memory(t, synthetic(r, 500)...)
	scores := make(map[string]float64)
	for _, h := range search(t, x, "word1 word5 word20", 500, store.Filter{}) {
		scores[h.Chunk] = h.Score
	}
	for _, h := range search(t, x, "word1 word5 word20", 500, store.Filter{Tags: []string{"tag2"}}) {
		if scores[h.Chunk] != h.Score {
			t.Errorf("%s scores %v with a filter, %v without", h.Chunk, h.Score, scores[h.Chunk])
		}
	}
}

func TestFuzzy(t *testing.T) {
	x := memory(t, entry("a", "authentication of users"), entry("b", "author of books"), entry("c", "the cat sat"))
	for _, c := range []struct{ query, want string }{
		{"authentcation", "a"}, {"athor", "b"}, {"cta", "c"}, {"czt", "c"}, {"zzzzz", ""}, {"buthor", ""},
		{"teh", ""}, // no stop word is meant
	} {
		hits, err := x.Search(ctx, query.Parse(c.query).WithFuzzy(), 1, store.Filter{})
		if err != nil || ids(hits) != c.want {
			t.Errorf("fuzzy Search(%q) = %v, %v, want %q", c.query, hits, err, c.want)
		}
		if hits := search(t, x, c.query, 1, store.Filter{}); len(hits) > 0 {
			t.Errorf("exact Search(%q) = %v, want none", c.query, hits)
		}
	}
}

func TestStats(t *testing.T) {
	x := memory(t, entry("a", "apple tree"), entry("b", "apple"), entry("c", "pear"))
	stats, n, err := x.Stats(query.Parse("the apple trees fig apple"))
	want := []TermStat{{"appl", 2}, {"tree", 1}, {"fig", 0}}
	if err != nil || n != 3 || !slices.Equal(stats, want) {
		t.Errorf("Stats = %v, %d, %v, want %v, 3", stats, n, err, want)
	}
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "text")
	if _, err := Open(dir, &Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("opening nothing read-only: %v, want %v naming the folder", err, fs.ErrNotExist)
	}
	x, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	update(t, x, synthetic(rand.New(rand.NewPCG(9, 9)), 10_000), "x")
	want := search(t, x, "word1 word50 word300", 20, store.Filter{})
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("opening twice: %v, want %v", err, ErrLocked)
	}
	if err := x.Optimize(ctx); err != nil {
		t.Error(err)
	}
	if got := search(t, x, "word1 word50 word300", 20, store.Filter{}); !slices.Equal(got, want) {
		t.Errorf("after Optimize: %v, want %v", got, want)
	}
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Error(err)
	}
	if _, err := x.Search(ctx, query.Parse("word1"), 1, store.Filter{}); !errors.Is(err, ErrClosed) {
		t.Errorf("searching a closed index: %v, want %v", err, ErrClosed)
	}
	if _, err := x.Count(); !errors.Is(err, ErrClosed) {
		t.Errorf("counting a closed index: %v, want %v", err, ErrClosed)
	}
	if err := x.Update(ctx, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("updating a closed index: %v, want %v", err, ErrClosed)
	}

	for range 2 { // two readers at once
		r, err := Open(dir, &Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := search(t, r, "word1 word50 word300", 20, store.Filter{}); !slices.Equal(got, want) {
			t.Errorf("reopened: %v, want %v", got, want)
		}
		if err := r.Update(ctx, []store.KeywordEntry{entry("a", "b")}, nil); err == nil {
			t.Error("a read-only index took an update")
		}
	}

	r, err := openLinks(dir, t.TempDir()) // as on a full disk
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := search(t, r, "word1 word50 word300", 20, store.Filter{}); !slices.Equal(got, want) {
		t.Errorf("opened from another folder: %v, want %v", got, want)
	}
}

func TestDamage(t *testing.T) {
	build := func(t *testing.T) string {
		dir := t.TempDir()
		x, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		update(t, x, synthetic(rand.New(rand.NewPCG(1, 9)), 200))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	segments := func(t *testing.T, dir string) []string {
		names, err := filepath.Glob(filepath.Join(dir, "*.zap"))
		if err != nil || len(names) == 0 {
			t.Fatalf("segments of %s: %v, %v", dir, names, err)
		}
		return names
	}
	for name, damage := range map[string]func(t *testing.T, dir string) error{
		"root replaced": func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "root.bolt"), []byte("x"), 0o600)
		},
		"segment missing": func(t *testing.T, dir string) error { return os.Remove(segments(t, dir)[0]) },
		"segment cut":     func(t *testing.T, dir string) error { return os.Truncate(segments(t, dir)[0], 100) },
		"segment empty":   func(t *testing.T, dir string) error { return os.Truncate(segments(t, dir)[0], 0) },
		"segment noise": func(t *testing.T, dir string) error {
			name := segments(t, dir)[0]
			data, err := os.ReadFile(name)
			for i := range data {
				data[i] ^= 0x5a
			}
			return errors.Join(err, os.WriteFile(name, data, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := build(t)
			if err := damage(t, dir); err != nil {
				t.Fatal(err)
			}
			x, err := Open(dir, nil)
			if err == nil {
				x.Close()
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Open: %v, want %v naming the folder", err, ErrCorrupt)
			}
		})
	}
	t.Run("format", func(t *testing.T) {
		dir := build(t)
		x, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(x.scorch.SetInternal(stateKey, []byte("0 1")), x.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, nil); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"0", want "`+format) {
			t.Errorf("Open: %v, want %v naming both", err, ErrFormat)
		}
	})
}

func TestConcurrent(t *testing.T) {
	x, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	entries := synthetic(rand.New(rand.NewPCG(2, 2)), 2000)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := x.Search(ctx, query.Parse("word1 word30 -word4"), 10, store.Filter{Tags: []string{"all"}}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for i := 0; i < len(entries); i += 100 {
		update(t, x, entries[i:i+100], entries[i/2].Chunk)
	}
	close(done)
	readers.Wait()
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadWhileOpen: a reader finds the last commit while another process has the index open,
// and still does after that one has merged and removed the segments.
func TestReadWhileOpen(t *testing.T) {
	dir := t.TempDir()
	writer, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for i, entries := 0, synthetic(rand.New(rand.NewPCG(5, 5)), 1000); i < len(entries); i += 100 {
		update(t, writer, entries[i:i+100])
	}
	want := search(t, writer, "word1 word50", 20, store.Filter{})
	reader, err := Open(dir, &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := search(t, reader, "word1 word50", 20, store.Filter{}); !slices.Equal(got, want) {
		t.Errorf("the reader finds %v, want %v", got, want)
	}
	update(t, writer, []store.KeywordEntry{entry("late", "word1 word50")})
	if err := writer.Optimize(ctx); err != nil {
		t.Fatal(err)
	}
	if got := search(t, reader, "word1 word50", 20, store.Filter{}); !slices.Equal(got, want) {
		t.Errorf("after a merge the reader finds %v, want %v", got, want)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, readPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("the reader leaves %q, %v", left, err)
	}
}
