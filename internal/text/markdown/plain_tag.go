package markdown

import (
	"bytes"
	"html"
	"regexp"
	"strings"
)

// inlineTags are the HTML elements whose tags do not separate words.
var inlineTags = map[string]bool{
	"a": true, "abbr": true, "b": true, "big": true, "code": true, "del": true, "em": true, "font": true,
	"i": true, "ins": true, "kbd": true, "mark": true, "s": true, "samp": true, "small": true,
	"span": true, "strong": true, "sub": true, "sup": true, "tt": true, "u": true, "var": true,
}

// angle removes a tag or comment, and the brackets of an autolink.
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

// tag reads the tag at p.i, in which braces enclose a JSX value. It returns the tag's name
// in lower case, the alternative text of an image and the offset after the tag, which is
// p.i if there is no tag.
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
	name = strings.ToLower(string(p.src[from:i]))
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

// autolink returns the content of an autolink, <scheme:…> or <name@host>.
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

// entity decodes a character reference, or copies the "&".
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

// brace removes Hugo shortcodes, template tags and heading ids. It keeps the text of a
// shortcode.
func (p *plain) brace() {
	rest := p.src[p.i:min(len(p.src), p.i+maxTag)]
	closing := ""
	for _, pair := range [][2]string{{"{{<", ">}}"}, {"{{%", "%}}"}, {"{%", "%}"}, {"{#", "}"}, {"{:", "}"}} {
		if bytes.HasPrefix(rest, []byte(pair[0])) {
			closing = pair[1]
		}
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
		if isWordByte(p.at(p.i)) {
			p.blank()
		}
	}
}

// shortcodeTexts match the arguments of a shortcode that hold its text, the best first.
var shortcodeTexts = []func() *regexp.Regexp{
	pattern(`(?:^|\s)text="([^"]*)"`), pattern(`(?:^|\s)title="([^"]*)"`), pattern(`(?:^|\s)term_id="([^"]*)"`),
}

// shortcodeText returns the text, else the title, else the term_id of a shortcode.
func shortcodeText(args []byte) []byte {
	for _, argument := range shortcodeTexts {
		if m := argument().FindSubmatch(args); m != nil {
			return m[1]
		}
	}
	return nil
}
