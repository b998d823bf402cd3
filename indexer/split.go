package indexer

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/text/markdown"
)

// span is a half-open range of bytes of a file.
type span struct{ start, end int }

// unit is a piece of text that pack does not divide. A file may have millions.
type unit struct{ start, end, tokens int32 }

// level is the kind of border at which a span is divided. A piece that is still too
// large is divided at the next level.
type level int

const (
	paragraphs level = iota // blank lines and fences
	lines                   // list entries, table rows, lines of code
	sentences
	halves // the white space nearest to the middle, or the nearest rune border
	runes  // the rune border nearest to the middle, in a word without white space
)

// splitter divides one body into units and packs them into chunks.
type splitter struct {
	c            *Chunker
	path, text   string
	room, target int
	units        []unit
	fences       []markdown.Fence // of the body
}

// cut divides body into one or more pieces of at most room tokens, close to target
// tokens each.
func (sp *splitter) cut(body span) []span {
	n, fits := sp.count(body, min(sp.room, sp.target+sp.target/4))
	if fits {
		return []span{body}
	}
	sp.fences = markdown.Fences([]byte(sp.text[body.start:body.end]))
	for i := range sp.fences {
		f := &sp.fences[i]
		f.Start, f.Code, f.End = f.Start+body.start, f.Code+body.start, f.End+body.start
	}
	sp.divide(body, paragraphs)
	if n == 0 { // count did not count the tokens of a long body
		for _, u := range sp.units {
			n += int(u.tokens)
		}
	}
	return sp.pack(n)
}

// Pieces of less than shortPiece bytes are joined in a text of more than longSpan bytes,
// which could have millions of them.
const (
	longSpan   = 1 << 20
	shortPiece = 64
)

// bytesPerToken bounds the work on very long texts: a span with more bytes than this per
// allowed token is too long, whatever its tokens. Word pieces have four to five bytes on
// average, so a text that fits is far below the bound.
const bytesPerToken = 64

// fence returns the fenced code block, including its marks, that contains offset at, or
// nil if there is none.
func (sp *splitter) fence(at int) *markdown.Fence {
	n := sort.Search(len(sp.fences), func(i int) bool { return sp.fences[i].End > at })
	if n == len(sp.fences) || sp.fences[n].Start > at {
		return nil
	}
	return &sp.fences[n]
}

// fenceMark returns the mark of the fenced code block whose code contains offset at, or
// "" if there is none.
func (sp *splitter) fenceMark(at int) string {
	if f := sp.fence(at); f != nil && at >= f.Code {
		return f.Mark
	}
	return ""
}

// count returns the number of tokens in the plain text of a span, and whether it is at
// most limit. It returns 0 and false without counting if the span has too many bytes.
func (sp *splitter) count(s span, limit int) (n int, fits bool) {
	if s.end-s.start > (limit+1)*bytesPerToken {
		return 0, false
	}
	n = sp.c.tok.Count(markdown.Plain(sp.path, sp.fenceMark(s.start), []byte(sp.text[s.start:s.end])))
	return n, n <= limit
}

// divide appends the units of s in order. A unit has at most room tokens. Only a single
// sentence has more than target tokens.
func (sp *splitter) divide(s span, at level) {
	split := [...]func(span, func(span)){sp.splitParagraphs, sp.splitLines, sp.splitSentences}
	for ; at < halves; at++ {
		var last span // not added yet, since it may be the only piece
		pieces := 0
		add := func(p span) {
			if n, fits := sp.count(p, sp.target); fits {
				sp.add(p, n)
			} else {
				sp.divide(p, at+1)
			}
		}
		join := s.end-s.start > longSpan
		split[at](s, func(p span) {
			if join && pieces > 0 && p.end-last.start < shortPiece {
				last.end = p.end
				return
			}
			if pieces > 0 {
				add(last)
			}
			last = p
			pieces++
		})
		if pieces > 1 {
			add(last)
			return
		}
	}
	n, fits := sp.count(s, sp.room)
	if !fits {
		if pieces, next := splitHalf(sp.text, s, at); len(pieces) == 2 {
			sp.divide(pieces[0], next)
			sp.divide(pieces[1], next)
			return
		}
	}
	sp.add(s, n)
}

func (sp *splitter) add(s span, tokens int) {
	sp.units = append(sp.units, unit{int32(s.start), int32(s.end), int32(tokens)})
}

// pack joins consecutive units into chunks of similar size. total is the sum of their
// tokens. Without an even size, 260 tokens could become 250 and 10, and a chunk of 10
// tokens has hardly any content.
func (sp *splitter) pack(total int) []span {
	var out []span
	left := max(1, (total+sp.target-1)/sp.target) // remaining chunks
	first, size := 0, 0                           // the open chunk: units[first:i]
	even := total / left
	for i, u := range sp.units {
		tokens := int(u.tokens)
		if i > first && (size+tokens > sp.room || size+tokens/2 > even) {
			out = sp.emit(out, first, i)
			total -= size
			left = max(1, left-1)
			even = total / left
			first, size = i, 0
		}
		size += tokens
	}
	return sp.emit(out, first, len(sp.units))
}

// emit appends the chunk of units[first:end]. A text can have more tokens than its parts
// together (for example if markup has a meaning only in a part), so emit counts the
// tokens again and halves a chunk that is too large.
func (sp *splitter) emit(out []span, first, end int) []span {
	if first >= end {
		return out
	}
	s := span{int(sp.units[first].start), int(sp.units[end-1].end)}
	if end-first == 1 {
		return append(out, s)
	}
	if _, fits := sp.count(s, sp.room); fits {
		return append(out, s)
	}
	mid := (first + end) / 2
	return sp.emit(sp.emit(out, first, mid), mid, end)
}

// pieces returns a function that yields the piece of s from the previous end, at first the
// start of s, to the next one, without white space as trim removes it.
func (sp *splitter) pieces(s span, trim func(string, span) span, yield func(span)) (flush func(end int)) {
	start := s.start
	return func(end int) {
		if p := trim(sp.text, span{start, end}); p.start < p.end {
			yield(p)
		}
		start = end
	}
}

// splitParagraphs divides s at blank lines and around fenced code. It does not divide
// fenced code.
func (sp *splitter) splitParagraphs(s span, yield func(span)) {
	flush := sp.pieces(s, trimBlank, yield)
	for at := s.start; at < s.end; {
		end := lineEnd(sp.text, at, s.end)
		if f := sp.fence(at); f != nil {
			flush(at)
			end = min(f.End, s.end)
			flush(end)
		} else if strings.TrimSpace(sp.text[at:end]) == "" {
			flush(at)
		}
		at = end
	}
	flush(s.end)
}

// splitLines divides a paragraph before every list entry and table row, and
// fenced or indented code at every line.
func (sp *splitter) splitLines(s span, yield func(span)) {
	code := sp.fence(s.start) != nil
	flush := sp.pieces(s, trimBlank, yield)
	for at := s.start; at < s.end; {
		end := lineEnd(sp.text, at, s.end)
		line := sp.text[at:end]
		if code || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") || beginsEntry(line) {
			flush(at)
		}
		at = end
	}
	flush(s.end)
}

// beginsEntry reports whether a line begins a list entry, a table row or a
// quoted paragraph.
func beginsEntry(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return false
	}
	switch line[0] {
	case '|':
		return true
	case '-', '*', '+':
		return len(line) > 1 && (line[1] == ' ' || line[1] == '\t')
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && digits < 10 && len(line) > digits+1 &&
		(line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' '
}

// splitSentences divides s after '.', '!' and '?' before white space, and after their
// full-width forms. It also divides after abbreviations; pack joins the pieces.
func (sp *splitter) splitSentences(s span, yield func(span)) {
	flush := sp.pieces(s, trimSpace, yield)
	ended := false
	for i, r := range sp.text[s.start:s.end] {
		at := s.start + i
		switch {
		case unicode.IsSpace(r):
			if ended {
				flush(at)
			}
			ended = false
		case r == '。' || r == '！' || r == '？':
			flush(at + utf8.RuneLen(r))
			ended = false
		default:
			ended = r == '.' || r == '!' || r == '?' || ended && (r == '"' || r == '\'' || r == ')' || r == '*' || r == '_')
		}
	}
	flush(s.end)
}

// splitHalf divides s at the white space nearest to its middle, or, if it is a single
// word, at the rune border nearest to the middle. It does not divide a single rune. next is
// the level of the pieces, which keeps a long word from being searched again.
func splitHalf(text string, s span, level level) (pieces []span, next level) {
	s = trimSpace(text, s)
	mid := (s.start + s.end) / 2
	left, right := -1, -1
	if level == halves {
		left = strings.LastIndexFunc(text[s.start:mid], unicode.IsSpace)
		end := s.end
		if left >= 0 {
			end = min(end, 2*mid-(s.start+left)+utf8.UTFMax) // beyond it, left is nearer
		}
		right = strings.IndexFunc(text[mid:end], unicode.IsSpace)
	}
	at := mid
	switch {
	case left >= 0 && (right < 0 || mid-(s.start+left) <= right):
		at = s.start + left
	case right >= 0:
		at = mid + right
	default:
		level = runes
		for at > s.start && !utf8.RuneStart(text[at]) {
			at--
		}
		if at == s.start {
			_, n := utf8.DecodeRuneInString(text[at:s.end])
			at += n
		}
	}
	for _, p := range []span{{s.start, at}, {at, s.end}} {
		if p = trimSpace(text, p); p.start < p.end {
			pieces = append(pieces, p)
		}
	}
	return pieces, level
}

// lineEnd returns the offset after the line that contains at, including its line break,
// at most end. A line break is "\n", "\r\n" or a single "\r", as in package markdown.
func lineEnd(text string, at, end int) int {
	for i := at; i < end; i++ {
		switch {
		case text[i] == '\n', text[i] == '\r' && (i+1 == end || text[i+1] != '\n'):
			return i + 1
		}
	}
	return end
}

// trimBlank removes leading blank lines and trailing white space. The first line keeps
// its indentation.
func trimBlank(text string, s span) span {
	p := trimSpace(text, s)
	if p.start == p.end {
		return p
	}
	if n := strings.LastIndexAny(text[s.start:p.start], "\r\n"); n >= 0 {
		p.start = s.start + n + 1
	} else {
		p.start = s.start
	}
	return p
}

// trimSpace removes leading and trailing white space.
func trimSpace(text string, s span) span {
	t := strings.TrimLeftFunc(text[s.start:s.end], unicode.IsSpace)
	start := s.end - len(t)
	return span{start, start + len(strings.TrimRightFunc(t, unicode.IsSpace))}
}
