package outline_test

import (
	"fmt"

	"cairn/internal/text/outline"
)

func ExampleOutline() {
	source := "class Tree:\n    def grow(self, years):\n        return years\n"
	symbols, _ := outline.Outline("tree.py", []byte(source))
	for _, s := range symbols {
		fmt.Printf("%s: %s, in %d\n", s.Name, s.Signature, s.Parent)
	}
	// Output:
	// Tree: class Tree, in -1
	// grow: def grow(self, years), in 0
}
