package markdown_test

import (
	"fmt"

	"cairn/internal/text/markdown"
)

func ExampleParse() {
	d := markdown.Parse("guide.md", []byte("---\ntitle: Guide\n---\n\n# Setup\n\nFirst.\n\n## Linux & macOS\n\nThen.\n"))
	fmt.Println(d.Title)
	for _, s := range d.Sections {
		fmt.Println(s.StartLine, s.Anchor, s.Trail)
	}
	i, ok := markdown.Resolve(d, "#linux--macos")
	fmt.Println(d.Sections[i].Heading, ok)
	// Output:
	// Guide
	// 5 setup [Setup]
	// 9 linux--macos [Setup Linux & macOS]
	// Linux & macOS true
}

func ExamplePlainText() {
	fmt.Println(markdown.PlainText([]byte("## Install\n\nRun `cairn init`, then see [the *guide*](guide.md).")))
	// Output:
	// Install
	// Run cairn init, then see the guide.
}

func ExampleEditFrontMatter() {
	src := "---\ntitle: Fix login # by hand\nstatus: todo\n---\nText\n"
	out, err := markdown.EditFrontMatter([]byte(src), markdown.FieldEdit{Key: "status", Value: "done"})
	fmt.Print(string(out), err)
	// Output:
	// ---
	// title: Fix login # by hand
	// status: done
	// ---
	// Text
	// <nil>
}
