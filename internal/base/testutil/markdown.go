package testutil

import "strings"

// Piece is a part of a Markdown text below the headings in Trail.
type Piece struct {
	Trail []string
	Body  string
}

// Pieces cuts Markdown at ATX headings outside fences: enough for a
// measurement, where internal/text/markdown would be for an index.
func Pieces(text string) []Piece {
	var pieces []Piece
	var stack [7]string
	var body strings.Builder
	flush := func() {
		if strings.TrimSpace(body.String()) != "" {
			var trail []string
			for _, h := range stack {
				if h != "" {
					trail = append(trail, h)
				}
			}
			pieces = append(pieces, Piece{trail, body.String()})
		}
		body.Reset()
	}
	fence := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if !fence && level >= 1 && level <= 6 && strings.HasPrefix(line[level:], " ") {
			flush()
			stack[level] = strings.TrimSpace(line[level:])
			clear(stack[level+1:])
		}
		body.WriteString(line)
	}
	flush()
	return pieces
}
