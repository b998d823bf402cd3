package web

import (
	"fmt"
	"html/template"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"cairn/internal/text/highlight"
)

// code renders code blocks with a CSS class for each kind of token.
type code struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (code) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.FencedCodeBlock)
		return ast.WalkContinue, writeCode(w, string(block.Language(source)), string(block.Lines().Value(source)))
	})
}

func writeCode(w util.BufWriter, language, text string) error {
	_, _ = w.WriteString("<pre><code>") // the last write has the error of all
	at := 0
	for _, s := range highlight.Code(language, text) {
		template.HTMLEscape(w, []byte(text[at:s.Start]))
		fmt.Fprintf(w, `<span class="c%d">`, s.Kind)
		template.HTMLEscape(w, []byte(text[s.Start:s.End]))
		_, _ = w.WriteString("</span>")
		at = s.End
	}
	template.HTMLEscape(w, []byte(text[at:]))
	_, err := w.WriteString("</code></pre>\n")
	return err
}
