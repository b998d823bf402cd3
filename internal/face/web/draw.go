package web

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// drawing is a directed graph laid out in layers from left to right, each box to the right of
// its dependencies, except for arrows that close a cycle. Coordinates are pixels.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []line
}

type box struct {
	ID, Label, Note, Class, Link string
	Full                         string // the whole label; draw sets it and cuts Label
	X, Y, W, H                   int
}

// line is a path, with a tip unless it is plain, and the text at a place of it.
type line struct {
	D, Label string
	Text     string // of Label, if it is short
	X, Y     int    // of Text
	Plain    bool
}

// path adds a line with a label at (x, y).
func (d *drawing) path(label string, x, y int, plain bool, format string, args ...any) {
	d.Lines = append(d.Lines, line{D: fmt.Sprintf(format, args...), Label: label, Text: short(label), X: x, Y: y, Plain: plain})
}

// arrow points from a box to one that comes after it. From and To are IDs of boxes.
type arrow struct{ From, To, Label string }

const (
	boxWidth, boxHeight = 200, 44
	gapX, gapY, edge    = 56, 16, 8
	labelRunes          = 24
)

// draw lays out boxes by the length of the longest path from a box without
// dependencies. In a cycle the first box precedes the others. Arrows with an unknown end are
// omitted. If down is set, the layers go from top to bottom instead.
func draw(boxes []box, arrows []arrow, down bool) *drawing {
	at := map[string]int{}
	for i := range boxes {
		at[boxes[i].ID] = i
	}
	before := make([][]int, len(boxes))
	for _, a := range arrows {
		from, ok1 := at[a.From]
		if to, ok2 := at[a.To]; ok1 && ok2 {
			before[to] = append(before[to], from)
		}
	}
	layer := make([]int, len(boxes))
	placed := make([]bool, len(boxes))
	for range boxes {
		next := slices.Index(placed, false) // of a cycle, unless a box has all its dependencies
		for i, list := range before {
			if !placed[i] && !slices.ContainsFunc(list, func(j int) bool { return !placed[j] }) {
				next = i
				break
			}
		}
		for _, j := range before[next] {
			if placed[j] {
				layer[next] = max(layer[next], layer[j]+1)
			}
		}
		placed[next] = true
	}
	d := &drawing{}
	gap := gapX
	for _, a := range arrows {
		gap = max(gap, min(utf8.RuneCountInString(a.Label), labelRunes)*7+gapY)
	}
	var rows []int
	for i := range boxes {
		b := boxes[i]
		for len(rows) <= layer[i] {
			rows = append(rows, 0)
		}
		b.X, b.Y, b.W, b.H = edge+layer[i]*(boxWidth+gap), edge+rows[layer[i]]*(boxHeight+gapY), boxWidth, boxHeight
		if down {
			b.X, b.Y = edge+rows[layer[i]]*(boxWidth+gapY), edge+layer[i]*(boxHeight+gapX)
		}
		rows[layer[i]]++
		b.Full, b.Label = b.Label, short(b.Label)
		if b.Note == "" && b.Label != b.Full { // two lines
			b.Label = string([]rune(b.Full)[:labelRunes])
			if i := strings.LastIndexByte(b.Label, ' '); i > 0 {
				b.Label = b.Label[:i]
			}
			b.Note = short(strings.TrimSpace(b.Full[len(b.Label):]))
		}
		d.Width, d.Height = max(d.Width, b.X+b.W+edge), max(d.Height, b.Y+b.H+edge)
		d.Boxes = append(d.Boxes, b)
	}
	for _, a := range arrows {
		from, ok1 := at[a.From]
		to, ok2 := at[a.To]
		if !ok1 || !ok2 {
			continue
		}
		f, t := d.Boxes[from], d.Boxes[to]
		x1, y1, x2, y2 := f.X+f.W, f.Y+f.H/2, t.X, t.Y+t.H/2
		bend := (x2 - x1) / 2
		if layer[to] <= layer[from] || down && layer[to] > layer[from]+1 {
			d.aside(a.Label, f, t, gap, down)
			continue
		}
		if down {
			x1, y1, x2, y2 = f.X+f.W/2, f.Y+f.H, t.X+t.W/2, t.Y
			bend = (y2 - y1) / 2
			d.path(a.Label, (x1+x2)/2+edge/2, (y1+y2)/2+4, false, "M%d %dC%d %d %d %d %d %d", x1, y1, x1, y1+bend, x2, y2-bend, x2, y2)
			continue
		}
		d.path(a.Label, x1+edge, (y1+y2)/2-4, false, "M%d %d C%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
	}
	return d
}

// aside adds a curve that passes the boxes between two on the right, or below if the layers go
// from left to right.
func (d *drawing) aside(label string, f, t box, gap int, down bool) {
	loop := 0
	if f.ID == t.ID {
		loop = edge
	}
	if down {
		x1, y1, x2, y2 := f.X+f.W, f.Y+f.H/2-loop, t.X+t.W, t.Y+t.H/2+loop
		far := max(x1, x2) + gap
		d.Width = max(d.Width, far+gap)
		d.path(label, far-gap/4, (y1+y2)/2+4, false, "M%d %dC%d %d %d %d %d %d", x1, y1, far, y1, far, y2, x2, y2)
		return
	}
	x1, y1, x2, y2 := f.X+f.W/2-loop, f.Y+f.H, t.X+t.W/2+loop, t.Y+t.H
	far := max(y1, y2) + boxHeight
	d.Height = max(d.Height, far)
	d.path(label, (x1+x2)/2, far-boxHeight/4, false, "M%d %dC%d %d %d %d %d %d", x1, y1, x1, far, x2, far, x2, y2)
}

// short cuts a label to labelRunes.
func short(label string) string { return cut(label, labelRunes) }

func cut(label string, runes int) string {
	if utf8.RuneCountInString(label) <= runes {
		return label
	}
	return string([]rune(label)[:runes-1]) + "…"
}
