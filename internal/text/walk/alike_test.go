package walk

import "testing"

func TestAlike(t *testing.T) {
	paths := []string{"docs/a.md", "README.md", "readme.md", ".cairn/cards/abc123.md", "cards/x.md", ".cuedeck/cards/x.md"}
	for name, want := range map[string]string{
		"Docs/A.md": "docs/a.md", "cards/ABC123.md": ".cairn/cards/abc123.md", ".Cairn/cards/abc123.md": ".cairn/cards/abc123.md",
		"Readme.md": "", "cards/X.md": "", "a.md": "", "": "",
	} {
		if got, ok := Alike(paths, name); got != want || ok != (want != "") {
			t.Errorf("Alike(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}
