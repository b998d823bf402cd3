package web

import (
	"html"
	"html/template"
	"regexp"
	"strings"
)

// diagram matches a block of Mermaid in sanitised HTML.
var diagram = regexp.MustCompile(`(?s)<pre><code class="mermaid">(.*?)</code></pre>`)

// maxDiagram bounds the nodes, arrows and messages of a diagram.
const maxDiagram = 200

// withDiagrams draws the flowcharts and sequence diagrams of a document, each with its source
// below. Other diagrams of Mermaid, and what the parser does not know, are shown as source.
func withDiagrams(text string) string {
	return diagram.ReplaceAllStringFunc(text, func(block string) string {
		source := html.UnescapeString(diagram.FindStringSubmatch(block)[1])
		d := mermaid(source)
		if d == nil {
			return strings.Replace(block, ` class="mermaid"`, "", 1)
		}
		var b strings.Builder
		if err := templates().ExecuteTemplate(&b, "graph", d); err != nil {
			return block
		}
		return b.String() + "<details><summary>Source of the drawing</summary><pre><code>" + template.HTMLEscapeString(source) + "</code></pre></details>"
	})
}

// mermaid returns the drawing of a diagram, or nil if it cannot draw it.
func mermaid(source string) *drawing {
	var lines []string
	for _, line := range statementEnd.Split(source, -1) {
		line, _, _ = strings.Cut(line, "%%")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 || len(lines) > maxDiagram {
		return nil
	}
	switch kind, _, _ := strings.Cut(lines[0], " "); kind {
	case "graph", "flowchart":
		return flowchart(lines)
	case "sequenceDiagram":
		return sequence(lines[1:])
	}
	return nil
}

// statementEnd matches the end of a statement; the semicolon of an entity such as #lt; is none.
var statementEnd = regexp.MustCompile(`;[ \t]|;?\n`)

var (
	flowIgnored = regexp.MustCompile(`^(subgraph|end|style|classDef|class|click|linkStyle|direction)\b`)
	flowName    = regexp.MustCompile(`^[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*`)
	flowLink    = regexp.MustCompile(`^\s*[<xo]?(?:--+|==+|-\.+-*)(?:\s+([^-=|>\s][^|>]*?)\s+(?:--+|==+|\.+-+))?[>xo]?\s*(?:\|([^|]*)\|)?\s*`)
	flowShapes  = [][2]string{{"[[", "]]"}, {"([", "])"}, {"[(", ")]"}, {"((", "))"}, {"{{", "}}"}, {"[", "]"}, {"(", ")"}, {"{", "}"}, {">", "]"}}
)

// flow is a flowchart while it is parsed.
type flow struct {
	boxes  []box
	at     map[string]int
	arrows []arrow
}

func flowchart(lines []string) *drawing {
	f := &flow{at: map[string]int{}}
	for _, line := range lines[1:] {
		if !flowIgnored.MatchString(line) && !f.statement(line) || len(f.arrows) > maxDiagram {
			return nil
		}
	}
	if len(f.boxes) == 0 {
		return nil
	}
	return draw(f.boxes, f.arrows, !strings.HasSuffix(lines[0], "LR") && !strings.HasSuffix(lines[0], "RL"))
}

// statement parses a chain such as "a[First] -->|next| b & c". It reports whether it could.
func (f *flow) statement(rest string) bool {
	var from []string
	label := ""
	for {
		var to []string
		for {
			id, after, ok := f.node(rest)
			if !ok {
				return false
			}
			if to = append(to, id); len(f.boxes) > maxDiagram || len(from)*len(to) > maxDiagram {
				return false
			}
			if rest, ok = strings.CutPrefix(strings.TrimSpace(after), "&"); !ok {
				break
			}
		}
		for _, a := range from {
			for _, b := range to {
				f.arrows = append(f.arrows, arrow{a, b, label})
			}
		}
		if rest == "" {
			return true
		}
		m := flowLink.FindStringSubmatch(rest)
		if m == nil {
			return false
		}
		from, label, rest = to, strings.Trim(m[1]+m[2], `" `), rest[len(m[0]):]
	}
}

// node parses the name of a node with its shape and text, and returns what follows.
func (f *flow) node(text string) (id, rest string, ok bool) {
	text = strings.TrimSpace(text)
	id = flowName.FindString(text)
	if id == "" {
		return "", "", false
	}
	rest = text[len(id):]
	if _, known := f.at[id]; !known {
		f.at[id] = len(f.boxes)
		f.boxes = append(f.boxes, box{ID: id, Label: id})
	}
	for _, shape := range flowShapes {
		inner, opened := strings.CutPrefix(rest, shape[0])
		if !opened {
			continue
		}
		end := shape[1]
		if strings.HasPrefix(inner, `"`) {
			inner, end = inner[1:], `"`+end
		}
		label, after, closed := strings.Cut(inner, end)
		if !closed {
			return "", "", false
		}
		f.boxes[f.at[id]].Label, rest = mermaidText(label), after
		break
	}
	if class, found := strings.CutPrefix(rest, ":::"); found {
		rest = class[len(flowName.FindString(class)):]
	}
	return id, rest, true
}

var lineBreak = regexp.MustCompile(`(?i)<br\s*/?>|\\n`)

// mermaidText returns the text of a label without its breaks and entities.
func mermaidText(label string) string {
	label = strings.NewReplacer("#quot;", `"`, "#35;", "#", "#lt;", "<", "#gt;", ">", "#96;", "`").Replace(label)
	return strings.TrimSpace(lineBreak.ReplaceAllString(label, " "))
}

var (
	sequenceIgnored = regexp.MustCompile(`^(autonumber|activate|deactivate|end|title|box|create|destroy)\b`)
	sequenceActor   = regexp.MustCompile(`^(?:participant|actor)\s+(.+?)(?:\s+as\s+(.+))?$`)
	sequenceMessage = regexp.MustCompile(`^([^-:]+?)\s*--?(?:>>?|x|\))\s*[+-]?\s*([^-:]+?)\s*:\s*(.*)$`)
	sequenceNote    = regexp.MustCompile(`^(?:Note|note)\s+(?:over|left of|right of)\s+([^:,]+)[^:]*:\s*(.*)$`)
	sequenceBlock   = regexp.MustCompile(`^(?:loop|alt|else|opt|par|and|critical|break|rect)\b.*$`)
)

// sequence draws a column for each participant, and from top to bottom the messages.
func sequence(lines []string) *drawing {
	d := &drawing{}
	at := map[string]int{}
	column := func(name string) int {
		if _, known := at[name]; !known {
			at[name] = len(d.Boxes)
			d.Boxes = append(d.Boxes, box{ID: name, Full: name, Label: short(name), X: edge + len(d.Boxes)*(boxWidth+gapY), Y: edge, W: boxWidth, H: boxHeight})
		}
		return d.Boxes[at[name]].X + boxWidth/2
	}
	y := boxHeight + gapY
	for _, text := range lines {
		y += boxHeight - gapY/2
		if m := sequenceActor.FindStringSubmatch(text); m != nil {
			column(m[1])
			if m[2] != "" {
				d.Boxes[at[m[1]]].Full, d.Boxes[at[m[1]]].Label = mermaidText(m[2]), short(mermaidText(m[2]))
			}
			y -= boxHeight - gapY/2
		} else if m := sequenceMessage.FindStringSubmatch(text); m != nil {
			x1, x2 := column(m[1]), column(m[2])
			if x1 != x2 {
				d.path(mermaidText(m[3]), min(x1, x2)+edge, y-5, false, "M%d %dH%d", x1, y, x2)
			} else { // leaves and comes back on the right
				d.path(mermaidText(m[3]), x1+gapX, y-5, false, "M%d %dC%d %d %d %d %d %d", x1, y-16, x1+gapX, y-16, x1+gapX, y, x1, y)
			}
		} else if m := sequenceNote.FindStringSubmatch(text); m != nil {
			d.path(mermaidText(m[2]), column(m[1])+edge, y, true, "")
		} else if sequenceBlock.MatchString(text) {
			d.path(mermaidText(text), edge, y, true, "M%d %dh%d", edge, y+5, boxWidth/2)
		} else if sequenceIgnored.MatchString(text) {
			y -= boxHeight - gapY/2
		} else {
			return nil
		}
	}
	if len(d.Boxes) == 0 || len(d.Boxes) > 20 {
		return nil
	}
	d.Height, d.Width = y+gapY, 2*edge+len(d.Boxes)*(boxWidth+gapY)
	for _, b := range d.Boxes {
		d.path("", 0, 0, true, "M%d %dV%d", b.X+boxWidth/2, b.Y+b.H, d.Height)
	}
	return d
}
