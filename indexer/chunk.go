package indexer

import (
	"fmt"
	"strings"

	"cairn/internal/code"
	"cairn/internal/markdown"
	"cairn/internal/store"
	"cairn/models"
)

// ChunkOptions sets the size of chunks. All sizes are word pieces of the
// embedding model and count everything the encoder reads for a chunk: special
// tokens, title, heading trail and body. Nil and the zero value give the
// defaults. An index made with other options has other chunks, see
// ChunkFormat.
type ChunkOptions struct {
	// MaxTokens is the largest chunk, at least 32. 0, or more than the model
	// reads, is the model's longest input (256 for the built-in one).
	MaxTokens int
	// TargetTokens is the size of the chunks of a section that has to be cut. A
	// section up to a quarter above it stays whole. 0 is DefaultTargetTokens. More
	// than MaxTokens is MaxTokens: only sections that do not fit are cut.
	TargetTokens int
	// Bare leaves title and headings out of the chunks, to measure what they add.
	Bare bool
}

// DefaultTargetTokens is a compromise over the evaluation sets: against 256 it
// gains .020 nDCG@10 on questions about long pages and .011 on long sections,
// and loses at most .004 elsewhere, for a third more chunks on long pages. See
// benchmarks/quality.md.
const DefaultTargetTokens = 150

// minChunkTokens keeps room for a body when MaxTokens is set very low.
const minChunkTokens = 32

// chunkFormat is the version of the rules that turn a file into sections, sections
// into chunks, and chunks into entries of both indexes. It changes with any of
// them: the owner rebuilds an index that was made by other rules. History:
// 1, the first; 2, the abstract; 3, symbols of source code; 4, the folder of files without
// a title; 5, chunks that begin inside a fenced code block; 6, reStructuredText without
// its markup for the encoder; 7, the notes of PDF files.
const chunkFormat = 7

// Chunker cuts sections into chunks and makes their index entries. It is safe for
// concurrent use when its tokenizer is.
type Chunker struct {
	tok     models.Tokenizer
	options ChunkOptions
	// fixed is the number of tokens in every chunk: the special ones and the
	// model's document prefix.
	fixed int
}

// NewChunker returns a Chunker for the model that d describes and tok counts for.
func NewChunker(d models.Description, tok models.Tokenizer, o *ChunkOptions) *Chunker {
	c := &Chunker{tok: tok, options: o.within(d)}
	c.fixed = len(tok.Encode("")) + tok.Count(d.DocumentPrefix)
	return c
}

// within returns the options with their defaults for a model.
func (o *ChunkOptions) within(d models.Description) ChunkOptions {
	var m ChunkOptions
	if o != nil {
		m = *o
	}
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

// Format identifies the rules for chunks. Two indexes of one folder with equal
// Formats and models have the same chunks.
func (c *Chunker) Format() string { return c.options.format() }

// ChunkFormat is the Format of the Chunker for a model that may be closed.
func ChunkFormat(d models.Description, o *ChunkOptions) string { return o.within(d).format() }

func (o ChunkOptions) format() string {
	format := fmt.Sprintf("chunks-%d max=%d target=%d", chunkFormat, o.MaxTokens, o.TargetTokens)
	if o.Bare {
		format += " bare"
	}
	return format
}

// Chunk sets the chunks of every section of doc, whose text is text. They are in
// order, do not overlap, and hold every byte of the section's own text that is not white
// space. A heading without a body is a chunk,
// so that searches find it. So is the blank section of a document of front matter
// alone; its extent is empty, and its text is title and abstract.
func (c *Chunker) Chunk(doc *store.Document, text string) {
	abstract := c.abstract(doc, text)
	for i := range doc.Sections {
		s := &doc.Sections[i]
		own := trimBlank(text, span{s.Start, s.OwnEnd})
		if own.start == own.end {
			s.Chunks = nil
			if len(doc.Sections) == 1 && text != "" {
				s.Chunks = []store.Chunk{{Start: own.start, End: own.end}}
			}
			continue
		}
		body := trimBlank(text, span{bodyStart(doc.Path, s, text), s.OwnEnd})
		room := c.options.MaxTokens - c.fixed - c.tok.Count(c.head(doc, s)) - c.tok.Count(abstract)
		abstract = "" // the first chunk has it
		// A long trail must not leave almost nothing of a small target.
		target := max(room/4, c.options.TargetTokens-c.options.MaxTokens+room)
		sp := splitter{c: c, path: doc.Path, text: text, room: room, target: target}
		spans := sp.cut(body)
		s.Chunks = make([]store.Chunk, len(spans))
		for n, p := range spans {
			s.Chunks[n] = store.Chunk{Start: p.start, End: p.end, Fence: sp.fenceMark(p.start)}
		}
		s.Chunks[0].Start = own.start
		s.Chunks[len(spans)-1].End = own.end
	}
}

// bodyStart returns the offset at which the text below a section's heading
// begins. A heading that is part of the text, such as a declaration in a source
// file, belongs to the body. So does one that is too long to be kept as a heading.
func bodyStart(path string, s *store.Section, text string) int {
	if s.Level == 0 || code.IsSource(path) {
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

// underlines reports whether a line is one punctuation character repeated, as
// below a heading in Markdown and, with more characters, in reStructuredText.
func underlines(line string) bool {
	c := line[:1]
	return strings.Trim(line, c) == "" && strings.Contains("=-~^\"'`*+#.:_<>", c)
}
