package config

import (
	"os"
	"strings"
	"testing"
)

// TestManual: the manual names every setting.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Default().Keys() {
		table, _, _ := strings.Cut(name, ".")
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+table+".*`") {
			t.Errorf("docs/configuration.md does not name `%s`", name)
		}
	}
}
