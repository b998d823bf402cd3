package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesNameTests: each test exists that docs/security.md names as a proof, or
// CONTRIBUTING.md as a guide.
func TestPagesNameTests(t *testing.T) {
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, least := range map[string]int{"docs/security.md": 20, "CONTRIBUTING.md": 10} {
		text, err := os.ReadFile("../../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
		if len(named) < least {
			t.Errorf("%s names %d tests, want %d or more", page, len(named), least)
		}
		for _, m := range named {
			if !tests[string(m[1])] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
}
