// Package markdown finds the front matter, sections, anchors and links of one
// document. It parses CommonMark, and with small documented scanners
// reStructuredText, plain text and source files. Package format converts the others to
// Markdown first. It does not split sections into chunks, read files or render
// documents.
//
// A file has two forms: its bytes, which decide its hash and size, and its text,
// which TextOf makes of them. Parse takes the text, and every offset, line and chunk
// counts in it.
package markdown

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"cairn/internal/code"
	"cairn/internal/format"
	"cairn/internal/secret"
	"cairn/internal/store"
)

// Document is one parsed file. It holds no reference to the bytes of the file.
type Document struct {
	// Path is the path given to Parse.
	Path string
	// Title is the front matter's title, else the first heading of a Markdown or
	// reStructuredText file, else the file name.
	Title string
	// Labels are taken from the front matter.
	Labels store.Labels
	// FrontMatter is the block at the head of the file; its zero value means there is none.
	FrontMatter FrontMatter
	// Sections in document order, without chunks. Empty only for an empty file:
	// a file with neither heading nor text has one section at level 0.
	// Their own texts [Start, OwnEnd) cover the file from the end of the front
	// matter on, except blank lines before the first and, in source code, blank lines
	// and closing brackets between two.
	Sections []store.Section
	// Aliases maps other names of places to the index of their section: HTML ids
	// and names, headings inside list items and block quotes, custom ids as written,
	// rst labels, declarations of a group. It does not repeat section anchors. Nil
	// if there are none.
	Aliases map[string]int
	// Cut is whether the file has more headings than are read; those beyond are text
	// of the last section.
	Cut bool
}

// Format is the syntax of a file.
type Format uint8

// The formats, chosen by file extension.
const (
	Markdown  Format = iota // .md, .markdown and every extension not listed below
	MDX                     // .mdx: Markdown with import and export statements and JSX
	Text                    // .txt: no headings
	RST                     // .rst
	Source                  // .go, .py, .rs and others: see package code
	Converted               // .html and others: Markdown that package format makes
	AsciiDoc                // .adoc, .asciidoc
	Org                     // .org
	LaTeX                   // .tex, .latex
	Keys                    // .json, .yaml, .yml, .toml
)

// FormatOf returns the format of a file by its extension, in any case.
func FormatOf(name string) Format {
	ext := strings.ToLower(path.Ext(name))
	switch ext {
	case ".mdx":
		return MDX
	case ".txt":
		return Text
	case ".rst":
		return RST
	case ".adoc", ".asciidoc":
		return AsciiDoc
	case ".org":
		return Org
	case ".tex", ".latex":
		return LaTeX
	case ".json", ".yaml", ".yml", ".toml":
		return Keys
	}
	if code.IsSource(name) {
		return Source
	}
	if format.Converts(name) {
		return Converted
	}
	return Markdown
}

// Kind names the format of a file for people, such as "Markdown" or "pdf".
func Kind(name string) string {
	switch f := FormatOf(name); f {
	case Converted:
		return format.Kind(name)
	default:
		return [...]string{
			Markdown: "Markdown", MDX: "Markdown", Text: "text", RST: "reStructuredText", Source: "source code",
			AsciiDoc: "AsciiDoc", Org: "Org", LaTeX: "LaTeX", Keys: "configuration",
		}[f]
	}
}

// TextOf returns the text of a file, the only form in which the indexer, the
// retriever and the commands search, show and parse it, and the number of secrets
// that masks replaced. A file of format Converted is converted here; the error is the
// *format.Error that says why it cannot be, or that a tool wrote the source code. The
// caller checks the result, not data, with walk.Check. TextOf does not change data and
// may return it.
func TextOf(name string, data []byte, masks *secret.Masks) (text []byte, masked int, err error) {
	switch FormatOf(name) {
	case Converted:
		if data, err = format.Markdown(name, data); err != nil {
			return nil, 0, err
		}
	case Source:
		if reason := code.Unwanted(data); reason != "" {
			return nil, 0, &format.Error{Reason: reason}
		}
	}
	text, masked = masks.Mask(data)
	return text, masked, nil
}

// Parse reads the text of one document. name decides the format and the fallback title only.
// Parse never fails: the offsets of the Document are within src for any input. It
// neither changes nor keeps src.
func Parse(name string, src []byte) *Document {
	d := &Document{Path: name}
	body := bomLen(src)
	text := normalise(src, body)
	f := FormatOf(name)
	if f == Markdown || f == MDX || f == Converted {
		d.FrontMatter = readFrontMatter(src, text, body)
		d.describe()
	}
	// A broken front matter block is text of the preamble, so that search finds it.
	from := body
	body = max(body, d.FrontMatter.End)
	if d.FrontMatter.Found() {
		from = body
	}
	var out outline
	switch f {
	case Text:
	case RST:
		out = parseRST(text, body)
	case AsciiDoc:
		out = parseAsciiDoc(text, body)
	case Org:
		out = parseOrg(text, body)
	case LaTeX:
		out = parseLaTeX(text, body)
	case Keys:
		out = parseKeys(name, text, body)
	case Source:
		out = parseSource(name, text, body)
	case MDX:
		out = parseBlocks(maskESM(text, body), body)
	default:
		out = parseBlocks(text, body)
	}
	d.build(src, text, from, out)
	d.Cut = out.cut
	if d.Title == "" && f != Source && f != Keys {
		for _, s := range d.Sections {
			if s.Heading != "" {
				d.Title = s.Heading
				break
			}
		}
	}
	if d.Title == "" {
		d.Title = path.Base(name)
	}
	d.Title = d.Title[:runeStart(d.Title, MaxHeading)]
	return d
}

// runeStart returns the length of s, or the last start of a rune at or before limit.
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

// normalise returns src with every line ending as "\n" at unchanged offsets: a
// lone CR becomes LF, the CR of a CRLF a blank, and the byte order mark blanks.
// Trailing blanks do not affect block structure, so offsets in the result are
// offsets in src. It returns src itself if there is nothing to change.
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

// outline is the result of a format's scanner.
type outline struct {
	heads []heading
	marks []mark
	cut   bool // the document has more headings than heads holds
}

// maxHeadings bounds the headings of a document, and its other names of places. What
// follows the last heading is text of its section.
const maxHeadings = 10_000

// head adds a heading; it returns false if there are too many.
func (o *outline) head(h heading) bool {
	if len(o.heads) >= maxHeadings {
		o.cut = true
		return false
	}
	o.heads = append(o.heads, h)
	return true
}

// mark adds another name of a place unless there are too many.
func (o *outline) mark(m mark) {
	if m.name != "" && len(m.name) <= MaxHeading && len(o.marks) < maxHeadings {
		o.marks = append(o.marks, m)
	}
}

// heading is a place that starts a section or, if nested, only has an anchor.
type heading struct {
	level  int
	text   string // plain text
	slug   string // the text the anchor is made from
	id     string // custom id, or the declaration's name
	start  int    // offset of the first byte of its first line
	nested bool   // in a list item or block quote: no section of its own
	// end is where the section with all below it ends, 0 for before the next heading of
	// its level, and within a heading that its trail has above it.
	end    int
	within string
}

// mark is another name of the place at offset at.
type mark struct {
	name string
	at   int
	next bool // belongs to the next heading if only blank text precedes that
	end  int  // where the mark's own text ends
}
