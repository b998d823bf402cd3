package qdrant

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/store/qdrant/qdranttest"
)

func textEntry(path, body string) store.KeywordEntry {
	return store.KeywordEntry{Chunk: store.ChunkID(path, "x", 0), Path: path, Body: body}
}

func update(t *testing.T, x store.Keyword, entries []store.KeywordEntry, stale ...string) {
	t.Helper()
	if err := x.Update(background, entries, stale); err != nil {
		t.Fatalf("Update of %d entries: %v", len(entries), err)
	}
}

// similar returns the paths that a misspelt query finds.
func similar(t *testing.T, x store.Keyword, text string) string {
	t.Helper()
	hits, err := x.Search(background, query.Parse(text).WithFuzzy(), 10, store.Filter{})
	if err != nil {
		t.Fatalf("fuzzy Search(%q): %v", text, err)
	}
	var paths []string
	for _, h := range hits {
		path, _, _, _ := store.SplitChunkID(h.Chunk)
		paths = append(paths, path)
	}
	return strings.Join(paths, " ")
}

// TestDictionaryIsShared has two clients search what a third one writes, across
// a new generation.
func TestDictionaryIsShared(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		writer := dial(t, addr, nil)
		words := writer.Current().Chunks(1, "m").Keyword()
		var readers []*Keyword
		for range 2 {
			readers = append(readers, dialTo(t, addr, writer.target.Collection, nil).Current().Chunks(1, "m").Keyword())
		}
		want := func(query, paths string) {
			t.Helper()
			for _, x := range append(readers, words) {
				if got := similar(t, x, query); got != paths {
					t.Errorf("%s: %q, want %q", query, got, paths)
				}
			}
		}
		want("quaga", "")
		update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct."), textEntry("door", "A token opens it.")})
		want("quaga", "zoo")
		want("tokne", "door")
		update(t, words, []store.KeywordEntry{textEntry("sky", "A zeppelin rises.")}, store.ChunkID("door", "x", 0))
		want("zepelin", "sky")
		want("tokne", "")
		next, err := writer.Next(background)
		if err != nil {
			t.Fatal(err)
		}
		update(t, next.Chunks(2, "m").Keyword(), []store.KeywordEntry{textEntry("sea", "The walrus sleeps.")})
		if _, err := next.Chunks(2, "m").Vectors().Count(); err != nil {
			t.Fatal(err)
		}
		want("walruss", "")
		if err := next.Activate(background); err != nil {
			t.Fatal(err)
		}
		want("walruss", "sea")
		want("quaga", "")
		if n := readers[0].terms.words.Len(); n != 3 {
			t.Errorf("a reader knows %d terms of the new generation, want sea, walrus and sleep", n)
		}
		if names, err := writer.Collections(background); err != nil || len(names) != 3 {
			t.Errorf("collections: %v, %v, want no more than three", names, err)
		}
		// What was learnt of the old generation is no reason to leave a word out of this one.
		update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
		want("quaga", "zoo")
	})
}

// corpus is texts of words as they are distributed in language, misspellable ones.
func corpus(r *rand.Rand, chunks int) (entries []store.KeywordEntry, words []string) {
	seen := map[string]bool{}
	for len(words) < 800 {
		w := make([]byte, 4+r.IntN(6))
		for i := range w {
			w[i] = "aeioubdklmnrst"[r.IntN(14)]
		}
		if !seen[string(w)] {
			seen[string(w)] = true
			words = append(words, string(w))
		}
	}
	for i := range chunks {
		var body []string
		for range 10 + r.IntN(60) {
			body = append(body, words[int(float64(len(words))*math.Pow(r.Float64(), 3))])
		}
		entries = append(entries, textEntry(fmt.Sprintf("p%04d", i), strings.Join(body, " ")))
	}
	return entries, words
}

// misspelt makes one edit behind the first letter of each word of more than three.
func misspelt(r *rand.Rand, query string) string {
	words := strings.Fields(query)
	for n, w := range words {
		if strings.IndexFunc(w, func(c rune) bool { return c < 'A' || c > 'z' }) >= 0 || len(w) < 4 {
			continue
		}
		i, letter := 1+r.IntN(len(w)-2), string(rune('a'+r.IntN(26)))
		switch r.IntN(4) {
		case 0:
			w = w[:i] + letter + w[i:]
		case 1:
			w = w[:i] + w[i+1:]
		case 2:
			w = w[:i] + letter + w[i+1:]
		default:
			w = w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:]
		}
		words[n] = w
	}
	return strings.Join(words, " ")
}

// TestFuzzyAsOnDisk puts the same misspelt queries to the index on disk: the best
// ten are the same, but for chunks whose scores are equal in six digits.
func TestFuzzyAsOnDisk(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		r := rand.New(rand.NewPCG(7, 8))
		entries, words := corpus(r, 400)
		disk, err := keyword.Memory()
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		remote := dial(t, addr, nil).Current().Chunks(1, "m").Keyword()
		for _, x := range []store.Keyword{disk, remote} {
			update(t, x, entries)
		}
		found := 0
		for range 100 {
			text := misspelt(r, words[r.IntN(len(words))]+" "+words[r.IntN(len(words))])
			want, err := disk.Search(background, query.Parse(text).WithFuzzy(), len(entries), store.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := remote.Search(background, query.Parse(text).WithFuzzy(), len(entries), store.Filter{})
			if err != nil || len(got) != len(want) {
				t.Fatalf("%q: %d hits, %v, on disk %d", text, len(got), err, len(want))
			}
			scores := map[string]float64{}
			for _, h := range want {
				scores[h.Chunk] = h.Score
			}
			for i, h := range got[:min(10, len(got))] {
				found++
				if math.Abs(h.Score/want[i].Score-1) > 1e-5 || math.Abs(scores[h.Chunk]/want[i].Score-1) > 1e-5 {
					t.Errorf("%q, rank %d: %s of %v, on disk %s of %v", text, i+1, h.Chunk, h.Score, want[i].Chunk, want[i].Score)
				}
			}
		}
		if found < 500 {
			t.Errorf("100 queries find %d chunks, too few to tell", found)
		}
	})
}

// logged is a client of its own for a store, with what it logs.
func logged(t *testing.T, c *Client) (*Keyword, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return dialTo(t, c.target.Addr(), c.target.Collection, &Options{Log: slog.New(slog.NewTextHandler(log, nil))}).Current().Chunks(1, "m").Keyword(), log
}

// TestDamagedDictionary harms what is stored: who searches passes it over and
// warns once, and the next writer rebuilds it.
func TestDamagedDictionary(t *testing.T) {
	piece := func(epoch, terms string, sum int64) map[string]*pb.Value {
		return map[string]*pb.Value{"kind": pb.NewValueString("terms"), "epoch": pb.NewValueString(epoch), "terms": pb.NewValueString(terms), "sum": pb.NewValueInt(sum)}
	}
	for name, harm := range map[string]func(x *Keyword) error{
		"changed": func(x *Keyword) error {
			return x.client.update(background, x.terms.documents.name, []*pb.PointStruct{bare(piecePoint(0), piece(x.terms.head.epoch, "quagg", sumOf("quagga")))}, nil)
		},
		"of another": func(x *Keyword) error {
			return x.client.update(background, x.terms.documents.name, []*pb.PointStruct{bare(piecePoint(0), piece("other", "quagga", sumOf("quagga")))}, nil)
		},
		"of another type": func(x *Keyword) error {
			return x.client.update(background, x.terms.documents.name, []*pb.PointStruct{bare(piecePoint(0), map[string]*pb.Value{"terms": pb.NewValueInt(7), "epoch": stringList(nil)})}, nil)
		},
		"missing": func(x *Keyword) error {
			return x.client.update(background, x.terms.documents.name, nil, []string{piecePoint(0)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, qdranttest.New(t, nil).Addr(), nil)
			words := c.Current().Chunks(1, "m").Keyword()
			words.terms.pieceSize = 16
			update(t, words, []store.KeywordEntry{textEntry("zoo", "quagga extinct quagga"), textEntry("zoo2", "quagga")})
			update(t, words, []store.KeywordEntry{textEntry("sky", "zeppelin rises slowly")})
			if n := words.terms.head.pieces; n < 2 {
				t.Fatalf("%d pieces, want several", n)
			}
			if err := harm(words); err != nil {
				t.Fatal(err)
			}
			reader, log := logged(t, c)
			for range 3 {
				if got := similar(t, reader, "quaga") + similar(t, reader, "zepelin"); got != "sky" {
					t.Errorf("with a piece damaged: %q, want sky alone", got)
				}
			}
			if n := strings.Count(log.String(), "missing or damaged"); n != 1 {
				t.Errorf("said %d times, want once:\n%s", n, log)
			}
			other, _ := logged(t, c)
			update(t, other, []store.KeywordEntry{textEntry("sea", "walrus")})
			for query, want := range map[string]string{"zepelin": "sky", "walruss": "sea"} {
				if got := similar(t, reader, query); got != want {
					t.Errorf("after the next change %s finds %q, want %s", query, got, want)
				}
			}
			if got := similar(t, reader, "quaga"); got != "zoo zoo2" && got != "zoo2 zoo" {
				t.Errorf("after the next change quaga finds %q, want both", got)
			}
		})
	}
}

// TestDictionaryOfAnEarlierVersion has texts and no dictionary.
func TestDictionaryOfAnEarlierVersion(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		c := dial(t, addr, nil)
		words := c.Current().Chunks(1, "m").Keyword()
		update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
		if err := c.update(background, words.terms.documents.name, nil, []string{headPoint, piecePoint(0)}); err != nil {
			t.Fatal(err)
		}
		reader, _ := logged(t, c)
		if got := similar(t, reader, "quaga"); got != "" {
			t.Errorf("without a dictionary quaga finds %q", got)
		}
		for range 2 { // the second finds nothing to do
			writer, log := logged(t, c)
			if err := writer.Complete(background); err != nil {
				t.Fatal(err)
			}
			if got := similar(t, reader, "quaga"); got != "zoo" {
				t.Errorf("after Complete quaga finds %q, want zoo", got)
			}
			head := reader.terms.head
			if head.terms != 3 || strings.Contains(log.String(), "level=WARN") {
				t.Errorf("%+v, want zoo, quagga and extinct, and no warning:\n%s", head, log)
			}
		}
	})
}

// TestDictionaryIsBounded fills a small one.
func TestDictionaryIsBounded(t *testing.T) {
	c := dial(t, qdranttest.New(t, nil).Addr(), nil)
	words, log := logged(t, c)
	words.terms.pieceSize, words.terms.maxPieces = 64, 5
	for i := range 20 {
		update(t, words, []store.KeywordEntry{textEntry(fmt.Sprint("p", i), fmt.Sprintf("before%dx between%dx after%dx", i, i, i))})
	}
	if h := words.terms.head; h.pieces != 5 || h.terms < 30 || h.terms > 40 || h.terms != words.terms.words.Len() {
		t.Errorf("%+v with %d known, want five pieces", h, words.terms.words.Len())
	}
	if n := strings.Count(log.String(), "dictionary is full"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, log)
	}
	reader, _ := logged(t, c)
	if got := similar(t, reader, "betwen1x"); !strings.HasPrefix(got, "p1 ") && got != "p1" {
		t.Errorf("betwen1x: %q, want p1 first", got)
	}
	if reader.terms.words.Len() != words.terms.words.Len() {
		t.Errorf("a reader knows %d terms, the writer %d", reader.terms.words.Len(), words.terms.words.Len())
	}
	// A number from elsewhere is not believed.
	if err := c.update(background, words.terms.documents.name, []*pb.PointStruct{bare(headPoint, map[string]*pb.Value{
		"epoch": pb.NewValueString("x"), "pieces": pb.NewValueInt(math.MaxInt64), "terms": pb.NewValueInt(-1),
	})}, nil); err != nil {
		t.Fatal(err)
	}
	if got := similar(t, reader, "betwen1x"); got != "" || reader.terms.head.pieces != maxPieces {
		t.Errorf("a false head: %q, %+v", got, reader.terms.head)
	}
}

// TestDictionaryWriteCutShort lets the writes of a batch fail one after the
// other: each attempt is repeated until all is stored.
func TestDictionaryWriteCutShort(t *testing.T) {
	var fails atomic.Int64
	s := qdranttest.New(t, &qdranttest.Options{Fault: func(_ context.Context, method string) error {
		if strings.HasSuffix(method, "Points/Upsert") && fails.Add(-1) == 0 {
			return status.Error(codes.Internal, "fault")
		}
		return nil
	}})
	c := dial(t, s.Addr(), nil)
	words := c.Current().Chunks(1, "m").Keyword()
	words.terms.pieceSize = 16
	update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
	failed := 0
	for n := range 12 {
		entry := []store.KeywordEntry{textEntry("sky", fmt.Sprintf("zeppelin%d rises%d slowly%d", n, n, n))}
		fails.Store(int64(n + 1))
		if err := words.Update(background, entry, nil); err != nil {
			failed++
		}
		fails.Store(0)
		update(t, words, entry)
		reader, log := logged(t, c)
		if got := similar(t, reader, fmt.Sprintf("zepelin%d", n)) + " " + similar(t, reader, "quaga"); got != "sky zoo" || log.Len() > 0 {
			t.Errorf("with write %d failing: %q, want sky and zoo\n%s", n+1, got, log)
		}
		if have, known := reader.terms.words.Len(), reader.terms.head.terms; have != known {
			t.Errorf("with write %d failing: %d terms are read, %d are told of", n+1, have, known)
		}
	}
	if failed < 3 {
		t.Errorf("%d updates failed, want some at each write", failed)
	}
}

// TestDictionaryIsReadOnce counts the calls of a fuzzy query while nothing changes.
func TestDictionaryIsReadOnce(t *testing.T) {
	s := qdranttest.New(t, nil)
	c := dial(t, s.Addr(), nil)
	words := c.Current().Chunks(1, "m").Keyword()
	entries, _ := corpus(rand.New(rand.NewPCG(1, 2)), 200)
	words.terms.pieceSize = 256
	update(t, words, entries)
	if n := words.terms.head.pieces; n <= askPieces/2 {
		t.Fatalf("%d pieces, want many", n)
	}
	reader, _ := logged(t, c)
	before := s.Calls()
	similar(t, reader, "xuaga")
	first := s.Calls() - before
	before = s.Calls()
	similar(t, reader, "xuaga")
	if second := s.Calls() - before; second > 2 || second >= first {
		t.Errorf("%d calls at first and %d then, want the head and the terms alone", first, second)
	}
	// Several may ask at a time.
	fresh, _ := logged(t, c)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { similar(t, fresh, "xuaga") })
	}
	wg.Wait()
	if got, want := fresh.terms.words.Len(), words.terms.words.Len(); got != want || !slices.Equal(fresh.terms.taken, words.terms.taken) {
		t.Errorf("%d terms are known, want %d", got, want)
	}
}
