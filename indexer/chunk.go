package indexer

import (
	"cmp"
	"fmt"
	"strings"

	"cairn/internal/store"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/models"
)

// ChunkOptions sets the size of chunks. Sizes are in word pieces of the embedding model
// and include everything that the encoder reads for a chunk: special tokens, title,
// heading trail and body. Nil and the zero value mean the defaults, which every stored index
// has: see ChunkFormat.
type ChunkOptions struct {
	// MaxTokens is the size of the largest chunk, at least 32. 0, or more than the model
	// reads, means the model's longest input (256 for the built-in model).
	MaxTokens int
	// TargetTokens is the desired size of the chunks of a section that is divided. A
	// section up to a quarter larger stays whole. 0 means DefaultTargetTokens. If it is
	// MaxTokens or more, only sections larger than MaxTokens are divided.
	TargetTokens int
	// Bare omits title and headings from the chunks, to measure what they contribute.
	Bare bool
}

// DefaultTargetTokens is a compromise over the evaluation sets. Compared with 256 it
// gains .020 nDCG@10 on questions about long pages and .011 on long sections, and loses
// at most .004 elsewhere, at the cost of a third more chunks on long pages. See
// benchmarks/quality.md.
const DefaultTargetTokens = 150

// minChunkTokens leaves room for a body if MaxTokens is very small.
const minChunkTokens = 32

// symbolTokens is the size of the chunks of source code, so that most symbols are one. The
// encoder reads only what identifies a symbol: see EmbedText.
const symbolTokens = 1500

// chunkFormat is the version of the rules that divide a file into sections and sections
// into chunks, and convert chunks to index entries. If any of the rules changes, so does
// the version, and the owner rebuilds the index. History: 2 added the abstract, 3 symbols
// of source code, 4 the folder of files without a title. Version 5 added chunks that begin
// inside a fenced code block, 6 reStructuredText without its markup for the encoder, 7 the
// notes of PDF files. Version 8 has source code in one chunk a symbol, 9 ids of HTML as
// anchors, 10 no chunks of empty sections of cards, 11 fewer words of tests, 12 at most
// maxChunks.
const chunkFormat = 12

// maxChunks is the most chunks of a file. Each takes about fifty microseconds in the keyword
// index. Ten megabytes of cairn's manual have about 32,000, of numbers as many.
const maxChunks = 40_000

// Chunker divides sections into chunks and makes their index entries. It is safe for
// concurrent use if its tokenizer is.
type Chunker struct {
	tok     models.Tokenizer
	options ChunkOptions
	// fixed is the number of tokens in every chunk: the special ones and the
	// model's document prefix.
	fixed int
	// symbol is the model's prefix of symbols.
	symbol string
}

// NewChunker returns a Chunker for the model e. It fails if e cannot be opened.
func NewChunker(e models.Embedder, o *ChunkOptions) (*Chunker, error) {
	tok, err := e.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("opening the embedding model: %w", err)
	}
	d := e.Description()
	return &Chunker{tok: tok, options: o.within(d), fixed: len(tok.Encode("")) + tok.Count(d.DocumentPrefix), symbol: d.SymbolPrefix}, nil
}

// within returns the options with the defaults and bounds of a model.
func (o *ChunkOptions) within(d models.Description) ChunkOptions {
	m := *cmp.Or(o, &ChunkOptions{})
	if m.MaxTokens <= 0 || m.MaxTokens > d.MaxTokens {
		m.MaxTokens = d.MaxTokens
	}
	m.MaxTokens = max(m.MaxTokens, minChunkTokens)
	if m.TargetTokens <= 0 {
		m.TargetTokens = DefaultTargetTokens
	}
	m.TargetTokens = min(m.TargetTokens, m.MaxTokens)
	return m
}

// ChunkFormat identifies the rules of a Chunker with default options for the described model.
// Two indexes of the same folder with equal formats and models have the same chunks.
func ChunkFormat(d models.Description) string {
	m := (*ChunkOptions)(nil).within(d)
	format := fmt.Sprintf("chunks-%d max=%d target=%d", chunkFormat, m.MaxTokens, m.TargetTokens)
	if d.SymbolPrefix != "" {
		format += " " + strings.Trim(d.SymbolPrefix, "\x00")
	}
	return format
}

// Chunk sets the chunks of every section of doc, whose text is text. The chunks of a
// section are in order, do not overlap, and contain all of the section's own text except
// white space. A heading without a body is a chunk, so that searches find it. If a
// document consists of front matter only, its blank section has an empty chunk with the
// title and the abstract. Chunk reports whether the chunks cover the text; the text after
// maxChunks has none.
func (c *Chunker) Chunk(doc *store.Document, text string) (whole bool) {
	abstract, left := c.abstract(doc, text), maxChunks
	for i := range doc.Sections {
		s := &doc.Sections[i]
		own := trimBlank(text, span{s.Start, s.OwnEnd})
		if own.start == own.end || left == 0 || isPlaceholder(doc.Path, s, text) {
			s.Chunks = nil
			if len(doc.Sections) == 1 && text != "" {
				s.Chunks = []store.Chunk{{Start: own.start, End: own.end}}
			}
			continue
		}
		body := trimBlank(text, span{bodyStart(doc.Path, s, text), s.OwnEnd})
		room := c.options.MaxTokens - c.fixed - c.tok.Count(c.head(doc, s)) - c.tok.Count(abstract)
		abstract = "" // only the first chunk contains it
		// The target stays at a quarter of room or more, even with a long trail.
		target := max(room/4, c.options.TargetTokens-c.options.MaxTokens+room)
		if outline.IsSource(doc.Path) {
			room, target = symbolTokens, symbolTokens
		}
		sp := splitter{c: c, path: doc.Path, text: text, room: room, target: target}
		spans := sp.cut(body)
		s.Chunks = make([]store.Chunk, len(spans))
		for n, p := range spans {
			s.Chunks[n] = store.Chunk{Start: p.start, End: p.end, Fence: sp.fenceMark(p.start)}
		}
		s.Chunks[0].Start = own.start
		s.Chunks[len(spans)-1].End = own.end
		s.Chunks = s.Chunks[:min(len(spans), left)]
		left -= len(s.Chunks)
	}
	return left > 0
}

// isPlaceholder reports whether a section of a card has no text but its heading, or only a
// comment. The section with the title is none, so that the title is found.
func isPlaceholder(path string, s *store.Section, text string) bool {
	return s.Level > 1 && store.KindOf(path) == store.Cards &&
		strings.TrimSpace(markdown.Plain(path, "", []byte(text[bodyStart(path, s, text):s.OwnEnd]))) == ""
}

// bodyStart returns the offset of the text below a section's heading. The body includes
// a heading that is part of the text, such as a declaration in a source file, and one
// that is longer than markdown.MaxHeading.
func bodyStart(path string, s *store.Section, text string) int {
	if s.Level == 0 || outline.IsSource(path) {
		return s.Start
	}
	at, limit := s.Start, min(s.OwnEnd, s.Start+markdown.MaxHeading)
	for n := 0; at < limit; n++ {
		end := lineEnd(text, at, limit)
		if end == limit && end < s.OwnEnd {
			break
		}
		line := strings.TrimSpace(text[at:end])
		switch {
		case n == 0 && (strings.HasPrefix(line, "#") || line != s.Heading && strings.TrimLeft(line, "=* ") == s.Heading):
			return end
		case line == "":
			return s.Start
		case n > 0 && underlines(line):
			return end
		}
		at = end
	}
	return s.Start
}

// underlines reports whether a line consists of one repeated punctuation character that
// underlines headings in Markdown or reStructuredText.
func underlines(line string) bool {
	c := line[:1]
	return strings.Trim(line, c) == "" && strings.Contains("=-~^\"'`*+#.:_<>", c)
}
