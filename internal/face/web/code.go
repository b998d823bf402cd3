package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"cairn/internal/base/owner"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/text/highlight"
	"cairn/retriever"
)

// writeFence is the renderer.NodeRendererFunc of code blocks.
func writeFence(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	language, content := string(block.Language(source)), string(block.Lines().Value(source))
	var html string
	switch language {
	case "math":
		html = "<p>" + formula(content, true) + "</p>\n"
	case "mermaid":
		html = `<pre><code class="mermaid">` + template.HTMLEscapeString(content) + "</code></pre>\n"
	default:
		html = strings.Join(colour(language, content, view.Marker{}), "\n")
		if highlight.Known(language) { // long lines wrap; drawings in letters must not
			html = `<span class="line">` + strings.ReplaceAll(strings.TrimSuffix(html, "\n"), "\n", "\n</span><span class=\"line\">") + "\n</span>"
		}
		html = "<pre><code>" + html + "</code></pre>\n"
	}
	_, err := w.WriteString(html)
	return ast.WalkContinue, err
}

// colour returns the lines of a code as HTML, with its words that are those of a query marked.
func colour(language, text string, words view.Marker) []string {
	var b strings.Builder
	write := func(part string, kind highlight.Kind) {
		for i, piece := range strings.Split(part, "\n") {
			if i > 0 {
				b.WriteByte('\n')
			}
			if piece == "" {
				continue
			}
			html := template.HTML(template.HTMLEscapeString(piece))
			if words.Marker != nil {
				html = marked(piece, words)
			}
			if kind == 0 {
				b.WriteString(string(html))
			} else {
				fmt.Fprintf(&b, `<span class="c%d">%s</span>`, kind, html)
			}
		}
	}
	at := 0
	for _, s := range highlight.Code(language, text) {
		write(text[at:s.Start], 0)
		write(text[s.Start:s.End], s.Kind)
		at = s.End
	}
	write(text[at:], 0)
	return strings.Split(b.String(), "\n")
}

// codeLine is a numbered line of code.
type codeLine struct {
	N      int
	HTML   template.HTML
	Marked bool         // the line that matched
	Link   template.URL // of the number
	ID     bool         // the line has the id of its link
	Anchor string       // of the symbol that begins here
}

// linesOf numbers the lines of a code from first.
func linesOf(file, text string, first int, words view.Marker) (lines []codeLine) {
	language := strings.ToLower(cmp.Or(strings.TrimPrefix(path.Ext(file), "."), path.Base(file))) // as in package highlight
	for i, html := range colour(language, text, words) {
		lines = append(lines, codeLine{N: first + i, HTML: template.HTML(html)})
	}
	return lines
}

// around is the number of lines shown before and after the line that matched.
const around = 2

// excerpt returns the line of a result's passage with the most words of the query, with the
// lines around it.
func excerpt(ctx context.Context, folder *owner.Folder, r *retriever.Result, words view.Marker) []codeLine {
	place := fmt.Sprintf("%s:%d-%d", r.Path, r.Passage.Start, r.Passage.End+around)
	reading, err := index.ReadOp.Call(ctx, folder, retriever.ReadRequest{Path: place, MaxTokens: maxExcerpt}, nil)
	if err != nil || reading.LineRange == nil {
		return nil // changed since it was indexed; the snippet remains
	}
	text := strings.Split(reading.Content, "\n")
	best, most := 0, 0
	for i, line := range text {
		if n := len(words.In(line)); n > most {
			best, most = i, n
		}
	}
	lines := linesOf(r.Path, reading.Content, reading.LineRange.Start, words)
	lines[best].Marked = true
	return lines[max(0, best-around):min(len(lines), best+around+1)]
}

// maxExcerpt bounds the text in tokens from which an excerpt is chosen.
const maxExcerpt = 4000
