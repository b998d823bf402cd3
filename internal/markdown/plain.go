package markdown

import (
	"bytes"
	"html"
	"strings"
)

// PlainText returns a piece of Markdown without its markup, for embedding and
// snippets. It scans rather than parses: it does not allocate per line, and it keeps
// the text of malformed markup.
//
// It removes heading, list, quote and emphasis marks, setext underlines and rules,
// link targets and definitions, HTML tags and comments, table pipes and delimiter
// rows, the backticks of code, heading ids and blank lines. It keeps link texts,
// image alternatives, code with its line breaks and the language of its fence, and
// the text, title or term_id of a Hugo shortcode. It replaces entities by their
// characters and runs of blanks by one blank.
func PlainText(src []byte) string { return plainText(src, "") }

// plainText is PlainText of a piece that begins inside the fenced code block that fence
// opened, unless fence is empty.
func plainText(src []byte, fence string) string {
	p := plain{src: src, out: make([]byte, 0, len(src))}
	if fence != "" {
		p.code(fence)
	}
	p.run()
	return string(bytes.TrimRight(p.out, " \n"))
}

// LinkShare returns which part of the text of a piece of the named file, without its
// markup, is the text of links: 1 for a list of links alone, 0 without text and in other
// formats than Markdown. skip is the length of a beginning that does not count, such as
// a heading.
func LinkShare(name string, src []byte, skip int) float64 {
	if f := FormatOf(name); f != Markdown && f != MDX {
		return 0
	}
	if !bytes.Contains(src, []byte("](")) && !bytes.Contains(src, []byte("][")) && !bytes.Contains(src, []byte("]]")) {
		return 0
	}
	p := plain{src: src, out: make([]byte, 0, len(src))}
	p.run()
	return float64(p.linked) / float64(max(1, p.linked, len(bytes.TrimSpace(p.out))-skip))
}

// Plain returns the text of a piece of the named file. For Markdown it is PlainText,
// for MDX also without import and export statements. reStructuredText loses its markup
// too: see plainRST. For other formats it is the piece itself without blank lines at its
// ends. fence is the mark of the fenced code block that the piece begins inside, "" where
// it begins outside: see Fence.
func Plain(name, fence string, src []byte) string {
	switch FormatOf(name) {
	case Markdown, Converted:
		return plainText(src, fence)
	case MDX:
		return plainText(maskESM(src, 0), fence)
	case RST:
		return strings.ToValidUTF8(plainRST(src), "\ufffd")
	}
	return strings.ToValidUTF8(string(TrimBlankLines(src)), "\ufffd")
}

type plain struct {
	src   []byte
	i     int
	out   []byte
	links int // open brackets of this paragraph
	// opened is where the text after the last opening bracket begins in out, and linked
	// the bytes of out that are texts of links.
	opened, linked int
	// noComment and noScript record that the rest has no end of a comment or script,
	// so that the scanner searches for it only once.
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

// blank writes one blank unless the output ends with white space.
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

// line returns the line from p.i on and the offset behind its line break.
func (p *plain) line() ([]byte, int) {
	return lineAt(p.src, p.i)
}

// lineStart reads markup that is valid only at the start of a line.
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
			n := 0
			for p.i+n < len(p.src) && p.src[p.i+n] == '#' {
				n++
			}
			if n > 6 || p.i+n < len(p.src) && !isBlank(p.src[p.i+n]) {
				return
			}
			p.i += n
			return
		case '`', '~':
			if !p.fence() {
				return
			}
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			line, _ := p.line()
			if _, n := openingFence(line); n == 0 {
				return
			}
			n := entryMark(line)
			p.out = append(p.out, line[:n]...)
			p.i += n
		case '-', '+', '*', '=', '_':
			if line, next := p.line(); isUnderline(line, c) {
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
			line, next := p.line()
			if !isDelimiterRow(line) {
				return
			}
			p.i = next
		case '[':
			line, next := p.line()
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

// isUnderline reports whether a line is a setext underline or a thematic break: two
// or more of c and otherwise only blanks.
func isUnderline(line []byte, c byte) bool {
	n := 0
	for _, b := range line {
		if b == c {
			n++
		} else if !isBlank(b) {
			return false
		}
	}
	return n >= 2 && c != '+'
}

// isDelimiterRow reports whether a line is |---|:--:| or the like.
func isDelimiterRow(line []byte) bool {
	dashes := 0
	for _, b := range line {
		switch b {
		case '-':
			dashes++
		case '|', ':', ' ', '\t', '\r':
		default:
			return false
		}
	}
	return dashes > 0
}

// isDefinition reports whether a line is "[label]: target" and not a footnote.
func isDefinition(line []byte) bool {
	end := bytes.IndexByte(line, ']')
	return end > 1 && line[1] != '^' && end+2 < len(line) && line[end+1] == ':' &&
		len(bytes.Fields(line[end+2:])) <= 2 || end > 1 && line[1] != '^' && end+2 < len(line) && line[end+1] == ':' &&
		bytes.ContainsAny(line[end+2:], "\"'")
}

// fence copies a fenced code block, or reports that there is none.
func (p *plain) fence() bool {
	line, next := p.line()
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

// code copies the rest of the fenced code block that mark opened.
func (p *plain) code(mark string) {
	for p.i < len(p.src) {
		line, next := p.line()
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

// inline reads to the end of the line, or to the end of a construct that spans lines.
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
			if p.i < len(p.src) && isPunct(p.src[p.i]) {
				p.out = append(p.out, p.src[p.i])
				p.i++
			} else if p.i < len(p.src) && p.src[p.i] != '\n' && p.src[p.i] != '\r' {
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
			if p.i >= len(p.src) || p.src[p.i] != '[' {
				p.out = append(p.out, '!')
			}
		case '[':
			p.i++
			p.links++
			p.opened = len(p.out)
			if p.i < len(p.src) && p.src[p.i] == '^' { // a footnote's mark
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

// codeSpan copies the content of a code span, or removes backticks without a match.
func (p *plain) codeSpan() {
	n := 0
	for p.i+n < len(p.src) && p.src[p.i+n] == '`' {
		n++
	}
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

// emphasis removes a run of marks, except between blanks (a product) and, for
// underscores and tildes, inside a word.
func (p *plain) emphasis(c byte) {
	from := p.i
	for p.i < len(p.src) && p.src[p.i] == c {
		p.i++
	}
	before, after := byte(' '), byte(' ')
	if from > 0 {
		before = p.src[from-1]
	}
	if p.i < len(p.src) {
		after = p.src[p.i]
	}
	alone := isBlank(before) && isBlank(after)
	inWord := c == '_' && isWordByte(before) && isWordByte(after)
	if alone || inWord || c == '~' && p.i-from == 1 {
		p.out = append(p.out, p.src[from:p.i]...)
	}
}

func isWordByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c >= 0x80 || c == '_'
}

// closeBracket removes the target or label after a link's text.
func (p *plain) closeBracket() {
	p.i++
	if p.links == 0 {
		p.out = append(p.out, ']')
		return
	}
	p.links--
	if p.i >= len(p.src) {
		return
	}
	switch p.src[p.i] {
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

// link counts the text since the last opening bracket as that of a link. Text in nested
// brackets counts once.
func (p *plain) link() {
	p.linked += max(0, len(p.out)-p.opened)
	p.opened = len(p.out)
}

const maxLabel = 1000 // characters; CommonMark allows 999

// inlineTags do not separate words.
var inlineTags = map[string]bool{
	"a": true, "abbr": true, "b": true, "big": true, "code": true, "del": true, "em": true, "font": true,
	"i": true, "ins": true, "kbd": true, "mark": true, "s": true, "samp": true, "small": true,
	"span": true, "strong": true, "sub": true, "sup": true, "tt": true, "u": true, "var": true,
}

// angle removes a tag or comment and keeps the content of an autolink.
func (p *plain) angle() {
	rest := p.src[p.i:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		end := -1
		if !p.noComment {
			end = bytes.Index(rest, []byte("-->"))
		}
		if end < 0 {
			p.noComment = true
			p.i += len("<!--")
			return
		}
		p.i += end + 3
		return
	case len(rest) > 2 && (isLetter(rest[1]) || rest[1] == '/' && isLetter(rest[2])):
	default:
		p.out = append(p.out, '<')
		p.i++
		return
	}
	if uri, ok := autolink(rest); ok {
		p.out = append(p.out, uri...)
		p.i += len(uri) + 2
		return
	}
	name, alt, end := p.tag()
	if end == p.i {
		p.out = append(p.out, '<')
		p.i++
		return
	}
	p.i = end
	if !inlineTags[name] {
		p.blank()
	}
	if (name == "script" || name == "style") && rest[1] != '/' && !p.noScript {
		if n := bytes.Index(p.src[p.i:], []byte("</"+name)); n >= 0 {
			p.i += n
		} else {
			p.noScript = true
		}
	}
	if alt != "" {
		p.blank()
		p.out = append(p.out, alt...)
		p.blank()
	}
}

// tag reads a tag as parseTag does, but does not build its attributes and reads
// braces as a JSX value. alt is the alternative text of an image.
func (p *plain) tag() (name, alt string, end int) {
	limit := min(len(p.src), p.i+maxTag)
	i := p.i + 1
	if p.src[i] == '/' {
		i++
	}
	from := i
	for i < limit && isTagByte(p.src[i]) {
		i++
	}
	var lower [12]byte
	if n := i - from; n <= len(lower) {
		for k := range n {
			lower[k] = p.src[from+k]
			if 'A' <= lower[k] && lower[k] <= 'Z' {
				lower[k] |= 0x20
			}
		}
		name = string(lower[:n])
	}
	if i < limit && strings.IndexByte(" \t\n\r/>", p.src[i]) < 0 {
		return "", "", p.i
	}
	depth := 0
	for ; i < limit; i++ {
		switch c := p.src[i]; c {
		case '{':
			depth++
		case '}':
			depth--
		case '>':
			if depth <= 0 {
				return name, alt, i + 1
			}
		case '"', '\'':
			n := bytes.IndexByte(p.src[i+1:limit], c)
			if n < 0 {
				return "", "", p.i
			}
			if name == "img" && bytes.HasSuffix(bytes.ToLower(p.src[max(p.i, i-4):i]), []byte("alt=")) {
				alt = html.UnescapeString(string(p.src[i+1 : i+1+n]))
			}
			i += n + 1
		case '<':
			return "", "", p.i
		}
	}
	return "", "", p.i
}

// autolink returns the content of <scheme:…> or <name@host>.
func autolink(rest []byte) ([]byte, bool) {
	rest = rest[1:min(len(rest), maxTag)]
	end := bytes.IndexAny(rest, "> \t\n<\"'=")
	if end <= 0 || rest[end] != '>' {
		return nil, false
	}
	in := rest[:end]
	colon := bytes.IndexByte(in, ':')
	return in, colon > 1 && colon < 33 && colon+1 < len(in) && in[0] != '/' || bytes.IndexByte(in, '@') > 0
}

// entity decodes one character reference.
func (p *plain) entity() {
	rest := p.src[p.i:min(len(p.src), p.i+34)]
	end := bytes.IndexByte(rest, ';')
	if end > 1 && (rest[1] == '#' || isLetter(rest[1])) && !bytes.ContainsAny(rest[:end], " \n\t<") {
		if s := html.UnescapeString(string(rest[:end+1])); s != string(rest[:end+1]) {
			if s == "\u00a0" {
				p.blank()
			} else {
				p.out = append(p.out, s...)
			}
			p.i += end + 1
			return
		}
	}
	p.out = append(p.out, '&')
	p.i++
}

// brace reads Hugo shortcodes, template tags and heading ids.
func (p *plain) brace() {
	rest := p.src[p.i:min(len(p.src), p.i+maxTag)]
	closing := ""
	switch {
	case bytes.HasPrefix(rest, []byte("{{<")):
		closing = ">}}"
	case bytes.HasPrefix(rest, []byte("{{%")):
		closing = "%}}"
	case bytes.HasPrefix(rest, []byte("{%")):
		closing = "%}"
	case bytes.HasPrefix(rest, []byte("{#")), bytes.HasPrefix(rest, []byte("{:")):
		closing = "}"
	}
	end := -1
	if closing != "" {
		end = bytes.Index(rest[2:], []byte(closing)) + 2
	}
	if end < 2 || closing == "}" && bytes.IndexByte(rest[:end], '\n') >= 0 {
		p.out = append(p.out, '{')
		p.i++
		return
	}
	p.i += end + len(closing)
	if len(closing) == 3 {
		p.blank()
		p.out = append(p.out, shortcodeText(rest[3:end])...)
		if p.i < len(p.src) && isWordByte(p.src[p.i]) {
			p.blank()
		}
	}
}

// shortcodeText returns the first of the text, title and term_id of a shortcode.
func shortcodeText(args []byte) []byte {
	for _, key := range []string{`text="`, `title="`, `term_id="`} {
		for from := 0; ; {
			n := bytes.Index(args[from:], []byte(key))
			if n < 0 {
				break
			}
			at := from + n
			from = at + len(key)
			if at > 0 && !isBlank(args[at-1]) {
				continue
			}
			if end := bytes.IndexByte(args[from:], '"'); end >= 0 {
				return args[from : from+end]
			}
		}
	}
	return nil
}
