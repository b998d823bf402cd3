package markdown

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
)

// Links returns the links, images and definitions of labels of Markdown in document order,
// except those in code: [text](target), ![text](target), [label]: target, [[target]] or
// [[target|text]]. Only Raw, Line, Start and Wiki are set; Raw is without title and angle
// brackets. Links scans for brackets in linear time instead of parsing inline content. A
// link text has at most 2 KiB.
func Links(src []byte) []Target {
	norm, code := codeBlocks(src)
	lines := NewLines(norm)
	var out []Target
	var open []int // offsets of '[' not yet closed
	i := 0
	add := func(link Target, end int, ok bool) {
		if !ok {
			i++
			return
		}
		link.Line = lines.Of(i)
		out = append(out, link)
		i = end
	}
	for i < len(norm) {
		if len(code) > 0 && i >= code[0].start {
			i, code, open = max(i, code[0].end), code[1:], open[:0]
			continue
		}
		switch norm[i] {
		case '\\':
			i += 2
		case '`':
			i = skipCodeSpan(norm, i)
		case '\n':
			if i+1 < len(norm) && norm[i+1] == '\n' {
				open = open[:0]
			}
			i++
		case '[':
			link, end, ok := wikiLink(norm, i)
			if !ok {
				open = append(open, i)
			}
			add(link, end, ok)
		case ']':
			if len(open) == 0 {
				i++
				continue
			}
			from := open[len(open)-1]
			open = open[:len(open)-1]
			add(closeLink(norm, from, i))
		default:
			i++
		}
	}
	// An image inside the text of a link ends before the link does.
	slices.SortStableFunc(out, func(a, b Target) int { return a.Start - b.Start })
	return out
}

// codeBlocks returns src with normalised line endings and the ranges of its front matter
// and code blocks.
func codeBlocks(src []byte) ([]byte, []span) {
	body := bomLen(src)
	norm := normalise(src, body)
	from := max(body, readFrontMatter(src, norm, body).End)
	code := []span{{0, from}}
	part := limitNesting(norm, from)[from:]
	eachBlock(part, parser.NewContext(), func(n ast.Node, base int) bool {
		if l := n.Lines(); n.Kind() != ast.KindHeading && l.Len() > 0 {
			code = append(code, span{from + base + l.At(0).Start, from + base + l.At(l.Len()-1).Stop})
		}
		return true
	})
	return norm, code
}

func wikiLink(src []byte, at int) (Target, int, bool) {
	if !bytes.HasPrefix(src[at:], []byte("[[")) {
		return Target{}, 0, false
	}
	inner := src[at+2 : min(len(src), at+2+maxTag)]
	end := bytes.Index(inner, []byte("]]"))
	if end <= 0 || bytes.ContainsAny(inner[:end], "[]\n") {
		return Target{}, 0, false
	}
	target, _, _ := strings.Cut(string(inner[:end]), "|")
	target = strings.TrimSpace(target)
	return Target{Raw: target, Start: at, Wiki: true}, at + 2 + end + 2, target != ""
}

// closeLink parses a link whose text is between the '[' at from and the ']' at end. It
// returns the offset after the link.
func closeLink(src []byte, from, end int) (link Target, after int, ok bool) {
	if end-from > maxTag || end+1 >= len(src) {
		return Target{}, 0, false
	}
	inline := src[end+1] == '('
	if !inline && (src[end+1] != ':' || !atLineStart(src, from) || end == from+1 || src[from+1] == '^') {
		return Target{}, 0, false
	}
	target, after := destination(src, end+2, inline)
	if after < 0 || !inline && target.start == target.end {
		return Target{}, 0, false
	}
	if inline && from > 0 && src[from-1] == '!' {
		from--
	}
	return Target{Raw: string(src[target.start:target.end]), Start: from}, after, true
}

func atLineStart(src []byte, at int) bool {
	line := src[bytes.LastIndexByte(src[max(0, at-maxTag):at], '\n')+1+max(0, at-maxTag) : at]
	return len(bytes.Trim(line, " >\t")) == 0
}

// destination finds a link destination at i: in angle brackets, or up to the next blank
// with balanced parentheses. If within is true, the ')' of an inline link must follow,
// after an optional title. after is the offset after the destination, -1 if there is
// none.
func destination(src []byte, i int, within bool) (target span, after int) {
	limit := min(len(src), i+maxTag)
	skip := func() {
		for i < limit && (src[i] == ' ' || src[i] == '\t' || src[i] == '\n') {
			i++
		}
	}
	skip()
	from := i
	if i < limit && src[i] == '<' {
		n := bytes.IndexAny(src[i:limit], ">\n")
		if n < 0 || src[i+n] != '>' {
			return span{}, -1
		}
		target, i = span{i + 1, i + n}, i+n+1
	} else {
		depth := 0
	scan:
		for i < limit {
			switch c := src[i]; {
			case c == '\\' && i+1 < limit:
				i++
			case c <= ' ':
				break scan
			case c == '(':
				if depth++; depth > maxParentheses {
					return span{}, -1
				}
			case c == ')':
				if depth == 0 && within {
					break scan
				}
				depth--
			}
			i++
		}
		i = min(i, limit)
		target = span{from, i}
	}
	if !within {
		return target, i
	}
	skip()
	if i < limit && (src[i] == '"' || src[i] == '\'' || src[i] == '(') {
		quote := src[i]
		if quote == '(' {
			quote = ')'
		}
		n := bytes.IndexByte(src[i+1:limit], quote)
		if n < 0 {
			return span{}, -1
		}
		i += n + 2
		skip()
	}
	if i >= limit || src[i] != ')' {
		return span{}, -1
	}
	return target, i + 1
}

// maxParentheses is the maximum nesting of parentheses in a link destination, as in the
// reference implementation of CommonMark.
const maxParentheses = 32

// References returns the references in Markdown in document order, except those in code
// blocks: "@/path.md#slug", "@/path" or "@#slug". Their Path is clean, without leading
// slash, with ".md"; it is empty for "@#slug". References returns those with the same
// spelling once. A reference does not begin inside a word. It ends before white space or
// one of ] ) , ; : ! ? or a backtick, and does not include a final full stop.
func References(src []byte) []Target {
	if bytes.IndexByte(src, '@') < 0 {
		return nil
	}
	norm, code := codeBlocks(src)
	lines := NewLines(norm)
	seen := map[string]bool{}
	var out []Target
	for i := 0; i < len(norm); {
		n := bytes.IndexByte(norm[i:], '@')
		if n < 0 {
			break
		}
		at := i + n
		i = at + 1
		for len(code) > 0 && at >= code[0].end {
			code = code[1:]
		}
		if len(code) > 0 && at >= code[0].start || i >= len(norm) || norm[i] != '/' && norm[i] != '#' {
			continue
		}
		if r, _ := utf8.DecodeLastRune(norm[:at]); at > 0 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			continue
		}
		end := i
		for end < len(norm) && !bytes.ContainsRune([]byte("])`,;:!?"), rune(norm[end])) && norm[end] > ' ' {
			end++
		}
		raw := strings.TrimRight(string(norm[at:end]), ".!?")
		i = max(i, at+len(raw))
		p, anchor, _ := strings.Cut(raw[1:], "#")
		p = strings.TrimPrefix(p, "/")
		if seen[raw] || p == "" && anchor == "" {
			continue
		}
		seen[raw] = true
		if p != "" {
			if !strings.HasSuffix(strings.ToLower(p), ".md") {
				p += ".md"
			}
			// The leading slash keeps ".." inside the workspace.
			p = strings.TrimPrefix(path.Clean("/"+p), "/")
		}
		out = append(out, Target{Raw: raw, Path: p, Anchor: anchor, Line: lines.Of(at), Start: at})
	}
	return out
}
