package web

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// drawing is a directed acyclic graph laid out in layers from left to right, each
// box to the right of its dependencies. Coordinates are pixels.
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

type line struct{ D, Label string }

// arrow points from a box to one that comes after it. From and To are IDs of boxes.
type arrow struct{ From, To, Label string }

const (
	boxWidth, boxHeight = 200, 44
	gapX, gapY, edge    = 56, 16, 8
	labelRunes          = 24
)

// draw lays out boxes by the length of the longest path from a box without
// dependencies. It omits arrows of a cycle or with an unknown end.
func draw(boxes []box, arrows []arrow) *drawing {
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
	for progress := true; progress; { // at most once for each layer; a cycle is never placed
		progress = false
		for i, list := range before {
			if placed[i] || slices.ContainsFunc(list, func(j int) bool { return !placed[j] }) {
				continue
			}
			for _, j := range list {
				layer[i] = max(layer[i], layer[j]+1)
			}
			placed[i], progress = true, true
		}
	}
	d := &drawing{}
	var rows []int
	for i := range boxes {
		b := boxes[i]
		for len(rows) <= layer[i] {
			rows = append(rows, 0)
		}
		b.X, b.Y, b.W, b.H = edge+layer[i]*(boxWidth+gapX), edge+rows[layer[i]]*(boxHeight+gapY), boxWidth, boxHeight
		rows[layer[i]]++
		b.Full, b.Label = b.Label, short(b.Label)
		d.Width, d.Height = max(d.Width, b.X+b.W+edge), max(d.Height, b.Y+b.H+edge)
		d.Boxes = append(d.Boxes, b)
	}
	for _, a := range arrows {
		from, ok1 := at[a.From]
		to, ok2 := at[a.To]
		if !ok1 || !ok2 || !placed[from] || !placed[to] {
			continue
		}
		f, t := d.Boxes[from], d.Boxes[to]
		x1, y1, x2, y2 := f.X+f.W, f.Y+f.H/2, t.X, t.Y+t.H/2
		bend := (x2 - x1) / 2
		d.Lines = append(d.Lines, line{fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2), a.Label})
	}
	return d
}

// short cuts a label to labelRunes.
func short(label string) string {
	if utf8.RuneCountInString(label) <= labelRunes {
		return label
	}
	return string([]rune(label)[:labelRunes-1]) + "…"
}
