package format

import "testing"

// Titles that a program made up do not name a document.
func TestPDFTitle(t *testing.T) {
	for title, want := range map[string]string{
		"": "guide.pdf", "An Introduction to R": "An Introduction to R", "full.dvi": "guide.pdf", "Untitled-1": "guide.pdf", "Microsoft Word - a.doc": "guide.pdf",
	} {
		f := &pdfFile{w: &writer{name: "guide.pdf"}, trailer: dict{"Info": dict{"Title": title}}}
		if got := f.title(); got != want {
			t.Errorf("title %q gives %q, want %q", title, got, want)
		}
	}
}
