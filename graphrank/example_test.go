package graphrank_test

import (
	"fmt"

	"cairn/graphrank"
)

// Two sessions read the login page before the token page, one of them then the
// rotation page. With the login page in use, the token page belongs to it most.
func ExampleGraph_Affinity() {
	var g graphrank.Graph
	g.Observe("login", "token", graphrank.Sequence)
	g.Observe("login", "token", graphrank.Sequence)
	g.Observe("token", "rotation", graphrank.Sequence)

	pages := []string{"garden", "rotation", "token"}
	for i, a := range g.Affinity([]string{"login"}, pages) {
		fmt.Printf("%s %.2f\n", pages[i], a)
	}
	// Output:
	// garden 0.00
	// rotation 0.52
	// token 0.67
}

func ExampleGraph_PageRank() {
	var g graphrank.Graph
	g.Observe("a", "hub", graphrank.Sequence)
	g.Observe("b", "hub", graphrank.Sequence)
	ranks := g.PageRank()
	fmt.Printf("a %.2f, b %.2f, hub %.2f\n", ranks["a"], ranks["b"], ranks["hub"])
	// Output: a 0.21, b 0.21, hub 0.57
}

func ExampleGraph_AdamicAdar() {
	var g graphrank.Graph
	g.Observe("read", "parse", graphrank.Sequence)
	g.Observe("fetch", "parse", graphrank.Sequence)
	fmt.Printf("%.2f\n", g.AdamicAdar("read", "fetch")) // they share parse, which has two edges: 1/ln 2
	// Output: 1.44
}
