package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// These constants bound the memory of the block parser. It keeps the tree of the whole
// input and, while any block is open, a record for each line and open block.
const (
	windowSteps = 1 << 14 // calls of PeekLine after which a window ends at the next gap between blocks
	maxSteps    = 1 << 20 // calls after which a window ends within a block
)

// eachBlock parses the blocks of part and calls visit with the headings and code blocks
// in document order, until visit returns false. Offsets of a node are relative to base.
// The nodes are valid only during the call.
//
// eachBlock parses the document in windows that end where no block is open, so the
// result equals that of a single parse. It divides only a block of some hundred thousand
// lines.
func eachBlock(part []byte, pc parser.Context, visit func(n ast.Node, base int) bool) {
	for base := 0; base < len(part); {
		w := &window{Reader: text.NewReader(part[base:]), pc: pc}
		root := newEngine().blocks.Parse(w, parser.WithContext(pc))
		more := true
		_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering {
				return ast.WalkContinue, nil
			}
			switch n.(type) {
			case *ast.Heading, *ast.CodeBlock, *ast.FencedCodeBlock:
				if more = visit(n, base); !more {
					return ast.WalkStop, nil
				}
				return ast.WalkSkipChildren, nil
			}
			return ast.WalkContinue, nil
		})
		if !w.ended || !more {
			return
		}
		_, at := w.Position()
		base += at.Start
	}
}

// window is a reader that ends early. It reads a run of blank lines as one line, because
// the parser checks every open block for each blank line.
type window struct {
	text.Reader
	pc    parser.Context
	steps int
	ended bool
}

// SkipBlankLines implements text.Reader. The parser calls it when no block is open.
func (w *window) SkipBlankLines() (text.Segment, int, bool) {
	if w.steps >= windowSteps {
		w.ended = true
	}
	if w.ended {
		_, at := w.Position()
		return at, 0, false
	}
	return w.Reader.SkipBlankLines()
}

// PeekLine implements text.Reader.
func (w *window) PeekLine() ([]byte, text.Segment) {
	if w.ended {
		_, at := w.Position()
		return nil, at
	}
	w.steps++
	return w.Reader.PeekLine()
}

// AdvanceLine implements text.Reader.
func (w *window) AdvanceLine() {
	if w.ended {
		return
	}
	w.Reader.AdvanceLine()
	w.ended = w.steps >= maxSteps || w.steps >= windowSteps && w.betweenLeaves()
	if w.ended {
		return
	}
	_, at := w.Position()
	src := w.Source()
	if at.Start <= 0 || at.Start >= len(src) || !util.IsBlank(src[at.Start:at.Stop]) {
		return
	}
	for {
		next := src[min(at.Stop, len(src)):]
		if n := bytes.IndexByte(next, '\n'); n >= 0 {
			next = next[:n+1]
		}
		if len(next) == 0 || !util.IsBlank(next) {
			return
		}
		w.Reader.AdvanceLine()
		_, at = w.Position()
	}
}

// betweenLeaves reports whether the only open block is one that cannot continue on the
// next line.
func (w *window) betweenLeaves() bool {
	open := w.pc.OpenedBlocks()
	if len(open) != 1 {
		return false
	}
	switch open[0].Node.(type) {
	case *ast.Heading, *ast.ThematicBreak:
		return true
	}
	return false
}
