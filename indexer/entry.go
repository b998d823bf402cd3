package indexer

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// EmbedText returns the encoder's input for chunk n of section i of doc, whose text is
// text: the title, the heading trail, the abstract (for the document's first chunk) and
// the plain text of the chunk. It has at most MaxTokens word pieces, so the encoder
// truncates nothing.
func (c *Chunker) EmbedText(doc *store.Document, i, n int, text string) string {
	s := &doc.Sections[i]
	if outline.IsSource(doc.Path) {
		return c.symbolText(doc, s, chunkBody(doc.Path, s, n, text))
	}
	parts := []string{c.head(doc, s)}
	if leads(doc, i, n) {
		parts = append(parts, c.abstract(doc, text))
	}
	parts = append(parts, strings.TrimSpace(markdown.Plain(doc.Path, s.Chunks[n].Fence, []byte(chunkBody(doc.Path, s, n, text)))))
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n")
}

// symbolText returns the encoder's input for source code: what identifies a symbol, in the
// words of its names. These are the file, the enclosing types, the comment, and the words of
// the code in order, each once.
func (c *Chunker) symbolText(doc *store.Document, s *store.Section, body string) string {
	most := symbolWords
	if outline.IsTest(doc.Path) {
		most = testWords
	}
	var out []string
	seen := map[string]bool{}
	add := func(text string, prose bool, limit int) {
		for _, w := range nameWords(text) {
			if len(out) < limit && (prose || !seen[w]) {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	folder, name := path.Split(doc.Path)
	add(path.Base(folder)+" "+strings.TrimSuffix(name, path.Ext(name)), false, most)
	for _, h := range s.Trail {
		add(h, false, most/2)
	}
	for line := range strings.Lines(body) {
		if len(out) >= most {
			break
		}
		add(line, remark.MatchString(line), most)
	}
	return c.symbol + c.prefix(strings.Join(out, " "), c.options.MaxTokens-c.fixed)
}

// remark matches a line of a comment.
var remark = regexp.MustCompile(`^\s*(?://|/?\*|#\s|--\s|""")`)

// symbolWords is the most words of symbolText. With 24, 40, 64 and 100, vectors alone have
// nDCG@10 .734, .750, .766 and .764 on the tuning half of benchmarks/code.md, and whole
// chunks of at most 256 word pieces .760, for five times the processor time.
const symbolWords = 64

// testWords is the most words for a symbol of test code, since tests rank below the code
// that they test.
const testWords = 16

// nameWords returns the words of names and text in lower case: foo_bar, HTTPServer and
// camelCase have two each.
func nameWords(text string) (words []string) {
	start := -1
	var prev rune
	flush := func(end int) {
		if start >= 0 && end-start > 1 {
			words = append(words, strings.ToLower(text[start:end]))
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !(unicode.IsDigit(r) && start >= 0):
			flush(i)
		case unicode.IsUpper(r) && !unicode.IsUpper(prev):
			flush(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(prev) && start >= 0 && i-start > 1:
			flush(i - 1)
			start = i - 1
		case start < 0:
			start = i
		}
		prev = r
	}
	flush(len(text))
	return words
}

// KeywordEntry returns the entry of the keyword index for chunk n of section i of doc,
// whose text is text. The body keeps its markup, since people search for links, paths
// and flags as written. The heading is only in the trail, which has its own weight. The
// body of the document's first chunk begins with the abstract.
func (c *Chunker) KeywordEntry(doc *store.Document, i, n int, text string) store.KeywordEntry {
	s := &doc.Sections[i]
	body := chunkBody(doc.Path, s, n, text)
	if leads(doc, i, n) {
		if abstract := c.abstract(doc, text); abstract != "" {
			body = abstract + "\n\n" + body
		}
	}
	e := store.KeywordEntry{Chunk: store.ChunkID(doc.Path, s.Anchor, n), Path: doc.Path, Body: body, Labels: doc.Labels}
	if !c.options.Bare {
		e.Title, e.Trail = titleOf(doc), innermost(s.Trail)
		if markdown.FormatOf(doc.Path).Converted() && !strings.Contains(s.Heading, s.Anchor) {
			e.Trail = append(slices.Clip(e.Trail), s.Anchor) // an id that the author chose
		}
	}
	return e
}

// titleOf returns the title of a document. If that is only the name of the file, it
// includes the folder, since many folders have a values.yaml or an index.ts.
func titleOf(doc *store.Document) string {
	folder, name := path.Split(doc.Path)
	if doc.Title != name || folder == "" {
		return doc.Title
	}
	return path.Join(path.Base(folder), name)
}

// maxTrail is the most bytes of headings to index with each chunk, without the title.
const maxTrail = 320

// innermost returns the end of a trail, at most maxTrail bytes and at least one
// heading.
func innermost(trail []string) []string {
	size := 0
	for i := len(trail) - 1; i >= 0; i-- {
		if size += len(trail[i]); size > maxTrail && i < len(trail)-1 {
			return trail[i+1:]
		}
	}
	return trail
}

// leads reports whether chunk n of section i is the document's first.
func leads(doc *store.Document, i, n int) bool {
	return n == 0 && !slices.ContainsFunc(doc.Sections[:i], func(s store.Section) bool { return len(s.Chunks) > 0 })
}

// abstractFields are the front-matter keys for a summary of the document, in order of
// preference.
var abstractFields = []string{"description", "summary"}

// abstract returns the summary in the front matter as one line of at most a quarter of a
// chunk, or "" if there is none.
func (c *Chunker) abstract(doc *store.Document, text string) string {
	if !doc.Labels.Found || len(doc.Sections) == 0 {
		return ""
	}
	front := markdown.ReadFrontMatter([]byte(text[:doc.Sections[0].Start]))
	for _, field := range abstractFields {
		if s := strings.Join(strings.Fields(front.String(field)), " "); s != "" {
			if limit := c.options.MaxTokens / 4; len(s) > limit && c.tok.Count(s) > limit {
				s = c.prefix(s, limit)
			}
			return s
		}
	}
	return ""
}

// chunkBody returns the text of chunk n without the section's heading.
func chunkBody(path string, s *store.Section, n int, text string) string {
	k := s.Chunks[n]
	start := min(max(k.Start, bodyStart(path, s, text)), k.End)
	return text[start:k.End]
}

// head returns the title and the headings of the trail, one per line, which precede the
// text of every chunk of a section. It has at most half of a chunk's tokens: head removes
// the outermost lines first, and then shortens the last line.
//
// A title that is only the file's name is included, although a file without headings
// must be embedded again after it is renamed. With 256 subheadings of a book as queries
// over 132 pages without headings, the names raised the mean reciprocal rank from .577 to
// .631, and meaningless names left it at .577.
func (c *Chunker) head(doc *store.Document, s *store.Section) string {
	if c.options.Bare {
		return ""
	}
	parts := make([]string, 0, 1+len(s.Trail))
	if t := strings.TrimSpace(titleOf(doc)); t != "" && (len(s.Trail) == 0 || s.Trail[0] != doc.Title) {
		parts = append(parts, t)
	}
	parts = append(parts, s.Trail...)
	limit := c.options.MaxTokens/2 - c.fixed
	for {
		head := strings.Join(parts, "\n")
		if len(head) <= limit || c.tok.Count(head) <= limit { // a word piece has at least one byte
			return head
		}
		if len(parts) == 1 {
			return c.prefix(head, limit)
		}
		parts = parts[1:]
	}
}

// prefix returns the longest prefix of s with at most limit tokens that bisection finds.
func (c *Chunker) prefix(s string, limit int) string {
	low, high := 0, min(len(s), limit*bytesPerToken)
	for low < high {
		mid := (low + high + 1) / 2
		if c.tok.Count(s[:runeBefore(s, mid)]) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return strings.TrimSpace(s[:runeBefore(s, low)])
}

// runeBefore returns the last rune border of s at or before at.
func runeBefore(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
