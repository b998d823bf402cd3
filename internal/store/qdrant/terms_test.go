package qdrant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/text/query"
)

func textEntry(path, body string) store.KeywordEntry {
	return store.KeywordEntry{Chunk: store.ChunkID(path, "x", 0), Path: path, Body: body}
}

// indexed is a keyword index in a store, with the writer's own index of the same chunks,
// of which the average length and the dictionary are, as in package mirror.
type indexed struct {
	Keyword
	own *keyword.Index
}

var _ store.Keyword = (*indexed)(nil)

func index(t *testing.T, c *Chunks) *indexed {
	t.Helper()
	own, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	return &indexed{c.Keyword(), own}
}

func (x *indexed) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	err := x.own.Update(ctx, entries, stale)
	if err != nil {
		return err
	}
	chunks := make([]Chunk, len(entries))
	for i, e := range entries {
		chunks[i].KeywordEntry = e
	}
	average, err := x.own.AverageLength()
	if err == nil {
		err = x.Chunks.Update(ctx, chunks, stale, average)
	}
	if err != nil {
		return err
	}
	terms, err := x.own.Spellings()
	if err != nil {
		return err
	}
	return x.Complete(ctx, terms)
}

func (x *indexed) Position() uint64 { return 0 }

func (x *indexed) Close() error { return nil }

func update(t *testing.T, x store.Keyword, entries []store.KeywordEntry, stale ...string) {
	t.Helper()
	if err := x.Update(background, entries, stale); err != nil {
		t.Fatalf("Update of %d entries: %v", len(entries), err)
	}
}

// similar returns the paths that a misspelt query finds.
func similar(t *testing.T, x store.KeywordSearcher, text string) string {
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
		words := index(t, writer.Current().Chunks(1, "m"))
		var readers []Keyword
		for range 2 {
			readers = append(readers, dialTo(t, addr, writer.target.Collection, nil).Current().Chunks(1, "m").Keyword())
		}
		want := func(query, paths string) {
			t.Helper()
			for _, x := range append(readers, words.Keyword) {
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
		update(t, index(t, next.Chunks(2, "m")), []store.KeywordEntry{textEntry("sea", "The walrus sleeps.")})
		if _, err := next.Chunks(2, "m").Vectors().Count(); err != nil {
			t.Fatal(err)
		}
		want("walruss", "")
		if err := next.Activate(background); err != nil {
			t.Fatal(err)
		}
		want("walruss", "sea")
		want("quaga", "")
		if want := (keyword.Dictionary{"s": "sea\nsleep\n", "w": "walrus\n"}); !reflect.DeepEqual(readers[0].terms.words, want) {
			t.Errorf("a reader knows %v of the new generation, want %v", readers[0].terms.words, want)
		}
		for _, removed := range []string{"-1", "-documents-1"} {
			if _, err := writer.describe(background, writer.target.Collection+removed); !errors.Is(err, errMissing) {
				t.Errorf("collection %s of the old generation: %v, want not found", removed, err)
			}
		}
		// What was learnt of the old generation is no reason to leave a word out of this one.
		update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
		want("quaga", "zoo")
	})
}

// logged is a client of its own for a store, with what it logs.
func logged(t *testing.T, c *Client) (Keyword, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return dialTo(t, c.target.Addr(), c.target.Collection, &Options{Log: slog.New(slog.NewTextHandler(log, nil))}).Current().Chunks(1, "m").Keyword(), log
}

// TestDamagedDictionary changes what is stored: a server skips it and warns once, and the
// next writer replaces it.
func TestDamagedDictionary(t *testing.T) {
	point := func(text string, parts int64) *pb.PointStruct {
		return bare(dictionaryPoint, map[string]*pb.Value{"kind": pb.NewValueString("dictionary"), "hash": pb.NewValueString(hashOf([]byte("quagga"))), "text": pb.NewValueString(text), "parts": pb.NewValueInt(parts)})
	}
	for name, p := range map[string]*pb.PointStruct{
		"changed": point("quagg", 0), "a missing part": point("quagga", 1), "a number that is not possible": point("quagga", math.MaxInt64), "less than none": point("", -1),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, qdranttest.New(t, nil).Addr(), nil)
			words := index(t, c.Current().Chunks(1, "m"))
			update(t, words, []store.KeywordEntry{textEntry("zoo", "quagga extinct quagga"), textEntry("zoo2", "quagga")})
			if err := words.documents.update(background, []*pb.PointStruct{p}); err != nil {
				t.Fatal(err)
			}
			reader, log := logged(t, c)
			for range 3 {
				if got := similar(t, reader, "quaga"); got != "" {
					t.Errorf("with a damaged dictionary: %q, want nothing", got)
				}
			}
			if n := strings.Count(log.String(), "missing or damaged"); n != 1 {
				t.Errorf("%d warnings, want one:\n%s", n, log)
			}
			update(t, words, []store.KeywordEntry{textEntry("sea", "walrus")})
			if got := similar(t, reader, "walruss") + " " + similar(t, reader, "quaga"); got != "sea zoo zoo2" {
				t.Errorf("after the next change: %q, want sea zoo zoo2", got)
			}
		})
	}
}

// TestDictionaryOfAnEarlierVersion has texts and no dictionary.
func TestDictionaryOfAnEarlierVersion(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		c := dial(t, addr, nil)
		words := index(t, c.Current().Chunks(1, "m"))
		update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
		if err := words.documents.update(background, nil, dictionaryPoint); err != nil {
			t.Fatal(err)
		}
		reader, _ := logged(t, c)
		if got := similar(t, reader, "quaga"); got != "" {
			t.Errorf("without a dictionary quaga finds %q", got)
		}
		update(t, words, nil)
		if got := similar(t, reader, "quaga"); got != "zoo" {
			t.Errorf("with one quaga finds %q, want zoo", got)
		}
	})
}

// TestDictionaryIsBounded fills a small one with the commonest terms.
func TestDictionaryIsBounded(t *testing.T) {
	c := dial(t, qdranttest.New(t, nil).Addr(), nil)
	words, log := logged(t, c)
	x := &indexed{words, index(t, words.Chunks).own}
	x.terms.maxBytes = 16
	update(t, x, []store.KeywordEntry{textEntry("a", "quagga walrus zeppelin"), textEntry("b", "quagga walrus"), textEntry("c", "quagga")})
	if !strings.Contains(log.String(), "dictionary is full") {
		t.Errorf("no warning of a full dictionary:\n%s", log)
	}
	if got := similar(t, words, "quaga") + "/" + similar(t, words, "zepelin"); got != "c b a/" {
		t.Errorf("quaga and zepelin find %q, want the former alone", got)
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
	words := index(t, c.Current().Chunks(1, "m"))
	update(t, words, []store.KeywordEntry{textEntry("zoo", "The quagga is extinct.")})
	failed := 0
	for n := range 6 {
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
	}
	if failed < 2 {
		t.Errorf("%d updates failed, want some at each write", failed)
	}
}

// TestDictionaryIsReadOnce counts the calls of a fuzzy query while nothing changes.
func TestDictionaryIsReadOnce(t *testing.T) {
	s := qdranttest.New(t, nil)
	c := dial(t, s.Addr(), nil)
	words := index(t, c.Current().Chunks(1, "m"))
	entries := []store.KeywordEntry{textEntry("zoo", "The quagga is extinct."), textEntry("sea", "The walrus sleeps.")}
	update(t, words, entries)
	reader, _ := logged(t, c)
	before := s.Calls()
	similar(t, reader, "xuaga")
	first := s.Calls() - before
	before = s.Calls()
	similar(t, reader, "xuaga")
	if second := s.Calls() - before; second > 2 || second >= first {
		t.Errorf("%d calls at first and %d then, want the head and the terms alone", first, second)
	}
	before = s.Calls()
	update(t, words, entries[:1])
	if n := s.Calls() - before; n > 2 {
		t.Errorf("an update without a new word takes %d calls, want the chunk and the head", n)
	}
	// Several may ask at a time.
	fresh, _ := logged(t, c)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { similar(t, fresh, "xuaga") })
	}
	wg.Wait()
	if !reflect.DeepEqual(fresh.terms.words, reader.terms.words) || len(reader.terms.words) == 0 {
		t.Errorf("one server knows %v, another %v", fresh.terms.words, reader.terms.words)
	}
}
