package markdown

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// engine holds two CommonMark parsers. The blocks parser reads a whole document but no
// inline content, which saves a quarter of the time of a full parse. The inline parser
// reads the content of one heading.
type engine struct {
	blocks, inline parser.Parser
}

var newEngine = sync.OnceValue(func() engine {
	return engine{
		blocks: parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithParagraphTransformers(util.Prioritized(dropParagraphs{}, 100)),
		),
		inline: parser.NewParser(
			parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 100)),
			parser.WithInlineParsers(parser.DefaultInlineParsers()...),
			parser.WithInlineParsers(util.Prioritized(extension.NewStrikethroughParser(), 500)),
		),
	}
})

// These bounds keep the parsing time linear for hostile text. The parser searches open
// brackets, earlier definitions and enclosing containers.
const (
	maxDefinitions = 1 << 10 // lines of one paragraph searched for link definitions
	maxReferences  = 1 << 14 // lines of one document searched for link definitions
	maxContainers  = 32      // containers opened in one line; more markers are text
)

// MaxHeading is the maximum size of a heading or title in bytes. Longer ones are cut.
const MaxHeading = 256

// definitionsKey holds the number of lines searched for link definitions.
var definitionsKey = parser.NewContextKey()

// dropParagraphs is a paragraph transformer that collects link reference definitions
// and then removes the paragraph from the tree, so that the parser skips its inline
// content. It keeps a paragraph that the next line may turn into a setext heading.
type dropParagraphs struct{}

func (dropParagraphs) Transform(p *ast.Paragraph, r text.Reader, pc parser.Context) {
	searched, _ := pc.Get(definitionsKey).(int)
	if n := p.Lines().Len(); n <= maxDefinitions && searched < maxReferences && beginsDefinition(p, r.Source()) {
		pc.Set(definitionsKey, searched+n)
		parser.LinkReferenceParagraphTransformer.Transform(p, r, pc)
	}
	parent := p.Parent()
	if parent == nil {
		return
	}
	if line, _ := r.PeekLine(); len(line) > 0 {
		if line = bytes.TrimLeft(line, " "); len(line) > 0 && (line[0] == '=' || line[0] == '-') {
			return
		}
	}
	parent.RemoveChild(parent, p)
}

func beginsDefinition(p *ast.Paragraph, src []byte) bool {
	if p.Lines().Len() == 0 {
		return false
	}
	first := p.Lines().At(0)
	return bytes.HasPrefix(bytes.TrimLeft(first.Value(src), " "), []byte("["))
}

// parseBlocks finds the headings and HTML anchors of Markdown in src[body:]. A heading
// in a list item or block quote has an anchor, as on GitHub, but does not start a
// section, because the text after the list or quote does not belong to it.
func parseBlocks(_ string, src []byte, body int) scanned {
	src = limitNesting(src, body)
	part := src[body:]
	pc := parser.NewContext()
	var out scanned
	var code []span
	var raws [][]byte // of out.heads; parsed last, since link definitions may follow
	eachBlock(part, pc, func(n ast.Node, base int) bool {
		if h, ok := n.(*ast.Heading); ok {
			start := base + min(max(n.Pos(), 0), len(part)-base)
			if !out.head(heading{
				level:  h.Level,
				start:  body + bytes.LastIndexByte(part[:start], '\n') + 1,
				nested: n.Parent() == nil || n.Parent().Kind() != ast.KindDocument,
			}) {
				return false
			}
			raws = append(raws, n.Lines().Value(part[base:]))
		} else if l := n.Lines(); l.Len() > 0 {
			code = append(code, span{base + l.At(0).Start, base + l.At(l.Len()-1).Stop})
		}
		return true
	})
	for i, raw := range raws {
		h := &out.heads[i]
		raw, h.id = cutHeadingID(raw)
		h.text, h.slug = headingText(raw[:runeStart(raw, MaxHeading)], pc)
	}
	htmlMarks(&out, part, body, code)
	return out
}

// cutHeadingID removes a trailing "{#id}", the syntax of Hugo and kramdown, from a
// heading. Classes and attributes may follow the id.
func cutHeadingID(raw []byte) (rest []byte, id string) {
	trimmed := bytes.TrimRight(raw, " \t\n")
	if len(trimmed) == 0 || trimmed[len(trimmed)-1] != '}' {
		return raw, ""
	}
	open := bytes.LastIndexByte(trimmed, '{')
	if open < 0 || len(trimmed)-open > MaxHeading || open > 0 && trimmed[open-1] == '\\' {
		return raw, ""
	}
	for _, f := range bytes.Fields(trimmed[open+1 : len(trimmed)-1]) {
		if f[0] == '#' && len(f) > 1 {
			return bytes.TrimRight(trimmed[:open], " \t"), string(f[1:])
		}
	}
	return raw, ""
}

// idAtEnd matches an id at the end of a heading in the output of a converter.
var idAtEnd = regexp.MustCompile(`(?m)^(#{1,6} .*) \{#[^{}\s]+\}$`)

// WithoutIDs returns a part of the text of the named file as people and models read it. If
// the file is converted, it removes the ids that the converter wrote behind headings.
func WithoutIDs(name, text string) string {
	if !FormatOf(name).Converted() {
		return text
	}
	return idAtEnd.ReplaceAllString(text, "$1")
}

// headingText returns the plain text of a heading for display and the text from which
// its slug is made. The latter keeps leading and trailing blanks and omits images.
func headingText(raw []byte, pc parser.Context) (plain, slug string) {
	if !bytes.ContainsAny(raw, "*_[]<>&\\`!~\n") {
		s := strings.ToValidUTF8(string(bytes.TrimSpace(raw)), "\ufffd")
		return collapse(s), s
	}
	root := newEngine().inline.Parse(text.NewReader(raw), parser.WithContext(pc))
	var p, s, alt strings.Builder
	images := 0
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		put := func(b []byte, tail string) {
			p.Write(b)
			p.WriteString(tail)
			if images > 0 {
				alt.Write(b)
			} else {
				s.Write(b)
				s.WriteString(tail)
			}
		}
		switch n := n.(type) {
		case *ast.Image:
			if entering {
				images++
			} else {
				images--
			}
		case *ast.AutoLink:
			if entering {
				put(n.Label(raw), "")
			}
		case *ast.Text:
			if !entering {
				break
			}
			b := n.Segment.Value(raw)
			if n.Parent().Kind() != ast.KindCodeSpan {
				b = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b)))
			}
			tail := ""
			if n.SoftLineBreak() || n.HardLineBreak() {
				tail = "\n"
			}
			put(b, tail)
		}
		return ast.WalkContinue, nil
	})
	slug = s.String()
	if Slug(slug) == "" {
		slug = alt.String()
	}
	return collapse(strings.ToValidUTF8(p.String(), "\ufffd")), slug
}

// collapse replaces each run of white space by one blank, and removes it at both ends.
func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }

// limitNesting puts a letter after the first maxContainers markers of a line that opens
// more block quotes or lists, so that the rest is text. Such lines are hostile: the
// parser would need quadratic time and deep recursion.
func limitNesting(src []byte, body int) []byte {
	copied := false
	for at := body; at < len(src); {
		line, next := lineAt(src, at)
		if len(line) > maxContainers && !isUnderline(line, '-') && !isUnderline(line, '*') {
			markers := 0
			for i := at; i < at+len(line) && strings.IndexByte(" \t>-+*.)0123456789", src[i]) >= 0; i++ {
				if strings.IndexByte(">-+*.)", src[i]) < 0 {
					continue
				}
				if markers++; markers <= maxContainers {
					continue
				}
				if !copied {
					src, copied = bytes.Clone(src), true
				}
				src[i] = 'x'
				break
			}
		}
		at = next
	}
	return src
}

// parseMDX finds the headings and marks of Markdown with import and export statements.
func parseMDX(name string, src []byte, body int) scanned {
	return parseBlocks(name, maskESM(src, body), body)
}

// maskESM overwrites the import and export statements of MDX with blanks, so that no
// heading is found in them. A statement ends at the next blank line.
func maskESM(src []byte, body int) []byte {
	inside, blank := false, true
	src = bytes.Clone(src)
	for at := body; at < len(src); {
		line, next := lineAt(src, at)
		empty := len(bytes.TrimSpace(line)) == 0
		switch {
		case empty:
			inside = false
		case blank && esm().Match(line):
			inside = true
		}
		if inside {
			for i := range line {
				src[at+i] = ' '
			}
		}
		blank = empty
		at = next
	}
	return src
}

// esm matches the start of an import or export statement.
var esm = pattern(`^(?:import .*["'{]|export (?:(?:const|default|function|let|var|async|class) |[{*]))`)
