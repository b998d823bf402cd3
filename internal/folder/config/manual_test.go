package config

import (
	"os"
	"strings"
	"testing"

	"cairn/internal/text/walk"
)

// TestManual: the manual names every setting and every extension of documents.
func TestManual(t *testing.T) {
	for page, names := range map[string][]string{"configuration.md": Default().Keys(), "formats.md": walk.Documents} {
		text, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			table, _, _ := strings.Cut(name, ".")
			if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+table+".*`") {
				t.Errorf("docs/%s does not name `%s`", page, name)
			}
		}
	}
}
