package highlight

import (
	"regexp"
	"strings"
)

// Markdown returns the spans of a Markdown text in order: headings, code, block quotes and
// front matter.
func Markdown(text string) []Span {
	var spans []Span
	var fence, language string // of the open code block
	code := 0                  // the start of its content
	front := strings.HasPrefix(text, "---\n")
	at := 0
	for line := range strings.Lines(text) {
		start, end := at, at+len(strings.TrimRight(line, "\r\n"))
		at += len(line)
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case front:
			spans = append(spans, Span{start, end, Comment})
			front = start == 0 || strings.TrimSpace(line) != "---"
		case fence != "" && strings.HasPrefix(trimmed, fence):
			for _, s := range Code(language, text[code:start]) {
				spans = append(spans, Span{code + s.Start, code + s.End, s.Kind})
			}
			spans = append(spans, Span{start, end, Comment})
			fence = ""
		case fence != "":
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence, code = trimmed[:3], at
			language, _, _ = strings.Cut(strings.TrimSpace(strings.TrimLeft(trimmed, "`~")), " ")
			spans = append(spans, Span{start, end, Comment})
		case strings.HasPrefix(trimmed, "#"):
			spans = append(spans, Span{start, end, Heading})
		case strings.HasPrefix(trimmed, ">"):
			spans = append(spans, Span{start, end, Comment})
		default:
			for _, m := range inlineCode.FindAllStringIndex(text[start:end], -1) {
				spans = append(spans, Span{start + m[0], start + m[1], String})
			}
		}
	}
	return spans
}

// inlineCode matches a code span within a line.
var inlineCode = regexp.MustCompile("`[^`]*`")
