package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/face/view"
	"cairn/retriever"
)

// TestWords checks messages: they name no function, name no tool to a person at the
// terminal, count in correct grammar, and say what to do.
func TestWords(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"a.md": "# A\n\nalpha\n", "koi8.md": "\xf0\xd2\xc9\n", "wide.md": "\xff\xfea\x00\x01\x00"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	t.Setenv("CODEX_HOME", "")
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"index --no-embed", exitDone, "indexed 1 file with 1 section: 1 new or changed, 0 removed, 2 skipped; 0 texts embedded, 1 piece still without a vector"},
		{"status", exitDone, "1 with 1 section\n"},
		{"status", exitDone, "2 files: not UTF-8 (convert to UTF-8)\n"},
		{"read koi8.md", exitUsage, `"koi8.md" is not indexed: not UTF-8 (convert to UTF-8)`},
		{"search --limit x alpha", exitUsage, `invalid argument "x" for "--limit" flag: want a whole number (see`},
		{"search --limit 99999999999999999999 alpha", exitUsage, "that number is too large or too small"},
		{"search --wait x alpha", exitUsage, "want a time such as 30s or 5m"},
		{"search --wait 5 alpha", exitUsage, "want a time such as 30s or 5m"},
		{"search --wait 5parsecs alpha", exitUsage, "want a time such as 30s or 5m"},
		{"search --explain=x alpha", exitUsage, "want true or false"},
		{"connect codex", exitFailed, "set it to your home folder"},
	} {
		var b bytes.Buffer
		code := run(append(strings.Fields(c.line), "-C", root), strings.NewReader(""), &b, &b)
		if code != c.code || !strings.Contains(b.String(), c.want) || strings.Contains(b.String(), "strconv") {
			t.Errorf("cairn %s: %d and %q, want %d and %q", c.line, code, &b, c.code, c.want)
		}
	}
	for hint, want := range map[string]string{
		"the folder has not been indexed yet: call the tool index, then search again":        "the folder has not been indexed yet: run `cairn index`, then search again",
		"this folder has no index yet: call the tool index, or run `cairn index`":            "this folder has no index yet: run `cairn index`",
		"the folder is being indexed: search again soon, the tool status shows the progress": "the folder is being indexed: search again soon, `cairn status` shows the progress",
	} {
		if got := view.Notes(&retriever.Answer{Reason: "r", Hint: hint}); got[0] != "nothing found: "+want {
			t.Errorf("the note on the hint %q is %q, want %q", hint, got[0], "nothing found: "+want)
		}
	}
}
