package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// HTML converts the main content of a page: its <main>, else its only <article>,
// else its body, without navigation, forms and scripts. A page without a heading of its
// own gets its title as the heading; see titled.
func HTML(w *writer, data []byte) error {
	return writePage(w, data, 0)
}

// writePage writes a page with its headings lowered by a number of levels.
func writePage(w *writer, data []byte, lower int) error {
	data = utf8Text(data, "")
	w.spend(16 * len(data)) // parsing; the passes over the tree count themselves
	data = closeEmpty(data)
	root, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		return errDepth
	}
	p := page{w: w, lower: lower, rich: map[*html.Node]bool{}}
	p.survey(root)
	content := p.main
	if content == nil && p.articles == 1 {
		content = p.article
	}
	if content == nil || strings.TrimSpace(p.text(content)) == "" {
		content = root
	}
	if p.title != nil && !p.titled() && (lower == 0 || !p.hasHeading(content)) {
		w.heading(1+lower, p.text(p.title), "")
		if p.tops > 0 {
			p.lower++
		}
	}
	p.blocks(content)
	return nil
}

// emptyTag matches a self-closing tag of XHTML. After an unquoted attribute value the
// slash belongs to the value.
var emptyTag = regexp.MustCompile(`<[A-Za-z][A-Za-z0-9]{0,31}(?:\s[^<>]*["'\s])?/>`)

// closeEmpty replaces <a id="x"/> by <a id="x"></a>. The HTML parser ignores the slash, so
// the element would contain the text after it and give its name to each later block.
func closeEmpty(data []byte) []byte {
	if !bytes.Contains(data, []byte("/>")) {
		return data
	}
	return emptyTag.ReplaceAllFunc(data, func(tag []byte) []byte {
		name := tag[1:bytes.IndexAny(tag, "\t\n\f\r /")]
		if bytes.EqualFold(name, []byte("br")) { // </br> is a line break; other end tags of void elements mean nothing
			return tag
		}
		return fmt.Appendf(nil, "%s></%s>", bytes.TrimSuffix(tag, []byte("/>")), name)
	})
}

// page converts one HTML document.
type page struct {
	w     *writer
	lower int // the number of levels to lower headings by
	title *html.Node
	main  *html.Node
	// article is the first of articles.
	article  *html.Node
	articles int
	tops     int        // the number of headings at level 1
	top      *html.Node // the first heading at level 1
	prose    int        // bytes of text outside links
	begun    bool       // a heading or a long paragraph was written
	// rich holds the elements that contain headings, preformatted text or tables. They
	// cannot become table cells or list items.
	rich map[*html.Node]bool

	inline strings.Builder // the current paragraph
	id     string          // of the last element that began, for the next heading
	level  int             // of the last heading that is not a definition term
	terms  int             // the nesting of definition lists
}

// survey fills in the fields of p that describe the whole tree below n. It reports whether
// n is rich or contains a rich element.
func (p *page) survey(n *html.Node) (rich bool) {
	p.w.step()
	if n.Type == html.ElementNode && hidden(n) {
		return false
	}
	if n.Type == html.TextNode && n.Parent.DataAtom != atom.A {
		p.prose += len(strings.TrimSpace(n.Data))
	}
	switch n.DataAtom {
	case atom.Title:
		if p.title == nil && n.Namespace == "" {
			p.title = n
		}
	case atom.Main:
		p.main = cmp.Or(p.main, n)
	case atom.Article:
		if p.articles++; p.articles == 1 {
			p.article = n
		}
	case atom.H1:
		if p.tops++; p.tops == 1 {
			p.top = n
		}
		rich = true
	case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Table:
		rich = true
	}
	if p.main == nil && attr(n, "role") == "main" {
		p.main = n
	}
	inner := false
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		inner = p.survey(c) || inner
	}
	if inner {
		p.rich[n] = true
	}
	return rich || inner
}

// titled reports whether the first heading at level 1 is the heading of the page, rather
// than one of several or a numbered section. It is if the title of the page contains it.
func (p *page) titled() bool {
	if p.tops == 0 {
		return false
	}
	text := strings.TrimSpace(p.text(p.top))
	numbered := text != "" && '0' <= text[0] && text[0] <= '9'
	return p.tops == 1 && !numbered || strings.Contains(p.text(p.title), text)
}

// isMenu reports whether a list is a navigation menu: it precedes the page's own text and
// consists mostly of links.
func (p *page) isMenu(list *html.Node) bool {
	const manyBytes = 300
	if p.begun || p.prose < manyBytes || p.rich[list] {
		return false
	}
	links, others := 0, 0
	for n := range list.Descendants() {
		p.w.step()
		switch {
		case n.DataAtom == atom.A:
			links++
		case n.Type == html.TextNode && n.Parent.DataAtom != atom.A:
			others += len(strings.TrimSpace(n.Data))
		}
	}
	return links > 2 && others < links
}

// dropped are the elements that contain no text of the page.
var dropped = atoms("script style template noscript nav aside footer button input select textarea iframe object svg canvas audio video dialog")

// hidden reports whether an element is invisible or not part of the content.
func hidden(n *html.Node) bool {
	if dropped[n.DataAtom] {
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "role":
			if slices.Contains([]string{"navigation", "search", "complementary", "banner", "contentinfo"}, a.Val) {
				return true
			}
		case "class":
			// Permalinks of headings, and line numbers. On code the class asks a script for numbers.
			code := n.DataAtom == atom.Pre || n.DataAtom == atom.Code
			if slices.ContainsFunc(strings.Fields(a.Val), func(c string) bool { return c == "headerlink" || c == "linenos" || c == "line-numbers" && !code }) {
				return true
			}
		}
	}
	return false
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// blocks writes the children of an element, and the paragraph that they end in.
func (p *page) blocks(n *html.Node) {
	for c := range n.ChildNodes() {
		p.node(c)
	}
	p.flush()
}

// node writes an element as a block, or adds it to the current paragraph.
func (p *page) node(n *html.Node) {
	p.w.step()
	if n.Type == html.TextNode {
		if p.inline.Len() > 0 || strings.TrimSpace(n.Data) != "" {
			p.id = ""
		}
		p.inline.WriteString(escape(flat(n.Data)))
		return
	}
	if n.Type != html.ElementNode && n.Type != html.DocumentNode || n.Type == html.ElementNode && hidden(n) {
		return
	}
	if !isBlock[n.DataAtom] && !p.rich[n] && n.DataAtom != atom.Pre {
		if id := cmp.Or(attr(n, "id"), attr(n, "name")); id != "" && n.DataAtom != atom.Meta {
			p.id = id
		}
		p.writeInline(&p.inline, n)
		return
	}
	p.flush()
	p.id = cmp.Or(attr(n, "id"), p.id)
	switch n.DataAtom {
	case atom.Head:
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		p.level = int(n.Data[1] - '0')
		p.heading(p.level, n)
	case atom.Pre:
		p.w.code(language(n), p.raw(n))
	case atom.Hr:
		p.id = ""
	case atom.Ul, atom.Ol:
		if !p.isMenu(n) {
			p.list(n)
		}
	case atom.Dl:
		p.definitions(n)
	case atom.Blockquote:
		p.contained(n, "> ", "> ")
	case atom.Table:
		p.table(n)
	default:
		p.blocks(n)
	}
}

// flush writes the current paragraph.
func (p *page) flush() {
	if p.inline.Len() == 0 {
		return
	}
	const longBytes = 150
	p.begun = p.begun || p.inline.Len() > longBytes
	p.w.paragraph(lines(p.inline.String()))
	p.inline.Reset()
}

// contained writes an element inside a container. It writes an element with headings
// outside the container, because headings begin sections.
func (p *page) contained(n *html.Node, first, rest string) {
	if p.rich[n] && p.hasHeading(n) {
		p.blocks(n)
		return
	}
	p.w.open(first, rest)
	p.blocks(n)
	p.w.close()
}

// hasHeading reports whether n contains a heading. It visits only rich elements.
func (p *page) hasHeading(n *html.Node) bool {
	p.w.step()
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if len(c.Data) == 2 && c.Data[0] == 'h' && '1' <= c.Data[1] && c.Data[1] <= '6' || p.rich[c] && p.hasHeading(c) {
			return true
		}
	}
	return false
}

// heading writes a heading. Its id is that of the element, else that of an element that
// began directly before, else that of its first child with one.
func (p *page) heading(level int, n *html.Node) {
	p.begun = true
	id := cmp.Or(attr(n, "id"), p.id)
	for c := n.FirstChild; c != nil && id == ""; c = c.NextSibling {
		id = cmp.Or(attr(c, "id"), attr(c, "name"))
	}
	p.w.heading(level+p.lower, strings.TrimRight(strings.TrimSpace(p.text(n)), "¶#§ "), id)
	p.id = ""
}

// list writes the items of a list.
func (p *page) list(n *html.Node) {
	number, begun := 1, false
	if start, err := strconv.Atoi(attr(n, "start")); err == nil && start >= 0 && start < 1e6 {
		number = start
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || hidden(c) {
			continue
		}
		if c.DataAtom != atom.Li {
			p.node(c)
			p.flush()
			continue
		}
		first := "- "
		if n.DataAtom == atom.Ol {
			first = strconv.Itoa(number) + ". "
			number++
		}
		p.id = ""
		if begun || len(p.w.containers) > 0 {
			p.w.gap = false // no blank line between the items
		}
		begun = true
		p.contained(c, first, strings.Repeat(" ", len(first)))
	}
	p.w.gap = true
}

// definitions writes a definition list. A term with an id becomes a heading one level
// below the last heading, because documentation generators write functions and options in
// this way.
func (p *page) definitions(n *html.Node) {
	p.terms++
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || hidden(c) {
			continue
		}
		switch {
		case c.DataAtom == atom.Dt && attr(c, "id") != "" && len(p.w.containers) == 0:
			p.flush()
			p.heading(p.level+p.terms, c)
		case c.DataAtom == atom.Dt && !p.rich[c]:
			p.flush()
			p.writeInline(&p.inline, c)
			p.flush()
		default: // a definition, or a group of both
			p.node(c)
			p.flush()
		}
	}
	p.terms--
}

// table writes a table. A table that contains other blocks is for layout, so table writes
// only its blocks.
func (p *page) table(n *html.Node) {
	if p.rich[n] || attr(n, "role") == "presentation" {
		p.blocks(n)
		return
	}
	var rows [][]string
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			p.w.step()
			switch {
			case c.Type != html.ElementNode || hidden(c):
			case c.DataAtom == atom.Caption:
				p.w.text(p.text(c))
			case c.DataAtom != atom.Tr:
				visit(c)
			default:
				var row []string
				for cell := c.FirstChild; cell != nil; cell = cell.NextSibling {
					if cell.DataAtom == atom.Td || cell.DataAtom == atom.Th {
						var b strings.Builder
						p.writeInline(&b, cell)
						row = append(row, lines(b.String()))
					}
				}
				if row != nil {
					rows = append(rows, row)
				}
			}
		}
	}
	visit(n)
	p.w.table(rows)
}

var isBlock = atoms("html head body address article blockquote center details dd div dl dt fieldset figcaption figure form " +
	"h1 h2 h3 h4 h5 h6 header hr li main ol p section summary table ul tr td th thead tbody tfoot caption hgroup")

func atoms(names string) map[atom.Atom]bool {
	m := map[atom.Atom]bool{}
	for name := range strings.FieldsSeq(names) {
		m[atom.Lookup([]byte(name))] = true
	}
	return m
}

// lineBreak represents a line break of the document in text whose other white space is
// insignificant.
const lineBreak = "\x01"

// flat replaces the white space of a source by blanks and removes lineBreak.
func flat(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\t', '\f', '\u00a0':
			return ' '
		case 1:
			return -1
		}
		return r
	}, s)
}

// lines replaces lineBreak by "\n" and other white space by single blanks, and removes
// blank lines.
func lines(s string) string {
	var all []string
	for line := range strings.SplitSeq(s, lineBreak) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}
