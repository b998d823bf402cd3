package convert_test

import (
	"fmt"
	"log"

	"cairn/internal/text/convert"
)

func ExampleMarkdown() {
	page := "<html><body><h1>Trees</h1><p>The <b>oak</b> grows slowly.</p><ul><li>elm</li><li>ash</li></ul></body></html>"
	text, err := convert.Markdown(convert.HTML, "trees.html", []byte(page))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output:
	// # Trees
	//
	// The **oak** grows slowly.
	//
	// - elm
	// - ash
}
