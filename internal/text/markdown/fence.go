package markdown

import (
	"bytes"

	"cairn/internal/text/outline"
)

// Fence is a fenced code block. The offsets are in bytes.
type Fence struct {
	// Mark is the run of backquotes or tildes that opens the block, cut to
	// MaxFence bytes. A line with a run of at least this length closes the block.
	Mark string
	// Start is the start of the opening line, Code the start of the next line, and End
	// the offset after the closing line.
	Start, Code, End int
}

// Fences returns the fenced code blocks of src in order, including those in block quotes
// and list items. An unclosed block ends with src. Fences accepts all line endings.
func Fences(src []byte) []Fence {
	src = normalise(src, 0)
	var fences []Fence
	for at := 0; at < len(src); {
		line, next := lineAt(src, at)
		mark, n := openingFence(line)
		if n == 0 {
			at = next
			continue
		}
		f := Fence{Mark: string(line[mark : mark+n]), Start: at, Code: next, End: len(src)}
		for at = next; at < len(src); at = next {
			line, next = lineAt(src, at)
			if closesFence(line, f.Mark) {
				at, f.End = next, next
				break
			}
		}
		fences = append(fences, f)
	}
	return fences
}

// lineAt returns the rest of the line at offset at, without its line break, and the
// offset of the next line.
func lineAt(src []byte, at int) ([]byte, int) {
	end := outline.LineEnd(src, at)
	return src[at:end], min(end+1, len(src))
}

// openingFence returns the offset and length of the mark in a line that opens a fenced
// code block. The length is 0 for any other line. Block quote and list markers may
// precede the mark.
func openingFence(line []byte) (at, n int) {
	for at < len(line) {
		switch c := line[at]; {
		case c == ' ' || c == '\t' || c == '>':
			at++
		case c == '`' || c == '~':
			n = runLength(line, at)
			if n < 3 || c == '`' && bytes.IndexByte(line[at+n:], '`') >= 0 {
				return 0, 0
			}
			return at, min(n, MaxFence)
		default:
			marker := listMarker(line[at:])
			if marker == 0 {
				return 0, 0
			}
			at += marker
		}
	}
	return 0, 0
}

// listMarker returns the length of the list marker at the start of text, such as "-" or
// "12.", or 0 if there is none.
func listMarker(text []byte) int {
	n := 0
	for n < min(len(text), 9) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n+1 >= len(text) || !isBlank(text[n+1]) {
		return 0
	}
	switch c := text[n]; {
	case n == 0 && (c == '-' || c == '*' || c == '+'), n > 0 && (c == '.' || c == ')'):
		return n + 1
	}
	return 0
}

// closesFence reports whether a line closes a block that mark opened.
func closesFence(line []byte, mark string) bool {
	closing := bytes.TrimSpace(bytes.TrimLeft(line, "> "))
	return len(closing) >= len(mark) && len(bytes.Trim(closing, mark[:1])) == 0
}
