package markdown

import (
	"bytes"

	"cairn/internal/store"
)

// Fence is a fenced code block of a piece of text. The offsets are in bytes.
type Fence struct {
	// Mark is the run of backquotes or tildes that opens the block, at most
	// store.MaxFence of them. A line of as many closes it.
	Mark string
	// Start is where the line of the mark begins, Code where the next line does. End is
	// behind the closing line.
	Start, Code, End int
}

// Fences returns the fenced code blocks of src in order, those in quotes and list
// entries included. A block that no line closes ends with src. It accepts all line
// endings.
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

// lineAt returns the line from at on, without its line break, and the offset behind the
// line break.
func lineAt(src []byte, at int) ([]byte, int) {
	rest := src[at:]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		return rest, len(src)
	}
	return rest[:n], at + n + 1
}

// openingFence returns where in a line the mark of a fenced code block is, and how long
// it is; 0 in a line that opens none. Marks of quotes and list entries may precede it.
func openingFence(line []byte) (at, n int) {
	for at < len(line) {
		switch c := line[at]; {
		case c == ' ' || c == '\t' || c == '>':
			at++
		case c == '`' || c == '~':
			n = len(line[at:]) - len(bytes.TrimLeft(line[at:], string(c)))
			if n < 3 || c == '`' && bytes.IndexByte(line[at+n:], '`') >= 0 {
				return 0, 0
			}
			return at, min(n, store.MaxFence)
		default:
			entry := entryMark(line[at:])
			if entry == 0 {
				return 0, 0
			}
			at += entry
		}
	}
	return 0, 0
}

// entryMark returns the length of the mark of a list entry that text begins with, such as
// "-" or "12.", 0 without one.
func entryMark(text []byte) int {
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

// closesFence reports whether a line closes the block that mark opened.
func closesFence(line []byte, mark string) bool {
	closing := bytes.TrimSpace(bytes.TrimLeft(line, "> "))
	return len(closing) >= len(mark) && len(bytes.Trim(closing, mark[:1])) == 0
}
