package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMermaid(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         []string // the texts of boxes and arrows; nil if the diagram is not drawn
	}{
		{"flowchart", "flowchart TD\n  a[First step] -->|yes| b{Is it\nso?}", nil},
		{"shapes", "graph LR; a[\"say [hi]\"]-->b((B))-.->c([C]) & d[(D)]==>e{{E}}:::red %% note", []string{"say [hi]", "B", "C", "D", "E", "a>b", "b>c", "b>d", "c>e", "d>e"}},
		{"labels", "graph TD\nsubgraph one\na(A) -- goes to --> b[x<br/>y #lt;z#gt;]\nend\nb --- a-1\na -->|back| a", []string{"A", "x y <z>", "a-1", "a>b goes to", "b>a-1", "a>a back"}},
		{"no chart", "flowchart LR\na[open", nil},
		{"other kinds", "gantt\ntitle x", nil},
		{"empty", "graph TD", nil},
		{"too large", "graph TD\n" + strings.Repeat("a-->b\n", 300), nil},
		{"too many arrows", "graph TD\na" + strings.Repeat(" & a", 100) + " --> b" + strings.Repeat(" & b", 100), nil},
		{"sequence", "sequenceDiagram\n autonumber\n participant c as The client\n c->>+Server: ask <b>\n loop each\n Server-->>c: answer\n end\n Note over c,Server: both\n c-xc: think", []string{"The client", "Server", "ask <b>", "loop each", "answer", "both", "think"}},
		{"unknown line", "sequenceDiagram\n a does b", nil},
	} {
		d := mermaid(c.source)
		if d == nil {
			if c.want != nil {
				t.Errorf("%s: no drawing", c.name)
			}
			continue
		}
		var got []string
		for _, b := range d.Boxes {
			got = append(got, b.Full)
			if b.X < 0 || b.X+b.W > d.Width || b.Y+b.H > d.Height {
				t.Errorf("%s: %s is outside", c.name, b.Full)
			}
		}
		if f := (&flow{at: map[string]int{}}); c.name != "sequence" {
			for _, line := range statementEnd.Split(c.source, -1) {
				line, _, _ = strings.Cut(line, "%%")
				if !strings.HasPrefix(line, "graph") && !flowIgnored.MatchString(line) {
					f.statement(strings.TrimSpace(line))
				}
			}
			for _, a := range f.arrows {
				got = append(got, strings.TrimSpace(a.From+">"+a.To+" "+a.Label))
			}
		} else {
			for _, l := range d.Lines {
				if l.Text != "" {
					got = append(got, l.Text)
				}
			}
		}
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s (-want +got)\n%s", c.name, cmp.Diff(c.want, got))
		}
	}
}

// TestDiagrams: a document shows a drawing and its source, both escaped.
func TestDiagrams(t *testing.T) {
	source := "```mermaid\ngraph LR\na[\"<img src=x>\"] --> b\n```\n\n```mermaid\ngantt\n```\n\n```mermaid\nsequenceDiagram\na->>b: hi\n```\n"
	page := string((&reader{}).render([]byte(source)).HTML)
	if strings.Count(page, "<svg width") != 2 || strings.Contains(page, "<img") || strings.Count(page, "Source of the drawing") != 2 || !strings.Contains(page, "gantt") || strings.Contains(page, "style=") {
		t.Errorf("the page is\n%s", page)
	}
}
