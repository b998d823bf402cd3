package models

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadDescription(t *testing.T) {
	for name, c := range map[string]struct {
		file string // "" is no file
		want Description
		err  string
	}{
		"absent":   {"", Description{Name: "my-model"}, ""},
		"complete": {`{"name":"n","dimension":3,"max_tokens":4,"pooling":"cls","query_prefix":"q","document_prefix":"d","min_similarity":0.5}`, Description{Name: "n", Dimension: 3, MaxTokens: 4, Pooling: "cls", QueryPrefix: "q", DocumentPrefix: "d", MinSimilarity: .5}, ""},
		"nameless": {`{"pooling":"cls"}`, Description{Name: "my-model", Pooling: "cls"}, ""},
		"misspelt": {`{"poling":"cls"}`, Description{}, `"poling"`},
		"broken":   {`{"name":`, Description{}, "unexpected EOF"},
		"large":    {`{"name":"` + strings.Repeat("x", maxDescription) + `"}`, Description{}, "want at most"},
	} {
		dir := filepath.Join(t.TempDir(), "my-model")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, "cairn.json"), []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadDescription(dir)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: ReadDescription() error %v, want %q", name, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: ReadDescription() (-want +got)\n%s", name, diff)
		}
	}
	unreadable := t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, "cairn.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDescription(unreadable); err == nil {
		t.Error("ReadDescription of a folder in place of the file gave no error")
	}
}
