package indexer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/text/markdown"
	"cairn/models"
)

func parsed(path, text string) *store.Document {
	d := markdown.Parse(path, []byte(text))
	return &store.Document{Path: path, Title: d.Title, Labels: d.Labels, Sections: d.Sections}
}

func hashChunker(o *ChunkOptions) *Chunker {
	c, err := NewChunker(&testutil.HashEmbedder{}, o)
	if err != nil {
		panic(err) // unreachable: a HashEmbedder is always open
	}
	return c
}

// TestChunkProperties holds what every consumer of chunks relies on.
func TestChunkProperties(t *testing.T) {
	for _, o := range []ChunkOptions{{}, {TargetTokens: 120}, {MaxTokens: 64}, {MaxTokens: 32}, {TargetTokens: 128}, {MaxTokens: 50, TargetTokens: 20}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			c := hashChunker(&o)
			limit := c.options.MaxTokens
			for seed := range uint64(testutil.Few(150)) {
				r := rand.New(rand.NewPCG(seed, 7))
				text := testutil.Markdown(r, 50+r.IntN(8000))
				if seed%5 == 0 {
					text = strings.ReplaceAll(text, "\n", "\r\n")
				}
				doc := parsed("dir/doc.md", text)
				c.Chunk(doc, text)
				again := parsed("dir/doc.md", text)
				c.Chunk(again, text)
				for i, s := range doc.Sections {
					checkSection(t, c, doc, i, text, limit)
					if got, want := fmt.Sprint(s.Chunks), fmt.Sprint(again.Sections[i].Chunks); got != want {
						t.Fatalf("seed %d section %d: chunks differ between two calls: %s and %s", seed, i, got, want)
					}
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func checkSection(t *testing.T, c *Chunker, doc *store.Document, i int, text string, limit int) {
	t.Helper()
	s := doc.Sections[i]
	covered := s.Start
	for n, k := range s.Chunks {
		if k.Start < s.Start || k.End > s.OwnEnd || k.Start > k.End {
			t.Errorf("section %d chunk %d is [%d,%d), outside of [%d,%d)", i, n, k.Start, k.End, s.Start, s.OwnEnd)
			return
		}
		if n > 0 && (k.Start <= s.Chunks[n-1].Start || k.End <= s.Chunks[n-1].End) {
			t.Errorf("section %d chunk %d %v does not come after %v", i, n, k, s.Chunks[n-1])
		}
		if n > 0 && k.Start < s.Chunks[n-1].End {
			t.Errorf("section %d chunk %d %v overlaps %v", i, n, k, s.Chunks[n-1])
		}
		if !utf8.ValidString(text[k.Start:k.End]) {
			t.Errorf("section %d chunk %d cuts a rune: %q", i, n, text[k.Start:k.End])
		}
		if k.Start > covered && strings.TrimFunc(text[covered:k.Start], unicode.IsSpace) != "" {
			t.Errorf("section %d: %q before chunk %d is in no chunk", i, text[covered:k.Start], n)
		}
		covered = max(covered, k.End)
		e := c.EmbedText(doc, i, n, text)
		if got := len(c.tok.Encode(e)); got > limit {
			t.Errorf("section %d chunk %d has %d tokens, want at most %d: %q", i, n, got, limit, e)
		}
	}
	if rest := strings.TrimFunc(text[covered:s.OwnEnd], unicode.IsSpace); rest != "" {
		t.Errorf("section %d: %q is in no chunk", i, rest)
	}
}

func TestChunkShapes(t *testing.T) {
	long := strings.Repeat("alpha beta gamma delta. ", 40) // 200 pieces
	for _, c := range []struct {
		name, path, text string
		options          ChunkOptions
		want             []string // anchor: text of each chunk
	}{
		{"heading only", "a.md", "# One\n\n## Two\n\nText.\n", ChunkOptions{}, []string{"one: # One", "two: ## Two\n\nText."}},
		{"line breaks of old Macs", "a.md", "# One\r\rText.\r\rTwo\r---\rMore.\r", ChunkOptions{}, []string{"one: # One\r\rText.", "two: Two\r---\rMore."}},
		{"setext", "a.md", "One\n===\n\nText.\n", ChunkOptions{}, []string{"one: One\n===\n\nText."}},
		{"preamble", "a.md", "\n\nBefore.\n\n# One\n", ChunkOptions{}, []string{": Before.", "one: # One"}},
		{"blank", "a.md", "\n\n", ChunkOptions{}, []string{": "}},
		{"front matter only", "a.md", "---\ntitle: T\n---\n", ChunkOptions{}, []string{": "}},
		{"empty", "a.md", "", ChunkOptions{}, nil},
		{"small paragraphs together", "a.md", "# H\n\none\n\ntwo\n\nthree\n", ChunkOptions{MaxTokens: 32}, []string{"h: # H\n\none\n\ntwo\n\nthree"}},
		{"at paragraphs", "a.md", "# H\n\n" + strings.Repeat("one ", 20) + "\n\n" + strings.Repeat("two ", 20) + "\n", ChunkOptions{MaxTokens: 32},
			[]string{"h: # H\n\n" + strings.Repeat("one ", 19) + "one", "h: " + strings.Repeat("two ", 19) + "two"}},
		{"at list entries", "a.md", "# H\n\n- " + strings.Repeat("one ", 20) + "\n- " + strings.Repeat("two ", 20) + "\n", ChunkOptions{MaxTokens: 32},
			[]string{"h: # H\n\n- " + strings.Repeat("one ", 19) + "one", "h: - " + strings.Repeat("two ", 19) + "two"}},
		{"fences stay whole", "a.md", "# H\n\n" + strings.Repeat("one ", 24) + "\n\n```\na\n\n# b\n\nc\n```\n", ChunkOptions{MaxTokens: 32, TargetTokens: 24},
			[]string{"h: # H\n\n" + strings.Repeat("one ", 23) + "one", "h: ```\na\n\n# b\n\nc\n```"}},
		{"even halves, at sentences", "a.md", "# H\n\n" + strings.TrimSpace(long) + "\n", ChunkOptions{MaxTokens: 128},
			[]string{"h: # H\n\n" + strings.TrimSpace(long[:len(long)/2]), "h: " + strings.TrimSpace(long[len(long)/2:])}},
	} {
		doc := parsed(c.path, c.text)
		hashChunker(&c.options).Chunk(doc, c.text)
		var got []string
		for _, s := range doc.Sections {
			for _, k := range s.Chunks {
				got = append(got, s.Anchor+": "+c.text[k.Start:k.End])
			}
		}
		if strings.Join(got, "\n--\n") != strings.Join(c.want, "\n--\n") {
			t.Errorf("%s: chunks are\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

// Chunks that begin inside a fenced code block keep the punctuation of the code for the
// encoder, also in quotes and list entries.
func TestChunksInsideFences(t *testing.T) {
	var code []string
	for i := range 40 {
		code = append(code, fmt.Sprintf("if [ ! -f a%d ] || ! grep -q b%d log; then cat <in> | tee *out_; fi", i, i))
	}
	for _, c := range []struct{ name, open, line, closing string }{
		{"backquotes", "```bash\n", "", "```\n"},
		{"tildes with backquotes inside", "~~~~ {.bash}\n```\n", "", "```\n~~~~\n"},
		{"quote", "> ```\n", "> ", "> ```\n"},
		{"list entry", "- ```\n", "  ", "  ```\n"},
		{"numbered entry", "1. ```\n", "   ", "   ```\n"},
		{"not closed", "```\n", "", ""},
	} {
		text := "# Steps\n\nBefore *all*.\n\n" + c.open
		for _, line := range code {
			text += c.line + line + "\n"
		}
		text += c.closing
		if c.closing != "" {
			text += "\nAfter *all*.\n"
		}
		doc := parsed("a.md", text)
		chunker := hashChunker(&ChunkOptions{MaxTokens: 128})
		chunker.Chunk(doc, text)
		var embedded strings.Builder
		for n := range doc.Sections[0].Chunks {
			embedded.WriteString(chunker.EmbedText(doc, 0, n, text) + "\n")
		}
		if n := len(doc.Sections[0].Chunks); n < 4 {
			t.Errorf("%s: %d chunks, want more", c.name, n)
		}
		for _, line := range code {
			if !strings.Contains(embedded.String(), line+"\n") {
				t.Errorf("%s: %q is not in the text of\n%s", c.name, line, embedded.String())
				break
			}
		}
		if c.closing != "" && !strings.Contains(embedded.String(), "After all.") {
			t.Errorf("%s: the text after the block is not read as Markdown:\n%s", c.name, embedded.String())
		}
	}
}

func TestEmbedTextAndTextEntry(t *testing.T) {
	text := "---\ntitle: Guide\ntags: [a]\n---\n# Setup\n\n## On *Linux*\n\nRun [make](docs/make.md).\n"
	doc := parsed("g.md", text)
	c := hashChunker(nil)
	c.Chunk(doc, text)
	if got, want := c.EmbedText(doc, 1, 0, text), "Guide\nSetup\nOn Linux\nRun make."; got != want {
		t.Errorf("EmbedText = %q, want %q", got, want)
	}
	if got, want := c.EmbedText(doc, 0, 0, text), "Guide\nSetup"; got != want {
		t.Errorf("EmbedText of a heading without a body = %q, want %q", got, want)
	}
	e := c.KeywordEntry(doc, 1, 0, text)
	if got, want := fmt.Sprint(e), "{g.md#on-linux.0 g.md Guide [Setup On Linux] \nRun [make](docs/make.md). {true [a]   }}"; got != want {
		t.Errorf("KeywordEntry = %q, want %q", got, want)
	}
}

// Lines end at a lone CR, too: what comes after a heading is no part of it.
func TestTextEntryLineBreaks(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		text := strings.Join([]string{"# Setup", "", "Run make.", ""}, eol)
		doc := parsed("g.md", text)
		c := hashChunker(nil)
		c.Chunk(doc, text)
		if got, want := c.KeywordEntry(doc, 0, 0, text).Body, eol+"Run make."; got != want {
			t.Errorf("the body in the keyword index of %q is %q, want %q", text, got, want)
		}
		if got, want := c.EmbedText(doc, 0, 0, text), "Setup\nRun make."; got != want {
			t.Errorf("EmbedText of %q = %q, want %q", text, got, want)
		}
	}
}

// symbolic is an embedder with weights for symbols.
type symbolic struct{ testutil.HashEmbedder }

func (e *symbolic) Description() models.Description {
	d := e.HashEmbedder.Description()
	d.SymbolPrefix = "\x00symbol\x00"
	return d
}

func TestSymbolPrefix(t *testing.T) {
	e := &symbolic{}
	k, err := NewChunker(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.go": "\x00symbol\x00func run", "a.md": "a.md\nfunc run() {}"} {
		doc := parsed(name, "func run() {}\n")
		k.Chunk(doc, "func run() {}\n")
		if got := k.EmbedText(doc, 0, 0, "func run() {}\n"); got != want {
			t.Errorf("EmbedText of %s = %q, want %q", name, got, want)
		}
	}
	if with, without := ChunkFormat(e.Description()), ChunkFormat(e.HashEmbedder.Description()); with == without {
		t.Errorf("both have the chunk format %q", with)
	}
}

func TestAbstract(t *testing.T) {
	for _, c := range []struct{ name, text, embed, body string }{
		{"description", "---\ntitle: T\ndescription: >\n  What it\n  says.\nsummary: other\n---\n# H\n\nBody.\n\n## Two\n\nMore.\n", "T\nH\nWhat it says.\nBody.", "What it says.\n\n\nBody."},
		{"summary, preamble", "---\nsummary: In short.\n---\nFirst.\n\n# H\n", "H\nIn short.\nFirst.", "In short.\n\nFirst."},
		{"heading alone", "---\ndescription: In short.\n---\n# H\n", "H\nIn short.", "In short.\n\n"},
		{"front matter alone", "---\ntitle: T\ndescription: In short.\n---\n", "T\nIn short.", "In short.\n\n"},
		{"front matter alone, unended", "---\ntitle: T\ndescription: In short.\n---", "T\nIn short.", "In short.\n\n"},
		{"CRLF and a mark", "\ufeff---\r\ndescription: In short.\r\n---\r\nFirst.\r\n", "a.md\nIn short.\nFirst.", "In short.\n\nFirst."},
		{"not text", "---\ndescription: [a]\n---\nFirst.\n", "a.md\nFirst.", "First."},
		{"no front matter", "description: no\n", "a.md\ndescription: no", "description: no"},
	} {
		doc := parsed("a.md", c.text)
		k := hashChunker(nil)
		k.Chunk(doc, c.text)
		if got := k.EmbedText(doc, 0, 0, c.text); got != c.embed {
			t.Errorf("%s: EmbedText = %q, want %q", c.name, got, c.embed)
		}
		if got := k.KeywordEntry(doc, 0, 0, c.text).Body; got != c.body {
			t.Errorf("%s: KeywordEntry's body = %q, want %q", c.name, got, c.body)
		}
		for i := 1; i < len(doc.Sections); i++ {
			if got := k.EmbedText(doc, i, 0, c.text); strings.Contains(got, "In short") {
				t.Errorf("%s: EmbedText of section %d = %q", c.name, i, got)
			}
		}
	}
}

func TestAbstractIsBounded(t *testing.T) {
	text := "---\ndescription: " + strings.Repeat("word ", 400) + "\n---\n# " + strings.Repeat("head ", 300) + "\n\n" + strings.Repeat("body ", 500)
	for _, size := range []int{0, 32, 64} {
		c := hashChunker(&ChunkOptions{MaxTokens: size})
		doc := parsed("a.md", text)
		c.Chunk(doc, text)
		checkSection(t, c, doc, 0, text, c.options.MaxTokens)
	}
}

func TestHeadIsBounded(t *testing.T) {
	heading := strings.Repeat("a ", 300)
	text := "# " + heading + "\n\n## Sub\n\n" + strings.Repeat("body ", 500)
	doc := parsed("a.md", text)
	c := hashChunker(nil)
	c.Chunk(doc, text)
	for i := range doc.Sections {
		checkSection(t, c, doc, i, text, 256)
	}
	if e := c.EmbedText(doc, 1, 0, text); !strings.HasPrefix(e, "Sub\nbody") {
		t.Errorf("EmbedText begins with %.40q, want the innermost heading", e)
	}
	if e := c.EmbedText(doc, 0, 0, text); !strings.HasPrefix(e, "a a a") {
		t.Errorf("EmbedText begins with %.40q, want the beginning of the heading", e)
	}
}

// TestChunkOneLongLine bounds the work: a line of a megabyte without white
// space must not be counted over and over.
func TestChunkOneLongLine(t *testing.T) {
	text := strings.Repeat("é", 1<<19)
	doc := parsed("a.txt", text)
	c := hashChunker(nil)
	c.Chunk(doc, text)
	checkSection(t, c, doc, 0, text, 256)
}

func FuzzChunk(f *testing.F) {
	f.Add("# A\n\ntext\n\n- one\n- two\n", 40)
	f.Add("```\n\n\n~~~\n\u3000x\n", 33)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if !utf8.ValidString(text) {
			t.Skip("documents are UTF-8")
		}
		c := hashChunker(&ChunkOptions{MaxTokens: size})
		doc := parsed("a.md", text)
		c.Chunk(doc, text)
		for i := range doc.Sections {
			checkSection(t, c, doc, i, text, c.options.MaxTokens)
		}
	})
}

// The folder tells files apart that have no title and common names.
func TestTitleOfFile(t *testing.T) {
	for path, want := range map[string]string{"values.yaml": "values.yaml", "charts/kibana/values.yaml": "kibana/values.yaml"} {
		doc := parsed(path, "replicas: 1\n")
		if got := titleOf(doc); got != want {
			t.Errorf("titleOf %s is %q, want %q", path, got, want)
		}
	}
	doc := parsed("charts/kibana.md", "# Values\n")
	if got := titleOf(doc); got != "Values" {
		t.Errorf("the title of a document with a heading is %q", got)
	}
}

// TestSymbolIsOneChunk: a long function is one chunk, and the encoder reads the words that
// identify it.
func TestSymbolIsOneChunk(t *testing.T) {
	text := "package a\n\n// ParseHTTPHeader reads a header.\nfunc ParseHTTPHeader(src_text []byte) {\n" + strings.Repeat("\tnextLine(src_text, 0x1f)\n", 100) + "}\n"
	doc := parsed("net/http_util/parse.go", text)
	c := hashChunker(nil)
	c.Chunk(doc, text)
	last := len(doc.Sections) - 1
	if n := len(doc.Sections[last].Chunks); n != 1 {
		t.Fatalf("%d chunks, want 1", n)
	}
	if got, want := c.EmbedText(doc, last, 0, text), "http util parse func header src text byte parse http header reads header next line x1f"; got != want {
		t.Errorf("EmbedText = %q, want %q", got, want)
	}
	text = "package a\n\nfunc TestHeader(t *testing.T) {\n\tone(two, three, four, five, six, seven, eight, nine, ten, eleven)\n}\n"
	doc = parsed("net/http/parse_test.go", text)
	c.Chunk(doc, text)
	if got, want := c.EmbedText(doc, len(doc.Sections)-1, 0, text), "http parse test func header testing one two three four five six seven eight nine ten"; got != want {
		t.Errorf("EmbedText of a test = %q, want %q", got, want)
	}
}

// TestChunksOfAFileAreBounded: the text after the last chunk has none.
func TestChunksOfAFileAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("a long text, for one goroutine")
	}
	c := hashChunker(&ChunkOptions{MaxTokens: minChunkTokens})
	for words, want := range map[int]bool{1000: true, 30 * maxChunks: false, 60 * maxChunks: false} {
		text := "# Words\n\n" + strings.Repeat("word ", words) + "\n\n# Last\n\nThe end.\n"
		doc := parsed("a.md", text)
		if whole := c.Chunk(doc, text); whole != want {
			t.Errorf("%d words: the chunks cover the text %v, want %v", words, whole, want)
		}
		n := 0
		for i := range doc.Sections {
			n += len(doc.Sections[i].Chunks)
		}
		if n > maxChunks || !want && n < maxChunks {
			t.Errorf("%d words have %d chunks, want at most %d", words, n, maxChunks)
		}
	}
}
