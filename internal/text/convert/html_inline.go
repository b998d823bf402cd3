package convert

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// writeInline writes the text of an element as inline Markdown.
func (p *page) writeInline(b *strings.Builder, n *html.Node) {
	p.w.step()
	switch {
	case n.Type == html.TextNode:
		b.WriteString(escape(flat(n.Data)))
		return
	case n.Type != html.ElementNode || hidden(n):
		return
	}
	switch n.DataAtom {
	case atom.Br:
		b.WriteString(lineBreak)
	case atom.Img:
		if alt, src := flat(attr(n, "alt")), attr(n, "src"); strings.TrimSpace(alt) != "" {
			if src == "" || strings.HasPrefix(src, "data:") {
				b.WriteString(escape(alt))
			} else {
				b.WriteString("![" + escapeLabel(escape(alt)) + "](" + target(src) + ")")
			}
		}
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		span(b, p.text(n))
	case atom.Math:
		if text := attr(n, "alttext"); text != "" {
			b.WriteString(escape(flat(text)))
			return
		}
		p.children(b, n)
	case atom.B, atom.Strong:
		p.emphasis(b, n, "**")
	case atom.I, atom.Em:
		p.emphasis(b, n, "*")
	case atom.A:
		p.link(b, n)
	default:
		block := isBlock[n.DataAtom]
		if block {
			b.WriteByte(' ')
		}
		p.children(b, n)
		if block {
			b.WriteByte(' ')
		}
	}
}

func (p *page) children(b *strings.Builder, n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.writeInline(b, c)
	}
}

// span writes a code span.
func span(b *strings.Builder, text string) {
	inner := strings.Join(strings.Fields(text), " ")
	if inner == "" {
		b.WriteString(text)
		return
	}
	before, after := outerBlanks(text)
	ticks := strings.Repeat("`", longestRun(inner, '`')+1)
	pad := ""
	if strings.HasPrefix(inner, "`") || strings.HasSuffix(inner, "`") {
		pad = " "
	}
	b.WriteString(before + ticks + pad + inner + pad + ticks + after)
}

// outerBlanks returns one blank for white space at the start and at the end of text.
func outerBlanks(text string) (before, after string) {
	if strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		before = " "
	}
	if strings.HasSuffix(text, " ") || strings.HasSuffix(text, "\n") {
		after = " "
	}
	return before, after
}

// emphasis writes an element between two marks. Outer blanks stay outside the marks.
func (p *page) emphasis(b *strings.Builder, n *html.Node, mark string) {
	var inner strings.Builder
	p.children(&inner, n)
	text := inner.String()
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || strings.Contains(trimmed, lineBreak) || strings.HasPrefix(trimmed, "*") || strings.HasSuffix(trimmed, "*") {
		b.WriteString(text)
		return
	}
	before, after := outerBlanks(text)
	b.WriteString(before + mark + trimmed + mark + after)
}

// link writes a link. It writes only the text of a link without text or to a script, and
// nothing for a permalink.
func (p *page) link(b *strings.Builder, n *html.Node) {
	var inner strings.Builder
	p.children(&inner, n)
	text, href := inner.String(), strings.TrimSpace(attr(n, "href"))
	trimmed := strings.TrimSpace(strings.ReplaceAll(text, lineBreak, " "))
	if trimmed == "¶" || trimmed == "#" {
		return
	}
	if href == "" || trimmed == "" || strings.HasPrefix(strings.ToLower(href), "javascript:") || strings.HasPrefix(strings.ToLower(href), "data:") {
		b.WriteString(text)
		return
	}
	before, after := outerBlanks(text)
	b.WriteString(before + "[" + escapeLabel(trimmed) + "](" + target(href) + ")" + after)
}

// escapeLabel escapes the brackets in a link text unless they are balanced.
func escapeLabel(text string) string {
	if strings.Count(text, "[") == strings.Count(text, "]") {
		return text
	}
	return strings.NewReplacer("[", `\[`, "]", `\]`).Replace(text)
}

// target returns the Markdown form of a link target.
func target(href string) string {
	href = strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(printable(href))
	if strings.ContainsAny(href, " ()<>") {
		return "<" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(href) + ">"
	}
	return href
}

// text returns the plain text of an element.
func (p *page) text(n *html.Node) string { return p.collect(n, ' ', flat) }

// raw returns the text of a preformatted element with its line breaks.
func (p *page) raw(n *html.Node) string { return p.collect(n, '\n', printable) }

// printable removes control characters other than the ends of lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\r' {
			return -1
		}
		return r
	}, text)
}

// collect returns the visible text of an element. It applies convert to each text node
// and replaces <br> by lineBreak.
func (p *page) collect(n *html.Node, lineBreak byte, convert func(string) string) string {
	var b strings.Builder
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		p.w.step()
		switch {
		case n.Type == html.TextNode:
			b.WriteString(convert(n.Data))
		case n.DataAtom == atom.Br:
			b.WriteByte(lineBreak)
		case n.Type == html.ElementNode && hidden(n):
		default:
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				visit(c)
			}
		}
	}
	visit(n)
	return b.String()
}

// language returns the language of a code block according to the class of the element, its
// first child, its parent or grandparent, such as "language-go" or "highlight-python3".
func language(n *html.Node) string {
	for _, e := range []*html.Node{n, n.FirstChild, n.Parent, n.Parent.Parent} { // n is in a <body>
		if e == nil || e.Type != html.ElementNode {
			continue
		}
		for class := range strings.FieldsSeq(attr(e, "class")) {
			if m := languageClass.FindStringSubmatch(class); m != nil && !slices.Contains([]string{"default", "none", "text", "notranslate"}, m[1]) {
				return m[1]
			}
		}
	}
	return ""
}

var languageClass = regexp.MustCompile(`^(?:language|lang|highlight-source|highlight)-([a-zA-Z0-9+#-]+)$`)

// TagAnchors returns the anchors of the HTML tag at the start of text: its id and, for an
// <a>, its name. length is the length of the tag in bytes, 0 if there is none.
func TagAnchors(text []byte) (anchors []string, length int) {
	z := html.NewTokenizer(bytes.NewReader(text))
	switch z.Next() {
	case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
	default:
		return nil, 0
	}
	length = len(z.Raw())
	name, more := z.TagName()
	isLink := string(name) == "a"
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if string(key) == "id" || isLink && string(key) == "name" {
			anchors = append(anchors, string(value))
		}
	}
	return anchors, length
}
