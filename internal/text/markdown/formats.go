package markdown

import (
	"slices"
	"strings"

	"cairn/internal/text/convert"
	"cairn/internal/text/outline"
)

// Format describes the files of one syntax.
type Format struct {
	// Kind is the display name, such as "Markdown" or "pdf".
	Kind string
	// extensions are with the dot, in lower case, separated by blanks.
	extensions string
	// convert converts a file to Markdown; nil if the bytes of a file are its text.
	convert convert.Converter
	// parse finds the headings and marks in the text src from the offset body, which has
	// only "\n" as line break. It is nil for a text without headings.
	parse func(name string, src []byte, body int) scanned
	// chosen means that the extension alone does not select a file: the configuration must
	// contain it, or walk.Configuration or package outline the name.
	chosen bool
	// untitled means that the first heading is not the title of the document.
	untitled bool
}

// The formats that have rules of their own outside the table.
var (
	// Markdown is also the format of every extension that the table does not contain.
	Markdown = &Format{Kind: "Markdown", extensions: ".md .markdown .qmd .rmd", parse: parseBlocks}
	mdx      = &Format{Kind: "Markdown", extensions: ".mdx", parse: parseMDX} // with import and export statements and JSX
	rst      = &Format{Kind: "reStructuredText", extensions: ".rst", parse: parseRST}
	source   = &Format{Kind: "source code", parse: parseSource, chosen: true, untitled: true} // package outline has the extensions
)

// The largest sizes of files in bytes.
const (
	maxText      = 10 << 20
	maxConverted = 64 << 20
)

// formats is the table of all file types. docs/formats.md has the same extensions.
var formats = []*Format{
	Markdown,
	mdx,
	{Kind: "text", extensions: ".txt"},
	rst,
	{Kind: "AsciiDoc", extensions: ".adoc .asciidoc .asc", parse: parseAsciiDoc},
	{Kind: "RDoc", extensions: ".rdoc", parse: parseAsciiDoc}, // with the same titles
	{Kind: "Org", extensions: ".org", parse: parseOrg},
	{Kind: "LaTeX", extensions: ".tex .latex", parse: parseLaTeX},
	{Kind: "html", extensions: ".html .htm .xhtml", convert: convert.HTML, parse: parseBlocks},
	{Kind: "docx", extensions: ".docx", convert: convert.DOCX, parse: parseBlocks},
	{Kind: "pptx", extensions: ".pptx", convert: convert.PPTX, parse: parseBlocks},
	{Kind: "xlsx", extensions: ".xlsx", convert: convert.XLSX, parse: parseBlocks},
	{Kind: "odt", extensions: ".odt", convert: convert.OpenDocument, parse: parseBlocks},
	{Kind: "odp", extensions: ".odp", convert: convert.OpenDocument, parse: parseBlocks},
	{Kind: "ods", extensions: ".ods", convert: convert.OpenDocument, parse: parseBlocks},
	{Kind: "epub", extensions: ".epub", convert: convert.EPUB, parse: parseBlocks},
	{Kind: "pdf", extensions: ".pdf", convert: convert.PDF, parse: parseBlocks},
	{Kind: "ipynb", extensions: ".ipynb", convert: convert.Notebook, parse: parseBlocks},
	{Kind: "csv", extensions: ".csv .tsv", convert: convert.CSV, parse: parseBlocks},
	{Kind: "manual page", extensions: ".1 .2 .3 .4 .5 .6 .7 .8 .9 .man", convert: convert.Man, parse: parseBlocks},
	{Kind: "eml", extensions: ".eml", convert: convert.Mail, parse: parseBlocks},
	{Kind: "mbox", extensions: ".mbox", convert: convert.Mbox, parse: parseBlocks},
	{Kind: "jsonl", extensions: ".jsonl", convert: convert.Transcript, parse: parseBlocks, chosen: true},
	{Kind: "configuration", extensions: ".json .yaml .yml .toml", parse: parseKeys, chosen: true, untitled: true},
}

var byExtension = mapFormats(formats)

func mapFormats(formats []*Format) map[string]*Format {
	m := map[string]*Format{}
	for _, f := range formats {
		for ext := range strings.FieldsSeq(f.extensions) {
			m[ext] = f
		}
	}
	return m
}

// Extensions returns the extensions of the files that are always indexed.
func Extensions() []string {
	var all []string
	for _, f := range formats {
		if !f.chosen {
			all = slices.AppendSeq(all, strings.FieldsSeq(f.extensions))
		}
	}
	return all
}

// FormatOf returns the format of a file by its extension: see outline.Ext.
func FormatOf(name string) *Format {
	f := byExtension[outline.Ext(name)]
	switch {
	case f != nil:
		return f
	case outline.IsSource(name):
		return source
	}
	return Markdown
}

// MaxSize returns the largest size in bytes of a file that is indexed. Most bytes of a large
// document that is converted are pictures.
func MaxSize(name string) int64 {
	if FormatOf(name).Converted() {
		return maxConverted
	}
	return maxText
}

// Converted reports whether the text of a file differs from its bytes: it is Markdown.
func (f *Format) Converted() bool { return f.convert != nil }

// IsMarkdown reports whether the text of a file is Markdown.
func (f *Format) IsMarkdown() bool { return f == Markdown || f == mdx || f.Converted() }
