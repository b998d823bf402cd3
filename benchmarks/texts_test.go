package benchmarks

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "texts")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\"a \\\"b\\\"\"\n\n  \n\"c\"")
	if got, err := ReadTexts(file); err != nil || !slices.Equal(got, []string{`a "b"`, "c"}) {
		t.Errorf("ReadTexts = %q, %v", got, err)
	}
	write("\"a\"\n\nnot one\n")
	if _, err := ReadTexts(file); err == nil || !strings.Contains(err.Error(), "texts:3: want a JSON string") {
		t.Errorf("a line that is no string: %v, want its place", err)
	}
	write(`"` + strings.Repeat("a", maxLine) + `"`)
	if _, err := ReadTexts(file); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line that is too long: %v", err)
	}
	if _, err := ReadTexts(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
}
