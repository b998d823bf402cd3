package markdown

import (
	"bytes"
	"html"
	"strings"
)

// span is a half-open byte range.
type span struct{ start, end int }

// mayHaveMarks is a cheap test for htmlMarks.
func mayHaveMarks(src []byte) bool {
	return bytes.IndexByte(src, '<') >= 0 &&
		(bytes.Contains(src, []byte("id=")) || bytes.Contains(src, []byte("name=")) ||
			bytes.Contains(src, []byte("ID=")) || bytes.Contains(src, []byte("NAME=")))
}

// htmlMarks adds the id of every HTML tag and the name of every <a> outside code
// blocks, code spans and comments. Offsets in code are relative to part, offsets in
// the result to the document.
func htmlMarks(out *outline, part []byte, body int, code []span) {
	for i := 0; i < len(part); {
		if len(code) > 0 && i >= code[0].start {
			i = max(i, code[0].end)
			code = code[1:]
			continue
		}
		next := bytes.IndexAny(part[i:], "<`")
		if next < 0 {
			break
		}
		at := i + next
		if len(code) > 0 && at >= code[0].start {
			i = code[0].start
			continue
		}
		switch {
		case part[at] == '`':
			i = skipCodeSpan(part, at)
		case bytes.HasPrefix(part[at:], []byte("<!--")):
			if end := bytes.Index(part[at:], []byte("-->")); end >= 0 {
				i = at + end + 3
			} else {
				i = len(part)
			}
		default:
			name, attrs, end := parseTag(part, at)
			if end == at {
				i = at + 1
				continue
			}
			for _, a := range attrs {
				if a.name == "id" || a.name == "name" && name == "a" {
					out.mark(mark{name: a.value, at: body + at, next: true, end: body + end})
				}
			}
			i = end
		}
	}
}

// skipCodeSpan returns the offset behind the code span that begins with the backticks
// at i, or behind these backticks if no run of the same length ends it before a blank
// line.
func skipCodeSpan(src []byte, i int) int {
	n := 0
	for i+n < len(src) && src[i+n] == '`' {
		n++
	}
	after := i + n
	for j := after; j < len(src) && j-after < maxCodeSpan; j++ {
		switch src[j] {
		case '\n':
			if k := j + 1; k < len(src) && src[k] == '\n' {
				return after
			}
		case '`':
			run := 0
			for j+run < len(src) && src[j+run] == '`' {
				run++
			}
			if run == n {
				return j + run
			}
			j += run - 1
		}
	}
	return after
}

// maxCodeSpan and maxTag bound in bytes how far a scanner searches for the end of a
// code span or tag, so that unclosed ones take linear time.
const (
	maxCodeSpan = 4 << 10
	maxTag      = 2 << 10
)

type attribute struct{ name, value string }

// parseTag reads the opening, closing or empty HTML tag at src[at] == '<'. end is
// the offset behind its '>', or at if it is not a tag. Names are lower-case, values
// unescaped.
func parseTag(src []byte, at int) (name string, attrs []attribute, end int) {
	i := at + 1
	limit := min(len(src), at+maxTag)
	if i < limit && src[i] == '/' {
		i++
	}
	from := i
	for i < limit && isTagByte(src[i]) {
		i++
	}
	if i == from || !isLetter(src[from]) {
		return "", nil, at
	}
	name = strings.ToLower(string(src[from:i]))
	for i < limit {
		for i < limit && (src[i] == ' ' || src[i] == '\t' || src[i] == '\n' || src[i] == '/') {
			i++
		}
		if i >= limit {
			break
		}
		if src[i] == '>' {
			return name, attrs, i + 1
		}
		from = i
		for i < limit && strings.IndexByte(" \t\n/>=\"'<`", src[i]) < 0 {
			i++
		}
		if i == from {
			break
		}
		a := attribute{name: strings.ToLower(string(src[from:i]))}
		if i < limit && src[i] == '=' {
			i++
			if i < limit && (src[i] == '"' || src[i] == '\'') {
				n := bytes.IndexByte(src[i+1:limit], src[i])
				if n < 0 {
					break
				}
				a.value = html.UnescapeString(string(src[i+1 : i+1+n]))
				i += n + 2
			} else {
				from = i
				for i < limit && strings.IndexByte(" \t\n>\"'<`", src[i]) < 0 {
					i++
				}
				a.value = html.UnescapeString(string(src[from:i]))
			}
		}
		attrs = append(attrs, a)
	}
	return "", nil, at
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isTagByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == ':' || c == '.'
}
