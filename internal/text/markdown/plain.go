package markdown

import (
	"bytes"
	"strings"
)

// PlainText returns a piece of Markdown without its markup, for embedding and snippets.
// It scans instead of parsing, so it keeps the text of malformed markup.
//
// It removes heading, list, quote and emphasis markers, setext underlines and rules, link
// targets and definitions, HTML tags and comments, table pipes and delimiter rows, the
// backticks of code, heading ids and blank lines. It keeps link texts, the alternative
// texts of images, code with its line breaks and the language of its fence, and the text,
// title or term_id of a Hugo shortcode. It decodes entities and replaces runs of blanks
// by one blank.
func PlainText(src []byte) string { return plainText(src, "") }

// plainText is PlainText for a piece that begins inside a code block opened by fence. An
// empty fence means that the piece begins outside.
func plainText(src []byte, fence string) string {
	p := plain{src: src, out: make([]byte, 0, len(src))}
	if fence != "" {
		p.code(fence)
	}
	p.run()
	return string(bytes.TrimRight(p.out, " \n"))
}

// LinkShare returns the share of link texts in the plain text of a piece of the named
// file, between 0 and 1. It returns 0 for formats other than Markdown. skip is the number
// of bytes at the start of the plain text that do not count, such as a heading.
func LinkShare(name string, src []byte, skip int) float64 {
	if f := FormatOf(name); f != Markdown && f != mdx {
		return 0
	}
	if !bytes.Contains(src, []byte("](")) && !bytes.Contains(src, []byte("][")) && !bytes.Contains(src, []byte("]]")) {
		return 0
	}
	p := plain{src: src, out: make([]byte, 0, len(src))}
	p.run()
	return float64(p.linked) / float64(max(1, p.linked, len(bytes.TrimSpace(p.out))-skip))
}

// Plain returns a piece of the named file without markup. For Markdown it is PlainText,
// for MDX also without import and export statements, for reStructuredText see plainRST.
// For other formats it is the piece without leading and trailing blank lines. fence is
// the Fence.Mark of the code block in which the piece begins, "" for none.
func Plain(name, fence string, src []byte) string {
	switch f := FormatOf(name); {
	case f == mdx:
		return plainText(maskESM(src, 0), fence)
	case f.IsMarkdown():
		return plainText(src, fence)
	case f == rst:
		return strings.ToValidUTF8(plainRST(src), "\ufffd")
	}
	return strings.ToValidUTF8(string(TrimBlankLines(src)), "\ufffd")
}

type plain struct {
	src   []byte
	i     int
	out   []byte
	links int // open brackets of this paragraph
	// opened is the offset in out after the last opening bracket, and linked the number
	// of bytes of out that are link texts.
	opened, linked int
	// noComment and noScript record that the rest of src does not close a comment or
	// script, so that the scanner searches only once.
	noComment, noScript bool
}

// special marks the bytes that may begin inline markup.
var special = func() (t [256]bool) {
	for _, c := range []byte("\n\r\t \\`*_~[]!<&|{") {
		t[c] = true
	}
	return t
}()

func (p *plain) run() {
	for p.i < len(p.src) {
		p.lineStart()
		p.inline()
	}
}

// at returns the byte at an offset, a line break outside of the text.
func (p *plain) at(i int) byte {
	if i < 0 || i >= len(p.src) {
		return '\n'
	}
	return p.src[i]
}

// blank appends one blank unless the output is empty or ends with white space.
func (p *plain) blank() {
	if n := len(p.out); n > 0 && p.out[n-1] != ' ' && p.out[n-1] != '\n' {
		p.out = append(p.out, ' ')
	}
}

func (p *plain) newline() {
	n := len(p.out)
	for n > 0 && p.out[n-1] == ' ' {
		n--
	}
	p.out = p.out[:n]
	if n > 0 && p.out[n-1] != '\n' {
		p.out = append(p.out, '\n')
	}
}

// lineStart skips markup that is valid only at the start of a line.
func (p *plain) lineStart() {
	for p.i < len(p.src) {
		p.skipBlanks()
		if p.i >= len(p.src) {
			return
		}
		switch c := p.src[p.i]; c {
		case '\n', '\r':
			p.i++
			p.links = 0
			p.newline()
		case '>':
			p.i++
		case '#':
			n := runLength(p.src, p.i)
			if n > 6 || !isBlank(p.at(p.i+n)) {
				return
			}
			p.i += n
			return
		case '`', '~':
			if !p.fence() {
				return
			}
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			line, _ := lineAt(p.src, p.i)
			if _, n := openingFence(line); n == 0 {
				return
			}
			n := listMarker(line)
			p.out = append(p.out, line[:n]...)
			p.i += n
		case '-', '+', '*', '=', '_':
			if line, next := lineAt(p.src, p.i); isUnderline(line, c) {
				p.i = next
				p.newline()
				continue
			}
			if c == '=' || c == '_' || p.i+1 >= len(p.src) || !isBlank(p.src[p.i+1]) {
				return
			}
			p.i++
			p.taskBox()
		case '|', ':':
			line, next := lineAt(p.src, p.i)
			if !isDelimiterRow(line) {
				return
			}
			p.i = next
		case '[':
			line, next := lineAt(p.src, p.i)
			if !isDefinition(line) {
				return
			}
			p.i = next
		default:
			return
		}
	}
}

func (p *plain) skipBlanks() {
	for p.i < len(p.src) && (p.src[p.i] == ' ' || p.src[p.i] == '\t') {
		p.i++
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// taskBox skips "[ ]" and "[x]" after a list marker.
func (p *plain) taskBox() {
	p.skipBlanks()
	if r := p.src[p.i:]; len(r) > 3 && r[0] == '[' && (r[1]|0x20 == 'x' || r[1] == ' ') && r[2] == ']' && isBlank(r[3]) {
		p.i += 3
	}
}

// isUnderline reports whether a line is a setext underline or a thematic break: at least
// two bytes c and otherwise only blanks.
func isUnderline(line []byte, c byte) bool {
	mark := string([]byte{c})
	return c != '+' && bytes.Count(line, []byte(mark)) >= 2 && len(bytes.Trim(line, mark+" \t\r")) == 0
}

// isDelimiterRow reports whether a line is the delimiter row of a table: |---|:--:|.
func isDelimiterRow(line []byte) bool {
	return bytes.IndexByte(line, '-') >= 0 && len(bytes.Trim(line, "-|: \t\r")) == 0
}

// isDefinition reports whether a line is "[label]: target" and not a footnote.
func isDefinition(line []byte) bool {
	end := bytes.IndexByte(line, ']')
	if end <= 1 || line[1] == '^' || end+2 >= len(line) || line[end+1] != ':' {
		return false
	}
	target := line[end+2:]
	return len(bytes.Fields(target)) <= 2 || bytes.ContainsAny(target, "\"'")
}

// fence copies the fenced code block at p.i. It returns false if there is none.
func (p *plain) fence() bool {
	line, next := lineAt(p.src, p.i)
	at, n := openingFence(line)
	if n == 0 {
		return false
	}
	p.newline()
	mark := string(line[at : at+n])
	if word := bytes.Trim(line[at:], mark[:1]+" \t\r{}."); len(word) > 0 {
		if cut := bytes.IndexAny(word, " \t,{"); cut >= 0 {
			word = word[:cut]
		}
		p.out = append(p.out, word...)
		p.newline()
	}
	p.i = next
	p.code(mark)
	return true
}

// code copies the rest of a code block opened by mark.
func (p *plain) code(mark string) {
	for p.i < len(p.src) {
		line, next := lineAt(p.src, p.i)
		p.i = next
		if closesFence(line, mark) {
			return
		}
		line = bytes.TrimRight(line, " \t\r")
		if len(line) > 0 {
			p.out = append(p.out, line...)
			p.out = append(p.out, '\n')
		}
	}
}

// inline reads up to the end of the line, or further for markup that spans lines.
func (p *plain) inline() {
	for p.i < len(p.src) {
		from := p.i
		for p.i < len(p.src) && !special[p.src[p.i]] {
			p.i++
		}
		p.out = append(p.out, p.src[from:p.i]...)
		if p.i >= len(p.src) {
			return
		}
		c := p.src[p.i]
		switch c {
		case '\n', '\r':
			p.i++
			p.newline()
			return
		case ' ', '\t':
			p.i++
			p.blank()
		case '\\':
			p.i++
			if next := p.at(p.i); isPunct(next) {
				p.out = append(p.out, next)
				p.i++
			} else if next != '\n' && next != '\r' {
				p.out = append(p.out, '\\')
			}
		case '`':
			p.codeSpan()
		case '*', '_', '~':
			p.emphasis(c)
		case '|':
			p.i++
			p.blank()
		case '!':
			p.i++
			if p.at(p.i) != '[' {
				p.out = append(p.out, '!')
			}
		case '[':
			p.i++
			p.links++
			p.opened = len(p.out)
			if p.at(p.i) == '^' { // a footnote reference
				if n := bytes.IndexAny(p.src[p.i:min(len(p.src), p.i+64)], "]\n"); n > 0 && p.src[p.i+n] == ']' {
					p.i += n
				}
			}
		case ']':
			p.closeBracket()
		case '<':
			p.angle()
		case '&':
			p.entity()
		case '{':
			p.brace()
		}
	}
}

func isPunct(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

// codeSpan copies the content of a code span. It removes backticks without a match.
func (p *plain) codeSpan() {
	n := runLength(p.src, p.i)
	end := skipCodeSpan(p.src, p.i)
	inner := p.src[p.i+n : max(p.i+n, end-n)]
	p.i = end
	for _, c := range inner {
		if isBlank(c) {
			p.blank()
		} else {
			p.out = append(p.out, c)
		}
	}
}

// emphasis removes a run of emphasis markers. It keeps a run between blanks, such as the
// operator of a product, underscores inside a word, and a single tilde.
func (p *plain) emphasis(c byte) {
	from := p.i
	p.i += runLength(p.src, p.i)
	before, after := p.at(from-1), p.at(p.i)
	alone := isBlank(before) && isBlank(after)
	inWord := c == '_' && isWordByte(before) && isWordByte(after)
	if alone || inWord || c == '~' && p.i-from == 1 {
		p.out = append(p.out, p.src[from:p.i]...)
	}
}

func isWordByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c >= 0x80 || c == '_'
}

// closeBracket removes the target or label after a link text.
func (p *plain) closeBracket() {
	p.i++
	if p.links == 0 {
		p.out = append(p.out, ']')
		return
	}
	p.links--
	switch p.at(p.i) {
	case '(':
		if _, after := destination(p.src, p.i+1, true); after > 0 {
			p.i = after
			p.link()
		}
	case '[':
		label := p.src[p.i:min(len(p.src), p.i+maxLabel)]
		if n := bytes.IndexAny(label[1:], "[]\n"); n >= 0 && label[1+n] == ']' {
			p.i += n + 2
			p.link()
		}
	case ']': // of a wiki link
		if p.links > 0 {
			p.link()
		}
	}
}

// link counts the output since the last opening bracket as link text. Text in nested
// brackets counts once.
func (p *plain) link() {
	p.linked += max(0, len(p.out)-p.opened)
	p.opened = len(p.out)
}

const maxLabel = 1000 // characters; CommonMark allows 999
