//go:build unix

package keyword

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/text/query"
)

// sections reads the Markdown files below $CAIRN_MARKDOWN, cut at headings.
func sections(tb testing.TB) (entries []store.KeywordEntry, bytes int64) {
	tb.Helper()
	root := os.Getenv("CAIRN_MARKDOWN")
	if root == "" {
		tb.Skip("CAIRN_MARKDOWN is not set: no folder of Markdown to index")
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		bytes += int64(len(data))
		title := ""
		for i, p := range testutil.Pieces(strings.ToValidUTF8(string(data), "")) {
			if title == "" && len(p.Trail) > 0 {
				title = p.Trail[0]
			}
			entries = append(entries, store.KeywordEntry{
				Chunk: store.ChunkID(filepath.ToSlash(rel), "", i), Path: filepath.ToSlash(rel),
				Title: title, Trail: p.Trail, Body: p.Body,
				Labels: store.Labels{Found: true, Tags: []string{[]string{"even", "odd"}[i%2]}},
			})
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return entries, bytes
}

// BenchmarkFolder reports how long a folder takes to index, its size on disk
// and how long queries of eight words take, words of a heading filled up from a
// body: the best of three runs of each.
func BenchmarkFolder(b *testing.B) {
	entries, bytes := sections(b)
	for b.Loop() {
		dir := b.TempDir()
		x, err := Open(dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		start, busy := time.Now(), cpuSeconds(b)
		if err := x.Update(ctx, entries, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "index-s")
		b.ReportMetric(cpuSeconds(b)-busy, "index-cpu-s")
		b.ReportMetric(float64(len(entries)), "chunks")
		b.ReportMetric(float64(bytes)/1e6, "text-MB")
		snap, err := x.snapshot()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(snap.Segments())), "segments")
		snap.Close()
		measure(b, x, entries, "", store.Filter{})

		start = time.Now()
		if err := x.Optimize(ctx); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "merge-s")
		measure(b, x, entries, "one-", store.Filter{})
		measure(b, x, entries, "tag-", store.Filter{Tags: []string{"odd"}})
		measure(b, x, entries, "path-", store.Filter{PathPrefix: "docs/s"})
		start = time.Now()
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1e3, "close-ms")
		var size int64
		files, err := os.ReadDir(dir)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				size += info.Size()
			}
		}
		b.ReportMetric(float64(size)/1e6, "index-MB")
		runtime.GC()
		start = time.Now()
		if x, err = Open(dir, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1e3, "open-ms")
		start = time.Now()
		if _, err := x.Search(ctx, query.Parse("vector iterator"), 10, store.Filter{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1e3, "first-query-ms")
		x.Close()
	}
}

// cpuSeconds is the processor time used so far by the process, user and system.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func measure(b *testing.B, x *Index, entries []store.KeywordEntry, name string, f store.Filter) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	var queries []string
	for len(queries) < 1000 {
		e := entries[r.IntN(len(entries))]
		var words []string
		if len(e.Trail) > 0 {
			words = strings.Fields(e.Trail[len(e.Trail)-1])
		}
		body := strings.Fields(entries[r.IntN(len(entries))].Body)
		for len(words) < 8 && len(body) > 0 {
			words = append(words, body[r.IntN(len(body))])
		}
		queries = append(queries, strings.NewReplacer(`"`, " ", "-", " ").Replace(strings.Join(words[:min(8, len(words))], " ")))
	}
	for _, k := range []int{10, 150} {
		var times []float64
		for _, q := range queries {
			best := time.Hour // of three: other processes' time is not ours
			for range 3 {
				start := time.Now()
				if _, err := x.Search(ctx, query.Parse(q), k, f); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			times = append(times, float64(best.Microseconds())/1e3)
		}
		slices.Sort(times)
		unit := map[int]string{10: "k10", 150: "k150"}[k]
		b.ReportMetric(times[len(times)/2], name+unit+"-p50-ms")
		b.ReportMetric(times[len(times)*95/100], name+unit+"-p95-ms")
	}
}

// BenchmarkDictionaryNear misspells words of a dictionary of a million terms; its
// bytes-a-term are those of memory.
func BenchmarkDictionaryNear(b *testing.B) {
	r := rand.New(rand.NewPCG(11, 12))
	const letters = "eeeetttaaaooiinnsshhrrddlluccmmffwwyyggppbbvvkkxjqz"
	term := func() string {
		w := make([]byte, 3+r.IntN(12))
		for i := range w {
			w[i] = letters[r.IntN(len(letters))]
		}
		return string(w)
	}
	var before, after runtime.MemStats
	terms := map[string]bool{}
	for len(terms) < 1_000_000 {
		terms[term()] = true
	}
	text := strings.Join(slices.Collect(maps.Keys(terms)), "\n")
	clear(terms)
	terms = nil
	runtime.GC()
	runtime.ReadMemStats(&before)
	before.HeapAlloc -= uint64(len(text)) // it is not kept
	d := NewDictionary(text)
	text = ""
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		if _, err := neighbours(d, queryTerm{term: term()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1_000_000, "bytes-a-term")
}
