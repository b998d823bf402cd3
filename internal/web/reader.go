package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"cairn/internal/markdown"
	"cairn/retriever"
)

// maxPage is how much of a document one page shows, in tokens.
const maxPage = 60_000

type docPage struct {
	Path, Heading string // Heading is "" where HTML has the page's one h1
	Outline       []heading
	HTML          template.HTML
	Plain         string // the text of a document that is not Markdown
	Tokens        int
	Next          string
}

type heading struct {
	Level        int
	Text, Anchor string
}

// doc shows a document.
func (h *Handler) doc(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	reading, err := h.sources.Engine.Read(r.Context(), retriever.ReadRequest{Path: q.Get("path"), MaxTokens: maxPage, Next: q.Get("next")})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p := &docPage{Path: reading.Path, Heading: reading.Title, Tokens: reading.Tokens, Next: reading.Next}
	if f := markdown.FormatOf(reading.Path); f == markdown.Markdown || f == markdown.Converted {
		var titled bool
		if p.HTML, p.Outline, titled = render(h.options.Prefix(r), reading.Path, []byte(reading.Content)); titled {
			p.Heading = ""
		}
	} else {
		p.Plain = reading.Content
	}
	h.show(w, r, http.StatusOK, "doc", reading.Title, "", p)
}

var converter = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(shownHTML{}, 100))))

// shownHTML renders HTML as text. Agents get all of a document, so people have to see
// all of it: what is in a comment, and what follows a <script> without an end.
type shownHTML struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (shownHTML) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.HTMLBlock)
		raw := block.Lines().Value(source)
		if block.HasClosure() {
			raw = append(raw, block.ClosureLine.Value(source)...)
		}
		_, err := fmt.Fprintf(w, "<pre><code>%s</code></pre>\n", template.HTMLEscapeString(string(raw)))
		return ast.WalkContinue, err
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		raw := n.(*ast.RawHTML).Segments.Value(source)
		if !entering || simpleTag.Match(raw) {
			return ast.WalkSkipChildren, nil
		}
		_, err := fmt.Fprintf(w, "<code>%s</code>", template.HTMLEscapeString(string(raw)))
		return ast.WalkSkipChildren, err
	})
}

// simpleTag matches a tag without attributes, which hides nothing.
var simpleTag = regexp.MustCompile(`^</?[a-zA-Z][a-zA-Z0-9-]*\s*/?>$`)

// sanitiser keeps the elements that documents need. It drops images, as the
// server has only its embedded files and the policy forbids other sources.
var sanitiser = func() *bluemonday.Policy {
	p := bluemonday.UGCPolicy()
	p.AllowAttrs("id").OnElements("h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowAttrs("type", "checked", "disabled").OnElements("input")
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AllowElements("details", "summary")
	return p
}()

// accessible makes scrolling regions reachable by keyboard and labels the
// checkboxes of task lists. Text in sanitised HTML cannot look like a tag.
var accessible = strings.NewReplacer(
	"<pre>", `<pre tabindex="0" role="group" aria-label="Code">`,
	"<table>", `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`,
	"</table>", "</table></div>",
	`<input checked="" disabled="" type="checkbox">`, `<input checked="" disabled="" type="checkbox" aria-label="done">`,
	`<input disabled="" type="checkbox">`, `<input disabled="" type="checkbox" aria-label="to do">`,
)

// render returns Markdown as sanitised HTML with the anchors of the index, its
// headings, and whether exactly one heading has level 1. If several have, it
// moves all headings down a level, below the title of the page.
func render(prefix, name string, source []byte) (_ template.HTML, outline []heading, titled bool) {
	ids := &anchors{used: map[string]int{}}
	context := parser.NewContext(parser.WithIDs(ids))
	front := markdown.ReadFrontMatter(source)
	source = source[front.End:]
	root := converter.Parser().Parse(text.NewReader(source), parser.WithContext(context))
	var headings []*ast.Heading
	titles := 0
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			headings = append(headings, n)
			if n.Level == 1 {
				titles++
			}
		case *ast.Link:
			n.Destination = []byte(link(prefix, name, string(n.Destination)))
		case *ast.Image:
			n.Destination = nil
		}
		return ast.WalkContinue, nil
	})
	for _, n := range headings {
		if titles > 1 {
			n.Level = min(n.Level+1, 6)
		}
		id, _ := n.AttributeString("id")
		anchor, _ := id.([]byte)
		outline = append(outline, heading{n.Level, plainText(n, source), string(anchor)})
	}
	var b bytes.Buffer
	if err := converter.Renderer().Render(&b, source, root); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(string(source)) + "</pre>"), nil, false
	}
	return template.HTML(accessible.Replace(string(sanitiser.SanitizeBytes(b.Bytes())))), outline, titles == 1
}

func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Text:
				b.Write(n.Segment.Value(source))
			case *ast.String:
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// link returns the destination of a link. Links to documents of the folder lead to
// the reader.
func link(prefix, from, to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return to
	}
	target := path.Join(path.Dir(from), u.Path)
	if strings.HasPrefix(u.Path, "/") {
		target = strings.TrimPrefix(path.Clean(u.Path), "/")
	}
	if strings.HasPrefix(target, "..") {
		return ""
	}
	return place(prefix, target, u.Fragment)
}

// anchors gives headings the ids that GitHub gives them.
type anchors struct{ used map[string]int }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := markdown.Slug(string(bytes.TrimSpace(value)))
	n, again := a.used[slug]
	a.used[slug] = n + 1
	if again {
		slug = fmt.Sprintf("%s-%d", slug, n)
		a.used[slug] = 1
	}
	return []byte(slug)
}

func (a *anchors) Put(value []byte) { a.used[util.BytesToReadOnlyString(value)]++ }
