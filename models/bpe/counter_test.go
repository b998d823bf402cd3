package bpe

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// oracle is tiktoken-go with the same embedded vocabulary.
var oracle = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	t, err := tiktoken.GetEncoding("cl100k_base")
	if err != nil {
		panic(err)
	}
	return t
})

// check compares the pieces' sum and reports whether it is right.
func check(t *testing.T, c *Counter, text string) {
	t.Helper()
	if got, want := c.CountTokens(text), len(oracle().EncodeOrdinary(text)); got != want {
		t.Errorf("CountTokens(%.300q) = %d, want %d", text, got, want)
	}
}

// Counts known from OpenAI's own tokenizer page and cookbook.
func TestCountTokensKnown(t *testing.T) {
	var c Counter
	for _, k := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"tiktoken is great!", 6},
		{"antidisestablishmentarianism", 6},
		{"2 + 2 = 4", 7},
		{"お誕生日おめでとう", 9},
	} {
		if got := c.CountTokens(k.text); got != k.want {
			t.Errorf("CountTokens(%q) = %d, want %d", k.text, got, k.want)
		}
	}
}

var tricky = []string{
	" ", "  ", "   a", "\n", "\n\n\n", " \n \n x", "\r\n\r\n", "a\r\n b", "\t\tx", "\u00a0\u00a0x", " \u3000 y", "x \t", "\u0085a\u2028b", "a  \n",
	"it's I'LL you'Re 'tis 've ' 'x ''s 'ſ 'l", "don't DON'T we'd they've I'm", "'s'S's", "1234567 12 1,234.56 ½²Ⅷ ١٢٣٤", "a1b22c333d4444",
	"$foo @bar #baz !x \u2019s", "foo();\n\n  bar", "...\r\n...", " ...\n", "!?\n \n", "{\"a\": [1, 2]}\n", "\x00\x01\x02", "<|endoftext|><|fim_prefix|>",
	"中文分词 日本語 한국어", "naïve e\u0301 \u0301x", "🙂👨‍👩‍👧 ❤️", "\ufffd\ufeffx", "\xff\xfe a\xc3", "\xed\xa0\x80", "_snake_case__ CamelCase", "\u200b\u200bword",
	strings.Repeat(" ", 63), strings.Repeat(" ", 64) + "x", strings.Repeat(" ", 200), strings.Repeat("=", 500), strings.Repeat("-", 65), strings.Repeat("a", 64),
	strings.Repeat("a", 65), strings.Repeat("ab", 1000), strings.Repeat("the", 300), strings.Repeat("é", 100), strings.Repeat("中", 100), strings.Repeat("\n", 300), strings.Repeat("🙂", 40),
}

func TestCountTokensTricky(t *testing.T) {
	var c Counter
	for _, text := range tricky {
		check(t, &c, text)
	}
}

// Random texts over the borders between the pattern's classes.
func TestCountTokensRandom(t *testing.T) {
	var c Counter
	rng := rand.New(rand.NewPCG(1, 2))
	pools := []func() rune{
		func() rune { return rune(rng.IntN(0x80)) },
		func() rune { return rune("'stTrReEvVmMlLdD "[rng.IntN(17)]) },
		func() rune { return []rune(" \n\r\t\u00a0\u2003\u0085\u3000")[rng.IntN(8)] },
		func() rune { return rune('a' + rng.IntN(26)) },
		func() rune { return rune('0' + rng.IntN(10)) },
		func() rune { return rune(rng.IntN(0x3000)) },
		func() rune { return rune(rng.IntN(0x20000)) },
	}
	for range 20000 {
		var b strings.Builder
		for range rng.IntN(30) {
			pool := pools[rng.IntN(len(pools))]
			for range 1 + rng.IntN(4) {
				b.WriteRune(pool())
			}
		}
		check(t, &c, b.String())
	}
}

// Words of up to a kilobyte are merged as a whole.
func TestLongWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var c Counter
	for range 20 {
		b := make([]byte, 64+rng.IntN(longest-63))
		for i := range b {
			b[i] = "etaoinshrdlu"[rng.IntN(12)]
		}
		check(t, &c, string(b))
	}
}

// A megabyte without a break: 2^40 steps for an algorithm of quadratic time.
func TestMegabyteWord(t *testing.T) {
	var c Counter
	// 8 letters are one token, as the oracle says of a smaller word.
	check(t, &c, strings.Repeat("a", 4096))
	if got, want := c.CountTokens(strings.Repeat("a", 1<<20)), 1<<20/8; got != want {
		t.Errorf("CountTokens(a megabyte of a) = %d, want %d", got, want)
	}
}

func TestConcurrentFirstUse(t *testing.T) {
	var c Counter
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := c.CountTokens("tiktoken is great!"); got != 6 {
				t.Errorf("CountTokens = %d, want 6", got)
			}
		})
	}
	wg.Wait()
}

// The vocabulary is the published one, as tiktoken-go-loader embeds it.
func TestVocabulary(t *testing.T) {
	want, err := loader.NewOfflineLoader().LoadTiktokenBpe("cl100k_base.tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	var c Counter
	c.CountTokens("load")
	if diff := cmp.Diff(want, c.ranks); diff != "" {
		t.Errorf("(-want +got)\n%.1000s", diff)
	}
}

func FuzzCountTokens(f *testing.F) {
	for _, text := range tricky {
		f.Add(text)
	}
	var c Counter
	f.Fuzz(func(t *testing.T, text string) { check(t, &c, text) })
}

// documents returns the evaluation sets' texts, up to size bytes from each.
func documents(tb testing.TB, size int) []string {
	tb.Helper()
	dir := os.Getenv("CAIRN_DATA")
	if dir == "" {
		tb.Skip("CAIRN_DATA names no folder")
	}
	files, err := filepath.Glob(filepath.Join(dir, "docs", "*", "corpus.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no corpora in %s: %v", dir, err)
	}
	var texts []string
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		n := 0
		for d := json.NewDecoder(bufio.NewReader(f)); d.More() && n < size; {
			var doc struct {
				Text string `json:"text"`
			}
			if err := d.Decode(&doc); err != nil {
				tb.Fatal(err)
			}
			n += len(doc.Text)
			texts = append(texts, doc.Text)
		}
		f.Close()
	}
	return texts
}

func TestCountTokensDocuments(t *testing.T) {
	var c Counter
	for _, text := range documents(t, 1<<19) {
		check(t, &c, text)
	}
}

func BenchmarkCountTokens(b *testing.B) {
	var c Counter
	texts := documents(b, 1<<20)
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	c.CountTokens("load")
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			c.CountTokens(text)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept Counter
	kept.load()
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		new(Counter).load()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-held")
	runtime.KeepAlive(&kept)
}
