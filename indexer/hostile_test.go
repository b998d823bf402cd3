//go:build unix

package indexer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/text/query"
	"cairn/internal/text/walk"
)

// hostileDocument is a kind of document that was, or could be, made to exhaust the
// indexer.
type hostileDocument struct {
	name string // of the file
	make func(n int) string
}

// hostileDocuments are made at any size, in bytes; the default limit is 10 MiB.
var hostileDocuments = []hostileDocument{
	{"prose.md", fill(prose)},
	{"headings.md", repeated("# a\n")},
	{"headings-empty.md", repeated("#\n")},
	{"headings-distinct.md", numbered("# h%d\n")},
	{"headings-levels.md", numbered("%h h%d\n")},
	{"headings-blank.md", repeated("# a\n\n")},
	{"headings-ids.md", numbered("# a {#i%d}\n")},
	{"headings-text.md", numbered("## h%d\n\nword\n\n")},
	{"headings-emphasis.md", repeated("# *a* **b** `c` [d](e)\n")},
	{"headings-nested.md", repeated("- # a\n")},
	{"headings-quoted.md", repeated("> # a\n\n")},
	{"setext.md", repeated("a\n=\n")},
	{"setext-blank.md", repeated("a\n=\n\n")},
	{"setext-long.md", once("a\n", "===\n")},
	{"heading-long.md", once("# ", "word ")},
	{"heading-long-then-many.md", func(n int) string { return "# " + repeated("word ")(n/2) + "\n" + repeated("## b\n")(n/2) }},
	{"heading-brackets.md", once("# ", "[")},
	{"heading-stars.md", once("# ", "*a_")},
	{"returns.md", repeated("\r")},
	{"returns-text.md", repeated("a\r")},
	{"returns-headings.md", repeated("# a\r")},
	{"returns-blank.md", repeated("a\r\r")},
	{"crlf.md", repeated("a\r\n")},
	{"newlines.md", repeated("\n")},
	{"lines.md", repeated("a\n")},
	{"paragraphs.md", repeated("a\n\n")},
	{"blanks.md", repeated(" ")},
	{"tabs.md", repeated("\t\n")},
	{"one-word.md", repeated("a")},
	{"one-line.md", repeated("a b ")},
	{"words-distinct.md", numbered("w%d ")},
	{"words-random.md", fill(func(r *rand.Rand) string { return fmt.Sprintf("%x ", r.Uint64()) })},
	{"words-random-lines.md", fill(func(r *rand.Rand) string { return fmt.Sprintf("%x\n\n", r.Uint64()) })},
	{"words-short.md", fill(func(r *rand.Rand) string { return string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26))) + " " })},
	{"compounds.md", numbered("a%d_b%d.c%d-d%d ")},
	{"camel.md", fill(func(r *rand.Rand) string { return fmt.Sprintf("Ab%dCd%dEf ", r.IntN(1e6), r.IntN(1e6)) })},
	{"versions.md", numbered("1.2.%d.4 ")},
	{"punctuation.md", repeated("!?.,;:")},
	{"emoji.md", repeated("😀")},
	{"ligatures.md", repeated("ﷺ")},
	{"accents.md", repeated("a\u0301\u0300\u0302")},
	{"han.md", fill(func(r *rand.Rand) string { return string(rune(0x4e00 + r.IntN(20000))) })},
	{"thai.md", repeated("ก")},
	{"quotes-deep.md", once("", ">")},
	{"quotes-lines.md", repeated(strings.Repeat(">", 60) + "a\n")},
	{"quotes-growing.md", growing(">", "a\n")},
	{"lists-deep.md", once("", "- ")},
	{"lists-lines.md", repeated(strings.Repeat("- ", 60) + "a\n")},
	{"lists-growing.md", growing("  ", "- a\n")},
	{"lists-blank.md", once(strings.Repeat("- ", 60)+"a\n", "\n")},
	{"lists-blank-lines.md", once(strings.Repeat("- ", 60)+"a\n", "\n\n a\n")},
	{"list.md", repeated("- a\n")},
	{"list-empty.md", repeated("-\n")},
	{"list-ordered.md", numbered("%d. a\n")},
	{"rules.md", repeated("---\n")},
	{"fences.md", repeated("```\n```\n")},
	{"fence-open.md", once("```\n", "a\n")},
	{"fence-blank.md", once("```\n", "\n")},
	{"code.md", repeated("    a\n")},
	{"backticks.md", growing("`", " ")},
	{"definitions.md", numbered("[a%d]: b\n")},
	{"definitions-blank.md", numbered("[a%d]: b\n\n")},
	{"definitions-open.md", repeated("[a\n")},
	{"brackets.md", repeated("[")},
	{"links-open.md", repeated("[](")},
	{"links-images.md", repeated("![a](")},
	{"links.md", numbered("[a](b%d)")},
	{"wikilinks.md", repeated("[[a")},
	{"tables.md", repeated("|a|b|c|\n|-|-|-|\n")},
	{"table-wide.md", once("|", "a|")},
	{"html.md", repeated("<p>\n\n")},
	{"html-open.md", once("<div>\n", "a\n")},
	{"html-anchors.md", numbered("<a id=x%d>\n")},
	{"html-quotes.md", repeated("<a b=\"")},
	{"html-less.md", repeated("<")},
	{"html-ids.md", repeated("<a id=\"")},
	{"comments.md", repeated("<!--")},
	{"scripts.md", repeated("<script>")},
	{"entities.md", repeated("&amp;")},
	{"shortcodes.md", repeated("{{< ")},
	{"front-tags.md", func(n int) string {
		return "---\ntags:\n" + numbered("- t%d\n")(min(n, 200<<10)) + "---\n" + repeated("a\n\n")(n)
	}},
	{"front-title.md", func(n int) string {
		return "---\ntitle: " + repeated("word ")(min(n, 60<<10)) + "\n---\n" + repeated("# a\n")(n)
	}},
	{"front-keys.md", func(n int) string { return "---\n" + numbered("k%d: v\n")(min(n, 250<<10)) + "---\na\n" }},
	{"front-flow.md", func(n int) string { return "---\na: [" + repeated("a,")(min(n, 60<<10)) + "a]\n---\na\n" }},
	{"front-deep.md", func(n int) string { return "---\n" + growing(" ", "a:\n")(min(n, 250<<10)) + "---\na\n" }},
	{"text.txt", repeated("a\n")},
	{"text-paragraphs.txt", repeated("a\n\n")},
	{"titles.rst", repeated("a\n--\n\n")},
	{"labels.rst", numbered(".. _a%d:\n")},
	{"declarations.go", func(n int) string { return "package a\n" + numbered("var a%d int\n")(n) }},
	{"parentheses.go", func(n int) string { return "package a\nvar a = " + repeated("(")(n) }},
	{"functions.py", numbered("def a%d\n")},
	{"defines.h", repeated("#define a(\n")},
	{"imports.mdx", repeated("import a from 'b'\n")},
	{"jsx.mdx", repeated("<A b={{{")},
}

func prose(r *rand.Rand) string {
	words := strings.Fields("the index of a folder holds its documents in sections and chunks that queries find by word and by meaning")
	var b strings.Builder
	for range 12 + r.IntN(12) {
		b.WriteString(words[r.IntN(len(words))] + " ")
	}
	return b.String() + ".\n\n"
}

func repeated(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) }
}

func once(first, s string) func(int) string {
	return func(n int) string { return first + strings.Repeat(s, max(0, n-len(first))/len(s)) }
}

// numbered repeats s with a number for each "%d" and one to six "#" for "%h".
func numbered(s string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			_, _ = strings.NewReplacer("%d", strconv.Itoa(i), "%h", "######"[:1+i%6]).WriteString(&b, s)
		}
		return b.String()
	}
}

// growing writes lines with one more mark each, as often as the size allows.
func growing(mark, line string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(mark, i) + line)
		}
		return b.String()
	}
}

func fill(word func(*rand.Rand) string) func(int) string {
	return func(n int) string {
		r := rand.New(rand.NewPCG(1, 2))
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(word(r))
		}
		return b.String()
	}
}

var hostileOptions = &Options{Walk: &walk.Options{Extensions: []string{".md", ".mdx", ".txt", ".rst", ".go", ".py", ".h"}}}

// usage is what indexing a document took.
type usage struct {
	alloc   float64 // bytes in total
	seconds float64 // of processor time
}

// indexOne brings an index with one document up to date, except for vectors.
func indexOne(t *testing.T, d hostileDocument, n int) usage {
	t.Helper()
	f := newFixture(t, t.TempDir(), hostileOptions)
	f.write(d.name, d.make(n))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := testutil.ProcessorTime().Seconds()
	if _, err := f.Refresh(t.Context(), nil); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	seconds := testutil.ProcessorTime().Seconds() - start
	runtime.ReadMemStats(&after)
	return usage{float64(after.TotalAlloc - before.TotalAlloc), seconds}
}

// A document of any shape costs its size times a constant, and that is a multiple of
// what prose costs. Of 400,000 headings one took 12 KB each, and ended the process.
func TestHostileDocumentsAreLinear(t *testing.T) {
	if testutil.Race {
		t.Skip("the race detector changes what things cost")
	}
	const size = 32 << 10
	least := func(u, v usage) usage { return usage{min(u.alloc, v.alloc), min(u.seconds, v.seconds)} }
	prose := indexOne(t, hostileDocuments[0], 4*size)
	for _, d := range hostileDocuments {
		small, large := indexOne(t, d, size), indexOne(t, d, 4*size)
		// Other processes only add to the time, so the least of several measurements counts.
		slow := func() bool { return large.seconds > 8*small.seconds+prose.seconds || large.seconds > 40*prose.seconds }
		for n := 0; n < 7 && slow(); n++ {
			small, large = least(small, indexOne(t, d, size)), least(large, indexOne(t, d, 4*size))
		}
		t.Logf("%-28s %6.1f MB %.2f s; prose %6.1f MB %.2f s", d.name, large.alloc/1e6, large.seconds, prose.alloc/1e6, prose.seconds)
		if large.alloc > 6*small.alloc+8<<20 {
			t.Errorf("%s: %.0f MB for four times the size of one that takes %.0f MB", d.name, large.alloc/1e6, small.alloc/1e6)
		}
		if slow() {
			t.Errorf("%s: %.2f s for four times the size of one that takes %.2f s, where prose takes %.2f s", d.name, large.seconds, small.seconds, prose.seconds)
		}
		if large.alloc > 40*prose.alloc {
			t.Errorf("%s: %.0f MB, where prose takes %.0f MB", d.name, large.alloc/1e6, prose.alloc/1e6)
		}
	}
}

// TestWordsEnd: a file may have many words, and many different words, but not any number.
func TestWordsEnd(t *testing.T) {
	for text, whole := range map[string]bool{
		strings.Repeat("b ", maxWords-1):  true,
		strings.Repeat("b ", 2*maxWords):  false,
		strings.Repeat("日", maxWords/2-1): true,
		strings.Repeat("日", maxWords):     false,
	} {
		if end := wordsEnd(text); (end == len(text)) != whole || end < maxWords {
			t.Errorf("%d of %d bytes of %.4q, want all: %v", end, len(text), text, whole)
		}
	}
}

// Headings beyond the limit of a file are text, words beyond the limit are not indexed, and
// the list of skipped files includes the file until it changes.
func TestFileBeyondTheLimitsIsIndexedInPart(t *testing.T) {
	if testing.Short() {
		t.Skip("large files, each for one goroutine")
	}
	f := newFixture(t, t.TempDir(), nil)
	many := repeated("# a\n")(45_000) + "last\n"
	f.write("headings.md", many)
	f.write("words.md", numbered("w%d ")(3<<20)+"# zebra\n")
	f.write("prose.md", fill(prose)(1000))
	want := map[string]int{cutPrefix + "too many headings": 1, cutPrefix + "too many words": 1}
	for _, run := range []string{"first", "unchanged"} {
		r := f.run()
		if diff := cmp.Diff(want, r.Skipped); diff != "" || r.Files != 3 {
			t.Errorf("%s run: %d files, skipped (-want +got):\n%s", run, r.Files, diff)
		}
	}
	for _, q := range []struct {
		word string
		hits int
	}{{"last", 1}, {"w17", 1}, {"zebra", 0}} {
		if hits, err := f.stores.Keyword.Search(t.Context(), query.Parse(q.word), 10, store.Filter{}); err != nil || len(hits) != q.hits {
			t.Errorf("searching %q: %v, %v, want %d hits", q.word, hits, err, q.hits)
		}
	}
	f.write("headings.md", "# a\n")
	f.write("words.md", "# b\n")
	if r := f.run(); len(r.Skipped) > 0 {
		t.Errorf("after the files were made small: skipped %v, want none", r.Skipped)
	}
}

// TestHostileDocumentsAtFullSize indexes each document at the largest size that is
// read, in a process of its own, and logs the peak of its memory and its processor
// time. CAIRN_HOSTILE is a regular expression of the documents' names.
func TestHostileDocumentsAtFullSize(t *testing.T) {
	const size = 10<<20 - 64
	if name := os.Getenv("CAIRN_HOSTILE_CHILD"); name != "" {
		base := peakRSS(t)
		for _, d := range hostileDocuments {
			if d.name != name {
				continue
			}
			f := newFixture(t, filepath.Dir(os.Getenv("CAIRN_HOSTILE_FILE")), hostileOptions)
			start := testutil.ProcessorTime().Seconds()
			r, err := f.Refresh(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("RESULT %d %.2f %d %d %v\n", (peakRSS(t)-base)>>20, testutil.ProcessorTime().Seconds()-start, r.Sections, r.Chunks, r.Skipped)
		}
		return
	}
	part := os.Getenv("CAIRN_HOSTILE")
	if part == "" {
		t.Skip("CAIRN_HOSTILE names no documents")
	}
	only := regexp.MustCompile(part)
	for _, d := range hostileDocuments {
		if !only.MatchString(d.name) {
			continue
		}
		file := filepath.Join(t.TempDir(), d.name)
		text := d.make(size)
		write(t, filepath.Dir(file), d.name, text[:min(len(text), 10<<20)])
		cmd := exec.Command(os.Args[0], "-test.run=^TestHostileDocumentsAtFullSize$", "-test.timeout=300s")
		cmd.Env = append(os.Environ(), "CAIRN_HOSTILE_CHILD="+d.name, "CAIRN_HOSTILE_FILE="+file)
		out, err := cmd.CombinedOutput()
		var mib, sections, chunks int
		var seconds float64
		var skipped string
		for line := range strings.Lines(string(out)) {
			if rest, ok := strings.CutPrefix(line, "RESULT "); ok {
				_, _ = fmt.Sscanf(rest, "%d %f %d %d", &mib, &seconds, &sections, &chunks)
				skipped = strings.TrimSpace(rest[strings.Index(rest, "map"):])
			}
		}
		t.Logf("%-28s %5d MiB %6.2f s %6d sections %6d chunks %s", d.name, mib, seconds, sections, chunks, skipped)
		if err != nil || mib > 256 {
			t.Errorf("%s: %d MiB, want at most 256 MiB: %v %.500s", d.name, mib, err, out)
		}
	}
}
