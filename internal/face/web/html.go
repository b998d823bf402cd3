package web

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// harmless are the elements of HTML in Markdown that pages show. Other tags are shown as text,
// because agents receive the whole document.
var harmless = strings.Fields("a abbr b blockquote br caption center code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var")

var (
	rawTag       = regexp.MustCompile(`(?s)<!--.*?-->|</?([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[^\s"'<>=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+))?)*)\s*/?>`)
	rawAttribute = regexp.MustCompile(`(?s)([^\s"'<>=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>=]+))?`)
)

// harmlessHTML returns raw HTML with the harmless tags rebuilt from their known attributes,
// without comments, and with everything else as text. hidden is the number of comments.
func (o *reader) harmlessHTML(raw string) (out string, hidden int) {
	var b strings.Builder
	at := 0
	for _, m := range rawTag.FindAllStringSubmatchIndex(raw, -1) {
		b.WriteString(template.HTMLEscapeString(raw[at:m[0]]))
		at = m[1]
		if m[2] < 0 {
			hidden++
			continue
		}
		name := strings.ToLower(raw[m[2]:m[3]])
		if !slices.Contains(harmless, name) {
			fmt.Fprintf(&b, "<code>%s</code>", template.HTMLEscapeString(raw[m[0]:m[1]]))
			continue
		}
		if name == "h1" {
			name = "h2" // the title of the page is the only h1
		}
		if raw[m[0]+1] == '/' {
			b.WriteString("</" + name + ">")
			continue
		}
		b.WriteString("<" + name)
		for _, a := range rawAttribute.FindAllStringSubmatch(raw[m[4]:m[5]], -1) {
			key, value := strings.ToLower(a[1]), html.UnescapeString(strings.Trim(a[2], `"'`))
			switch key {
			case "href":
				value = o.link(value)
			case "src":
				value = o.picture(value)
			case "align", "alt", "colspan", "height", "open", "rowspan", "start", "title", "width":
			default:
				continue
			}
			fmt.Fprintf(&b, ` %s="%s"`, key, template.HTMLEscapeString(value))
		}
		b.WriteByte('>')
	}
	b.WriteString(template.HTMLEscapeString(raw[at:]))
	return b.String(), hidden
}

// balanced closes the elements that a document leaves open, and drops end tags that would close
// elements of the page.
func balanced(sanitised []byte) string {
	nodes, err := html.ParseFragment(bytes.NewReader(sanitised), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	var b strings.Builder
	for _, n := range nodes {
		if err == nil {
			err = html.Render(&b, n)
		}
	}
	if err != nil { // nested too deeply
		return "<pre>" + template.HTMLEscapeString(string(sanitised)) + "</pre>"
	}
	return b.String()
}

// rawHTML returns the source of a node of HTML.
func rawHTML(n ast.Node, source []byte) string {
	block, ok := n.(*ast.HTMLBlock)
	if !ok {
		return string(n.(*ast.RawHTML).Segments.Value(source))
	}
	raw := block.Lines().Value(source)
	if block.HasClosure() {
		raw = append(raw, block.ClosureLine.Value(source)...)
	}
	return string(raw)
}

// ownNodes renders code with a CSS class for each kind of token, formulas, and the HTML that
// rewrite has made harmless.
type ownNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (ownNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	write := func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if made, ok := n.AttributeString("html"); ok && entering {
			_, _ = w.WriteString(made.(string)) // a buffer
		}
		return ast.WalkSkipChildren, nil
	}
	r.Register(ast.KindHTMLBlock, write)
	r.Register(ast.KindRawHTML, write)
	r.Register(ast.KindFencedCodeBlock, writeFence)
}

// formulas parses $x$ and $$x$$ as code with a class, which the script of the pages draws.
type formulas struct{}

// Trigger implements parser.InlineParser.
func (formulas) Trigger() []byte { return []byte{'$'} }

// Parse implements parser.InlineParser. As in Pandoc, a formula in the text neither begins nor
// ends with a space, and no digit follows it, so that prices stay text.
func (formulas) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	_, start := block.Position()
	source, mark := block.Source()[start.Start:], "$"
	if bytes.HasPrefix(source, []byte("$$")) {
		mark = "$$"
	}
	source = source[len(mark):]
	end := bytes.Index(source, []byte(mark))
	if blank := bytes.Index(source, []byte("\n\n")); end <= 0 || end > maxFormula || blank >= 0 && blank < end {
		return nil
	}
	tex := source[:end]
	if next := end + 1; mark == "$" && (bytes.ContainsAny(tex, "\n`") || tex[0] == ' ' || tex[end-1] == ' ' || next < len(source) && '0' <= source[next] && source[next] <= '9') {
		return nil
	}
	block.Advance(len(mark)) // Advance stops at the end of a line
	for range bytes.Count(tex, []byte("\n")) {
		block.AdvanceLine()
	}
	block.Advance(len(tex) - bytes.LastIndexByte(tex, '\n') - 1 + len(mark))
	n := ast.NewRawHTML()
	n.SetAttributeString("html", formula(string(tex), mark == "$$"))
	return n
}

// maxFormula is the maximum length of a formula in bytes.
const maxFormula = 5000

func formula(tex string, display bool) string {
	class := "math"
	if display {
		class = "math display"
	}
	return fmt.Sprintf(`<code class="%s">%s</code>`, class, template.HTMLEscapeString(strings.TrimSpace(tex)))
}
