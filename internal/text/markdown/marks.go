package markdown

import (
	"bytes"
	"cmp"
	"html"
	"slices"
	"strings"

	"cairn/internal/text/convert"
)

// span is a half-open byte range.
type span struct{ start, end int }

// htmlMarks adds the headings in HTML, the id of every tag and the name of every <a> outside code
// blocks, code spans and comments to out. The ranges in code are relative to part, which begins
// at offset body of the document.
func htmlMarks(out *scanned, part []byte, body int, code []span) {
	for i := 0; i < len(part); {
		next := bytes.IndexAny(part[i:], "<`")
		if next < 0 {
			break
		}
		at := i + next
		for len(code) > 0 && code[0].end <= at {
			code = code[1:]
		}
		if len(code) > 0 && at >= code[0].start {
			i = code[0].end
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
			anchors, end := tag(part, at)
			if end == at {
				i = at + 1
				continue
			}
			if h, ok := htmlHeading(part, at, end); ok {
				h.start += body
				out.head(h)
			}
			for _, name := range anchors {
				out.mark(mark{name: name, at: body + at, next: true, end: body + end})
			}
			i = end
		}
	}
	slices.SortStableFunc(out.heads, func(a, b heading) int { return cmp.Compare(a.start, b.start) })
}

var htmlTag = pattern(`<[^>]*>`)

// htmlHeading returns the heading whose tag, such as <h2>, is part[at:end], if it is the first
// text of its line and its text ends within maxTag bytes. Without other text, the heading has
// the alternative texts of its pictures.
func htmlHeading(part []byte, at, end int) (h heading, ok bool) {
	if end-at < len("<h1>") || part[at+1]|0x20 != 'h' || part[at+2] < '1' || part[at+2] > '6' {
		return h, false
	}
	before := part[max(0, at-maxTag):at]
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	raw, _, ok := bytes.Cut(part[end:min(len(part), end+maxTag)], append([]byte("</"), part[at+1:at+3]...))
	if !ok || !blank(before) || bytes.Contains(raw, []byte("<h")) { // each text is read once
		return h, false
	}
	h.text = collapse(html.UnescapeString(htmlTag().ReplaceAllString(string(raw), " ")))
	h.text = strings.ToValidUTF8(cmp.Or(h.text, collapse(PlainText(raw))), "\ufffd")
	h.text = h.text[:runeStart(h.text, MaxHeading)]
	h.level, h.slug, h.start = int(part[at+2]-'0'), h.text, at-len(before)
	return h, h.text != ""
}

// skipCodeSpan returns the offset after the code span that begins with the backticks at
// i. Without a closing run of the same length before a blank line, it returns the offset
// after the backticks.
func skipCodeSpan(src []byte, i int) int {
	n := runLength(src, i)
	after := i + n
	for j := after; j < len(src) && j-after < maxCodeSpan; j++ {
		switch src[j] {
		case '\n':
			if k := j + 1; k < len(src) && src[k] == '\n' {
				return after
			}
		case '`':
			run := runLength(src, j)
			if run == n {
				return j + run
			}
			j += run - 1
		}
	}
	return after
}

// runLength returns the number of bytes from i that equal the one at i, an ASCII character.
func runLength(src []byte, i int) int {
	return len(src[i:]) - len(bytes.TrimLeft(src[i:], string(src[i:i+1])))
}

// maxCodeSpan and maxTag are the maximum lengths in bytes of a code span and of a tag, so
// that a scanner takes linear time for unclosed ones.
const (
	maxCodeSpan = 4 << 10
	maxTag      = 2 << 10
)

// tag returns the anchors of the HTML tag that begins at at and the offset after it. The
// offset is at if there is no tag.
func tag(src []byte, at int) (anchors []string, end int) {
	text := src[at:min(len(src), at+maxTag)]
	if bytes.IndexByte(text, '>') < 0 { // sooner than the tokenizer
		return nil, at
	}
	anchors, n := convert.TagAnchors(text)
	return anchors, at + n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isTagByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == ':' || c == '.'
}
