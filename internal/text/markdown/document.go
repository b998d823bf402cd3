// Package markdown finds the front matter, sections, anchors and links of one document.
// It parses CommonMark, and scans reStructuredText, AsciiDoc, Org, LaTeX, plain text,
// configuration and source files with small documented scanners. Package convert
// converts all other formats to Markdown first. Package markdown does not split sections
// into chunks, read files or render documents.
//
// A file has two forms: its bytes, from which its hash and size are computed, and its
// text, which TextOf derives from them. Parse takes the text. All offsets, lines and
// chunks refer to the text.
package markdown

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"unicode/utf8"
)

// Document is one parsed file. It holds no reference to the bytes of the file.
type Document struct {
	// Path is the path given to Parse.
	Path string
	// Title is the front matter's title, else the first heading of a Markdown or
	// reStructuredText file, else the file name.
	Title string
	// Labels are taken from the front matter.
	Labels Labels
	// FrontMatter is the block at the start of the file, zero if there is none.
	FrontMatter FrontMatter
	// Sections are in document order, without chunks. Only an empty file has none: a
	// file with neither heading nor text has one section at level 0. Their own texts
	// [Start, OwnEnd) cover the file after the front matter, except blank lines before
	// the first section and, in source code, blank lines and closing brackets between
	// sections.
	Sections []Section
	// Aliases maps further names of a section to its index: HTML ids and names,
	// headings inside list items and block quotes, custom ids as written, rst labels,
	// declarations of a group. Section anchors are not repeated. Nil if there are none.
	Aliases map[string]int
	// Cut reports that the file has too many headings. The excess headings are text of
	// the last section.
	Cut bool
}

// Parse reads the text of one document. It uses name only to choose the format and the
// fallback title. Parse accepts any input, and the offsets of the Document are always
// within src. It neither changes nor keeps src.
func Parse(name string, src []byte) *Document {
	d := &Document{Path: name}
	body := bomLen(src)
	text := normalise(src, body)
	f := FormatOf(name)
	if f.IsMarkdown() {
		d.FrontMatter = readFrontMatter(src, text, body)
		d.describe()
	}
	// A broken front matter block is part of the preamble, so that search finds it.
	from := body
	body = max(body, d.FrontMatter.End)
	if d.FrontMatter.Found() {
		from = body
	}
	var out scanned
	if f.parse != nil {
		out = f.parse(name, text, body)
	}
	d.build(src, text, from, out)
	d.Cut = out.cut
	if i := slices.IndexFunc(d.Sections, func(s Section) bool { return s.Heading != "" }); d.Title == "" && !f.untitled && i >= 0 {
		d.Title = d.Sections[i].Heading
	}
	d.Title = cmp.Or(d.Title, path.Base(name))
	d.Title = d.Title[:runeStart(d.Title, MaxHeading)]
	return d
}

// runeStart returns the largest offset up to limit at which s can be cut without
// splitting a rune.
func runeStart[T string | []byte](s T, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return limit
}

const bom = "\ufeff"

// normalise returns src with "\n" as the only line ending and the same offsets: a lone CR
// becomes LF, the CR of a CRLF becomes a blank, and the byte order mark becomes blanks.
// Trailing blanks do not affect block structure. It returns src itself if nothing
// changes.
func normalise(src []byte, body int) []byte {
	if bytes.IndexByte(src, '\r') < 0 && body == 0 {
		return src
	}
	out := bytes.Clone(src)
	for i := range body {
		out[i] = ' '
	}
	for i, c := range out {
		switch {
		case c != '\r':
		case i+1 < len(out) && out[i+1] == '\n':
			out[i] = ' '
		default:
			out[i] = '\n'
		}
	}
	return out
}

// scanned is the result of a format's scanner.
type scanned struct {
	heads []heading
	marks []mark
	cut   bool // the document has more than maxHeadings headings
}

// maxHeadings is the maximum number of headings, and of marks, of a document. The text
// after the last heading belongs to its section.
const maxHeadings = 10_000

// head adds a heading. It returns false if there are too many.
func (o *scanned) head(h heading) bool {
	if len(o.heads) >= maxHeadings {
		o.cut = true
		return false
	}
	o.heads = append(o.heads, h)
	return true
}

// mark adds a mark unless its name is empty or too long or there are too many.
func (o *scanned) mark(m mark) {
	if m.name != "" && len(m.name) <= MaxHeading && len(o.marks) < maxHeadings {
		o.marks = append(o.marks, m)
	}
}

// heading starts a section or, if nested, only has an anchor.
type heading struct {
	level  int
	text   string // plain text
	slug   string // the text from which the anchor is made
	id     string // custom id, or the declaration's name
	start  int    // offset of the first byte of its first line
	nested bool   // in a list item or block quote: no section of its own
	// end is the end of the section with its subsections, 0 for the next heading of the
	// same or a higher level.
	end int
	// within is a heading to insert above this one in the trail, "" for none.
	within string
}

// mark is a further name for the section at an offset, such as an HTML id.
type mark struct {
	name string
	at   int
	next bool // names the next heading if only blank text and tags precede it
	end  int  // of the mark's own text
}

// Section is a heading with the text below it. Its own text ends before the next heading
// of any level; the whole section ends before the next heading of the same or a higher
// level. Offsets are bytes into the file, half-open. Lines are numbered from 1, inclusive
// at both ends.
type Section struct {
	// Level is 1 to 6, or 0 for text before the first heading.
	Level int
	// Heading is the heading's plain text; empty at level 0.
	Heading string
	// Anchor is the GitHub slug, unique in the document; empty only at level 0.
	Anchor string
	// Trail lists the headings from the outermost to this one.
	Trail []string
	// Parent is the index of the enclosing section in the sections of the document, or -1.
	Parent int
	// Start is the offset of the heading, OwnEnd the end of the section's own text, and
	// End the end of the whole section.
	Start, OwnEnd, End int
	// StartLine is the line of the heading. OwnEndLine and EndLine are the last lines
	// before OwnEnd and End that are not blank.
	StartLine, OwnEndLine, EndLine int
	// Hash is the SHA-256, in hex, of text[Start:End] without leading and trailing blank
	// lines, which is the text that read_doc returns for the anchor.
	Hash string
	// Fingerprint is a 64-bit simhash of the words of the own text. Near-duplicates
	// differ in few bits.
	Fingerprint uint64
	// Chunks are the pieces of the own text that are indexed, in order.
	Chunks []Chunk
}

// Chunk is a piece of a section's own text, short enough for the encoder together
// with its heading trail.
type Chunk struct {
	// Start and End are byte offsets into the file.
	Start, End int
	// Fence is the mark, such as "```", of the fenced code block that contains Start, or
	// "" if there is none.
	Fence string `json:",omitempty"`
}

// MaxFence is the maximum length of Chunk.Fence.
const MaxFence = 64

// Labels are the front-matter fields that a search can filter by.
type Labels struct {
	// Found reports whether the file has valid front matter. If not, it does not match
	// any filter on labels.
	Found    bool
	Tags     []string
	Priority string
	Assignee string
	Status   string
}

// Equal reports whether l and o are equal.
func (l Labels) Equal(o Labels) bool {
	return l.Found == o.Found && l.Priority == o.Priority && l.Assignee == o.Assignee && l.Status == o.Status && slices.Equal(l.Tags, o.Tags)
}
