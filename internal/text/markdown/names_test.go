package markdown

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"cairn/internal/text/outline"
)

// TestNames: the name of a file without a known extension decides its format.
func TestNames(t *testing.T) {
	for names, want := range map[string]string{
		"README NEWS.gz COPYING copyright LICENSE-MIT README.Debian changelog.Debian.gz README.Debian.amd64.gz COPYING.LIB a/TODO CHANGELOG.3 NEWS-1.12 CHANGES-2.8.gz ChangeLog.1": ".txt",
		"README.md docs/INSTALL.md.gz":   ".md",
		"changes.html changelog.html.gz": ".html",
		"git.1 git.1.gz install.1":       ".1",
		"open.3pm.gz open.3ssl open.3 man3/canvas.3caca.gz share/man/ja/man3/open.3o": ".3",
		"man9/mbuf.9freebsd m.9":                 ".9",
		"a.7z man3/a.7z":                         ".7z",
		"a.tar.gz":                               ".tar",
		"news.json install.sh.gz":                "",
		"Makefile GNUmakefile rules.mk":          ".mk",
		"Dockerfile Dockerfile.gz Containerfile": ".dockerfile",
		"Gemfile Vagrantfile":                    ".rb",
		"install-sh LICENSE.png READMEs bugs-2 news.conf a.gz.bak .gz gz": "",
	} {
		for name := range strings.FieldsSeq(names) {
			got := outline.Ext(name)
			if want != "" && got != want || got == ".txt" && want != ".txt" {
				t.Errorf("Ext(%s) = %q, want %q", name, got, want)
			}
		}
	}
}

func gzipped(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, text := range parts {
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestGzip: a compressed file has the text of the file that it contains.
func TestGzip(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string // the text, or the reason
	}{
		{"README.gz", gzipped(t, "one\n", "two\n"), "one\ntwo\n"},
		{"AUTHORS.gz", gzipped(t, "J\xf6rg\n"), "Jörg\n"},
		{"a.html.gz", gzipped(t, "<h1>A</h1><p>b"), "# A\n\nb\n"},
		{"a.3pm.GZ", gzipped(t, ".TH A 3\n.SH NAME\na\n"), "# A(3)\n## NAME\na\n"},
		{"pod.1ssl.gz", gzipped(t, ".ie n \\{\\\n.ds C x\n\\{\\\n'br\\}\n.TH POD 1\n"), "\n\n\n\n# POD(1)\n"},
		{"a.md.gz", gzipped(t, "# A\n"), "# A\n"},
		{"a.csv.gz", gzipped(t, "a,b\n"), "# a.csv.gz\n\n1 rows, 2 columns.\n\n| a | b |\n| --- | --- |\n"},
		{"empty.txt.gz", gzipped(t, ""), "no text"},
		{"not.txt.gz", []byte("text"), "broken file"},
		{"cut.txt.gz", gzipped(t, "text")[:14], "broken file"},
		{"bomb.txt.gz", gzipped(t, strings.Repeat("a", 11<<20)), "more than 10 MiB of text; split it"},
		{"bomb.html.gz", gzipped(t, strings.Repeat("a", 11<<20)), "more than 10 MiB of text; split it"},
	} {
		text, _, err := TextOf(c.name, c.data, nil)
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %.60q, want %q", c.name, got, c.want)
		}
	}
}
