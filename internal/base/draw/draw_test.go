package draw

import "testing"

func TestEscapes(t *testing.T) {
	g := &Graph{Name: "g", Nodes: []Node{{ID: "a", Label: "say \"hi\" <b> `#1`\\"}, {ID: "b", Label: "B"}}, Edges: []Edge{{From: "a", To: "b", Label: "x → y", Strong: true, Width: 2}}}
	want := "flowchart LR\n  a[\"say #quot;hi#quot; #lt;b#gt; #96;#35;1#96;\\\"]\n  b[\"B\"]\n  a ==>|\"x → y\"| b\n"
	if got := g.Mermaid(); got != want {
		t.Errorf("Mermaid:\n%s\nwant\n%s", got, want)
	}
	want = "digraph g {\n  rankdir=LR;\n  node [shape=box];\n  a [label=\"say \\\"hi\\\" <b> `#1`\\\\\"];\n  b [label=\"B\"];\n  a -> b [label=\"x → y\", penwidth=2.0];\n}\n"
	if got := g.DOT(); got != want {
		t.Errorf("DOT:\n%s\nwant\n%s", got, want)
	}
}

func TestInlineNamesStayApart(t *testing.T) {
	g := &Graph{Name: "g", Inline: true, Nodes: []Node{{ID: "a-b", Label: "A"}, {ID: "a_b", Label: "B"}, {ID: "end", Label: "E"}}, Edges: []Edge{{From: "a-b", To: "a_b"}}}
	if got, want := g.Mermaid(), "graph LR\n    a_b[\"A\"] --> a_b_2[\"B\"]\n    end_2[\"E\"]\n"; got != want {
		t.Errorf("Mermaid:\n%s\nwant\n%s", got, want)
	}
}

func TestASCIIEndsInACycle(t *testing.T) {
	g := &Graph{Nodes: []Node{{ID: "a", Label: "A", Mark: "[x]"}, {ID: "b", Label: "B"}}, Edges: []Edge{{From: "a", To: "b"}, {From: "b", To: "a"}}}
	if got, want := g.ASCII(), "[x] A\n`-- [ ] B\n    `-- [x] A (see above)\n"; got != want {
		t.Errorf("ASCII:\n%s\nwant\n%s", got, want)
	}
}
