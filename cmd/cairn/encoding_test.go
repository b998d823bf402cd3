package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherEncodings: files that are not UTF-8 are searched, read and cited by the lines of the
// file, and are not written.
func TestOtherEncodings(t *testing.T) {
	root := t.TempDir()
	wide := func(s string) string { return "\xff\xfe" + strings.Join(strings.Split(s, ""), "\x00") + "\x00" }
	files := map[string]string{
		"latin.md":  "# Stra\xdfen\n\nDie Br\xfccke ist gesperrt.\n",
		"wide.txt":  wide("first line\r\nsecond platypus line\r\n"),
		"page.html": "<h1>Caf\xe9</h1>\n<p>geschlossen</p>\n",
		"koi8.txt":  "\xf0\xd2\xc9\n",
		"code.py":   "# coding: iso-8859-15\ndef preis():\n    return '5 \xa4'\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cairn := func(line string) (string, int) {
		var b bytes.Buffer
		code := run(append(strings.Fields(line), "-C", root), strings.NewReader(""), &b, &b)
		return b.String(), code
	}
	for range 2 { // without and with an index
		for line, want := range map[string]string{
			"grep Brücke": "latin.md:3:Die Brücke ist gesperrt.", "grep platypus": "wide.txt:2:second platypus line\n1 line in 1 of 4 files; not searched: 1 not text\n",
			"grep --json platypus": `"not_searched":{"not text":1}`,
			"grep -A 1 Café":       "page.html:1:<h1>Café</h1>\npage.html-2-<p>", "grep -F --kind all €": "code.py:3:    return '5 €'",
		} {
			if got, code := cairn(line); code != exitDone || !strings.Contains(got, want) {
				t.Errorf("%s: %d, %s, want %s", line, code, got, want)
			}
		}
		if got, code := cairn("index --no-embed"); code != exitDone {
			t.Fatal(got)
		}
	}
	for line, want := range map[string]string{
		"search --mode keyword brücke": "Die Brücke ist gesperrt.", "read latin.md#straßen": "# Straßen\n", "read wide.txt:2-2": "second platypus line",
		"search --mode keyword Café": "page.html", "read code.py#preis": "return '5 €'",
	} {
		if got, code := cairn(line); code != exitDone || !strings.Contains(got, want) {
			t.Errorf("%s: %d, %s, want %s", line, code, got, want)
		}
	}
	for name, text := range files {
		if now, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(now) != text {
			t.Errorf("%s is %q, %v", name, now, err)
		}
	}
}
