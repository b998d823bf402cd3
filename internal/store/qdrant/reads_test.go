package qdrant

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/text/query"
)

// filled returns the chunks of a new store with n documents of a section each, and two
// definitions of Close in source code.
func filled(t *testing.T, c *Client, n int) *Chunks {
	t.Helper()
	chunks := c.Current().Chunks(2, "m")
	var entries []Chunk
	add := func(path, anchor, body string, vector ...float32) {
		id := store.ChunkID(path, anchor, 0)
		entries = append(entries, Chunk{store.KeywordEntry{Chunk: id, Path: path, Body: body}, vector})
	}
	for i := range n {
		add(fmt.Sprintf("d%03d.md", i), "a", "close"+strings.Repeat(" more", i%40), 1, float32(i)/50)
	}
	add("src/file.go", "Close", "func Close()", 0, 1)
	add("src/conn.go", "Close-2", "func Close()", 0, 1)
	add("other/closer.go", "Closer", "type Closer", 0, 1)
	if err := chunks.Update(background, entries, nil, 2); err != nil {
		t.Fatal(err)
	}
	return chunks
}

func TestSearchReadsEachNameOnce(t *testing.T) {
	s := qdranttest.New(t, nil)
	chunks := filled(t, dial(t, s.Addr(), nil), 50)
	q := store.LegsQuery{Query: query.Parse("close"), Vector: []float32{1, 0}, Words: 20, Nearest: 20}
	search := func() (hits store.LegHits, spent time.Duration) {
		t.Helper()
		before := s.Spent()
		hits, err := chunks.SearchLegs(background, q)
		if err != nil {
			t.Fatal(err)
		}
		return hits, s.Spent() - before
	}
	first, cold := search()
	again, warm := search()
	if names := cold - warm; names <= qdranttest.Measured.Call {
		t.Errorf("a search with known names takes %v of the server, the first takes %v", warm, cold)
	}
	if !slices.Equal(first.Keyword, again.Keyword) || !slices.Equal(first.Nearest, again.Nearest) {
		t.Errorf("hits %+v, then %+v", first, again)
	}
	removed := again.Nearest[0].Chunk
	if err := chunks.Update(background, nil, []string{removed}, 2); err != nil {
		t.Fatal(err)
	}
	if hits, _ := search(); slices.ContainsFunc(hits.Nearest, func(h store.Hit) bool { return h.Chunk == removed }) {
		t.Errorf("a search finds %s, which was removed", removed)
	}
}

// TestNamesAreReadInTheBackground: after two searches, another one finds other chunks with
// two calls, which return no payload.
func TestNamesAreReadInTheBackground(t *testing.T) {
	s := qdranttest.New(t, nil)
	client := dial(t, s.Addr(), nil)
	chunks := filled(t, client, 50)
	search := func(vector ...float32) time.Duration {
		t.Helper()
		before := s.Spent()
		if _, err := chunks.SearchLegs(background, store.LegsQuery{Query: query.Parse("close"), Vector: vector, Words: 3, Nearest: 3}); err != nil {
			t.Fatal(err)
		}
		return s.Spent() - before
	}
	search(1, 0)
	search(1, 0)
	client.tasks.Wait()
	if known, other := search(1, 0), search(0, 1); other > known {
		t.Errorf("a search that finds other chunks takes %v of the server, one that finds the same takes %v", other, known)
	}
}

func TestSearchFindsDefinitionsAtAnyRank(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		chunks := filled(t, dial(t, addr, nil), 40)
		for _, test := range []struct {
			prefix string
			want   []string
		}{
			{"", []string{"src/conn.go#Close-2.0", "src/file.go#Close.0"}},
			{"src/f", []string{"src/file.go#Close.0"}},
			{"other/", nil},
		} {
			q := store.LegsQuery{Query: query.Parse("Close"), Vector: []float32{1, 0}, Words: 3, Nearest: 3, Symbol: "Close", Filter: store.Filter{PathPrefix: test.prefix}}
			hits, err := chunks.SearchLegs(background, q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits.Nearest {
				if path, anchor, _, _ := store.SplitChunkID(h.Chunk); anchor != "a" && path != "other/closer.go" {
					got = append(got, h.Chunk)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("below %q the definitions are %q, want %q", test.prefix, got, test.want)
			}
		}
	})
}

func TestLoadKeepsUnchangedDocuments(t *testing.T) {
	s := qdranttest.New(t, nil)
	writer := dial(t, s.Addr(), nil)
	reader := dialTo(t, s.Addr(), writer.target.Collection, nil).Current().Documents()
	documents := writer.Current().Documents()
	put := func(path, text string) {
		t.Helper()
		if err := documents.Put(background, &store.Document{Path: path, Hash: "same"}, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
	read := func() map[string]string {
		t.Helper()
		all, err := reader.Load(background, "a.md", "b.md", "none.md")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for path, d := range all {
			texts[path] = string(d.Text)
		}
		return texts
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		if got := read(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	long := string(make([]byte, 100_000))
	put("a.md", long+"1")
	put("b.md", "1")
	check("at first", map[string]string{"a.md": long + "1", "b.md": "1"})
	before := s.Spent()
	check("again", map[string]string{"a.md": long + "1", "b.md": "1"})
	if took := s.Spent() - before; took > qdranttest.Measured.Kilobyte*100 {
		t.Errorf("reading unchanged documents costs %v, as much as their texts", took)
	}
	put("a.md", "2") // with the same hash
	check("after a change", map[string]string{"a.md": "2", "b.md": "1"})
	if err := documents.Delete(background, []string{"b.md"}); err != nil {
		t.Fatal(err)
	}
	check("after a removal", map[string]string{"a.md": "2"})
	put("b.md", "3")
	check("after another version", map[string]string{"a.md": "2", "b.md": "3"})
}

func TestFuzzySearchReadsTheDictionaryOnce(t *testing.T) {
	s := qdranttest.New(t, nil)
	chunks := filled(t, dial(t, s.Addr(), nil), 3)
	words := make([]string, 50_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%06d", i)
	}
	if err := chunks.Complete(background, append(words, "closer")); err != nil {
		t.Fatal(err)
	}
	search := func() time.Duration {
		before := s.Spent()
		hits, err := chunks.Keyword().Search(background, query.Parse("closre").WithFuzzy(), 10, store.Filter{})
		if err != nil || len(hits) == 0 {
			t.Fatalf("%d hits, error %v", len(hits), err)
		}
		return s.Spent() - before
	}
	search()
	if spent, all := search(), 550*qdranttest.Measured.Kilobyte; spent > all {
		t.Errorf("a search with a known dictionary takes %v of the server, reading it takes %v", spent, all)
	}
}
