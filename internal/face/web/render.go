package web

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
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

	"cairn/internal/text/markdown"
)

// document is rendered Markdown.
type document struct {
	HTML    template.HTML
	Outline []heading
	Titled  bool // exactly one heading has level 1
	Hidden  int  // comments
}

type heading struct {
	Level        int
	Text, Anchor string
}

var converter = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote),
	goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(wikiLinks{}, 150), util.Prioritized(formulas{}, 150))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(ownNodes{}, 100))))

// reader renders one document.
type reader struct {
	prefix string   // of links
	name   string   // path of the document
	lib    *library // nil resolves no wiki link
	hidden int      // comments so far
	title  string   // of the page; a first heading with this text becomes the title
}

// render returns Markdown as sanitised HTML with the anchors of the index. If several
// headings have level 1, it moves all headings down a level, below the title of the
// page.
func (o *reader) render(source []byte) document {
	anchors := map[int]string{} // of the sections in the index, by the line of their headings
	for _, section := range markdown.Parse("document.md", source).Sections {
		if section.Level > 0 {
			anchors[section.StartLine] = section.Anchor
		}
	}
	front := markdown.ReadFrontMatter(source)
	lines := bytes.Count(source[:front.End], []byte("\n"))
	source = source[front.End:]
	root := converter.Parser().Parse(text.NewReader(source))
	headings := o.rewrite(root, source)
	titles := 0
	for _, n := range headings {
		if n.Level == 1 {
			titles++
		}
	}
	if titles == 0 && len(headings) > 0 && root.FirstChild() == ast.Node(headings[0]) && plainText(headings[0], source) == o.title {
		headings[0].Level, titles = 1, 1
	}
	d := document{Titled: titles == 1, Hidden: o.hidden}
	line, at := lines+1, 0
	for i, n := range headings {
		if titles > 1 {
			n.Level = min(n.Level+1, 6)
		}
		anchor := fmt.Sprintf("heading:%d", i) // of a heading without a section, such as one in a quotation
		if n.Lines().Len() > 0 && n.Lines().At(0).Start >= at {
			start := n.Lines().At(0).Start
			line, at = line+bytes.Count(source[at:start], []byte("\n")), start
			anchor = cmp.Or(anchors[line], anchor)
		}
		n.SetAttributeString("id", []byte(anchor))
		d.Outline = append(d.Outline, heading{n.Level, plainText(n, source), anchor})
	}
	var b bytes.Buffer
	if err := converter.Renderer().Render(&b, source, root); err != nil {
		return document{HTML: template.HTML("<pre>" + template.HTMLEscapeString(string(source)) + "</pre>")}
	}
	d.HTML = template.HTML(accessible.Replace(withDiagrams(balanced(sanitiser.SanitizeBytes(b.Bytes())))))
	return d
}

// rewrite points links and images to the pages of the folder, turns quotations into
// callouts, and returns the headings.
func (o *reader) rewrite(root ast.Node, source []byte) (headings []*ast.Heading) {
	var external []*ast.Image
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if last, ok := n.LastChild().(*ast.Text); ok {
				if at := headingID.FindIndex(last.Segment.Value(source)); at != nil {
					last.Segment = last.Segment.WithStop(last.Segment.Start + at[0])
				}
			}
			headings = append(headings, n)
		case *ast.HTMLBlock, *ast.RawHTML:
			if _, made := n.AttributeString("html"); !made {
				out, hidden := o.harmlessHTML(rawHTML(n, source))
				n.SetAttributeString("html", out)
				o.hidden += hidden
			}
		case *ast.Blockquote:
			callout(n, source)
		case *ast.Link:
			if wiki, ok := n.AttributeString("wiki"); ok {
				n.Destination = []byte(o.wiki(wiki.(string)))
				n.RemoveAttributes()
			} else {
				n.Destination = []byte(o.link(string(n.Destination)))
			}
		case *ast.Image:
			if source := o.picture(string(n.Destination)); source != "" {
				n.Destination = []byte(source)
			} else {
				external = append(external, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range external {
		replacePicture(n)
	}
	return headings
}

// replacePicture replaces a picture outside the folder by a link to it, or by its text if
// the picture is within a link.
func replacePicture(n *ast.Image) {
	parent := n.Parent()
	for p := parent; p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			for c := n.FirstChild(); c != nil; c = n.FirstChild() {
				parent.InsertBefore(parent, n, c)
			}
			parent.RemoveChild(parent, n)
			return
		}
	}
	link := ast.NewLink()
	link.Destination = n.Destination
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		link.AppendChild(link, c)
	}
	link.AppendChild(link, ast.NewString([]byte(" (external picture)")))
	parent.ReplaceChild(parent, n, link)
}

// target returns the workspace path of a relative destination. ok is false if the
// destination is outside the folder.
func (o *reader) target(u *url.URL) (target string, ok bool) {
	target = path.Join(path.Dir(o.name), u.Path)
	if strings.HasPrefix(u.Path, "/") {
		target = strings.TrimPrefix(path.Clean(u.Path), "/")
	}
	return target, !strings.HasPrefix(target, "..")
}

// link returns the destination of a link. Links to documents of the folder open the reader.
func (o *reader) link(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return to
	}
	target, ok := o.target(u)
	switch {
	case !ok:
		return ""
	case pictureType(target) != "":
		return pictureAt(o.prefix, target)
	}
	return place(o.prefix, target, u.Fragment)
}

// picture returns the address of an image of the folder, or "" for other images.
func (o *reader) picture(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || pictureType(u.Path) == "" {
		return ""
	}
	if target, ok := o.target(u); ok {
		return pictureAt(o.prefix, target)
	}
	return ""
}

func pictureAt(prefix, target string) string {
	return prefix + "/picture?path=" + url.QueryEscape(target)
}

// wiki returns the destination of a wiki link: the document with that path, else the only
// document with that name, else a search for the name.
func (o *reader) wiki(to string) string {
	name, fragment, _ := strings.Cut(to, "#")
	anchor := ""
	if fragment != "" {
		anchor = markdown.Slug(fragment)
	}
	if name == "" {
		return "#" + url.PathEscape(anchor)
	}
	if o.lib != nil {
		if file, _ := o.lib.places.Find(o.name, markdown.Target{Path: strings.TrimPrefix(name, "/"), Wiki: true}); file != "" {
			return place(o.prefix, file, anchor)
		}
	}
	return o.prefix + "/?q=" + url.QueryEscape(path.Base(name))
}

// wikiLinks parses [[target]] and [[target|text]] as links with the attribute wiki.
type wikiLinks struct{}

// Trigger implements parser.InlineParser.
func (wikiLinks) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (wikiLinks) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if !bytes.HasPrefix(line, []byte("[[")) {
		return nil
	}
	inner, _, ok := bytes.Cut(line[2:], []byte("]]"))
	if !ok || len(inner) == 0 || bytes.ContainsAny(inner, "[]") {
		return nil
	}
	target, label, labelled := bytes.Cut(inner, []byte("|"))
	if !labelled {
		label = target
	}
	link := ast.NewLink()
	link.SetAttributeString("wiki", strings.TrimSpace(string(target)))
	link.AppendChild(link, ast.NewString(bytes.TrimSpace(label)))
	block.Advance(len(inner) + 4)
	return link
}

// calloutMark matches the first line of a callout, such as "[!NOTE]" or "[!tip]- Title".
var calloutMark = regexp.MustCompile(`^\[!([A-Za-z]{1,20})\][-+]?[ \t]*(.*?)\s*$`)

// calloutKinds maps the word of a callout to its class. Other words have the class note.
var calloutKinds = map[string]string{"tip": "tip", "hint": "tip", "success": "tip", "important": "important", "warning": "warning", "caution": "warning", "danger": "warning", "error": "warning", "bug": "warning"}

// callout turns a quotation that begins with "[!WORD]" into a callout with a title.
func callout(n *ast.Blockquote, source []byte) {
	first, ok := n.FirstChild().(*ast.Paragraph)
	if !ok || first.Lines().Len() == 0 {
		return
	}
	line := first.Lines().At(0)
	m := calloutMark.FindSubmatch(line.Value(source))
	if m == nil {
		return
	}
	word := strings.ToLower(string(m[1]))
	kind := cmp.Or(calloutKinds[word], "note")
	n.SetAttributeString("class", []byte("callout "+kind))
	for c := first.FirstChild(); c != nil; c = first.FirstChild() {
		t, ok := c.(*ast.Text)
		if ok && t.Segment.Start >= line.Stop {
			break
		}
		first.RemoveChild(first, c)
		if ok && (t.SoftLineBreak() || t.HardLineBreak()) {
			break
		}
	}
	title := cmp.Or(string(m[2]), strings.ToUpper(word[:1])+word[1:])
	strong := ast.NewEmphasis(2)
	strong.AppendChild(strong, ast.NewString([]byte(title)))
	heading := ast.NewParagraph()
	heading.AppendChild(heading, strong)
	n.InsertBefore(n, first, heading)
	if !first.HasChildren() {
		n.RemoveChild(n, first)
	}
}

// sanitiser keeps the elements that documents need.
var sanitiser = func() *bluemonday.Policy {
	p := bluemonday.UGCPolicy()
	p.AllowAttrs("id").OnElements("h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^fn(ref\d*)?:\d+$`)).OnElements("li", "sup")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^footnotes$|^callout [a-z]+$`)).OnElements("div", "blockquote")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(c[1-7]|line)$`)).OnElements("span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(math( display)?|mermaid)$`)).OnElements("code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(?i:left|right|center)$`)).OnElements("p", "div", "h2", "h3", "img")
	p.AllowAttrs("type", "checked", "disabled").OnElements("input")
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AllowElements("details", "summary", "kbd", "center", "mark")
	return p
}()

// accessible makes scrolling regions reachable by keyboard and labels the
// checkboxes of task lists. Text in sanitised HTML cannot look like a tag.
var accessible = strings.NewReplacer(
	"<pre>", `<div class="code"><pre tabindex="0" role="group" aria-label="Code">`,
	"</pre>", `</pre><button type="button" class="copy" aria-label="Copy this code">copy</button></div>`,
	"<table>", `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`,
	"</table>", "</table></div>",
	`<input checked="" disabled="" type="checkbox"/>`, `<input checked="" disabled="" type="checkbox" aria-label="done">`,
	`<input disabled="" type="checkbox"/>`, `<input disabled="" type="checkbox" aria-label="to do">`,
	"<img ", `<img loading="lazy" `,
)

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

// headingID matches an id at the end of a heading, such as {#setup}.
var headingID = regexp.MustCompile(`\s*\{#[^{}\s]+\}\s*$`)
