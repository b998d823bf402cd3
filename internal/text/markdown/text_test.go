package markdown

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cairn/internal/text/sandbox"
)

// TestMemory converts files that make a parser allocate gigabytes: 400 elements that it
// repeats in each of 100,000 blocks, and a tag of 30 million attributes.
func TestMemory(t *testing.T) {
	var page strings.Builder
	page.WriteString("<div>")
	for i := range 400 {
		fmt.Fprintf(&page, "<b a=%d>", i)
	}
	page.WriteString("</div>" + strings.Repeat("<div>x</div>", 100_000))
	var book bytes.Buffer
	z := zip.NewWriter(&book)
	part, err := z.Create("word/document.xml")
	if err == nil {
		_, err = io.WriteString(part, "<a "+strings.Repeat("a ", 30<<20)+">")
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"elements.html": []byte(page.String()), "attributes.docx": book.Bytes(),
	} {
		_, _, err := TextOf(name, data, nil)
		if failure, ok := errors.AsType[*sandbox.Error](err); !ok || failure.Reason != "takes more than 256 MiB of memory to read" {
			t.Errorf("%s: %v, want that it takes too much memory", name, err)
		}
	}
}
