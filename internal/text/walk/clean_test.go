package walk

import (
	"errors"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{ // want "" means refused
		{"a.md", "a.md"},
		{"ab.md", "ab.md"},
		{"docs/a.md", "docs/a.md"},
		{"docs//a.md", "docs/a.md"},
		{"./docs/a.md", "docs/a.md"},
		{"docs/./a.md", "docs/a.md"},
		{"docs/x/../a.md", "docs/a.md"},
		{"docs/.hidden.md", "docs/.hidden.md"},
		{"x/..md", "x/..md"},
		{"...", "..."},
		{".cuedeck/cards/xyz789.md", ".cuedeck/cards/xyz789.md"},
		{"docs/my file.md", "docs/my file.md"},
		{"docs/ü.md", "docs/ü.md"},
		{"日本/語.md", "日本/語.md"},
		{"docs/x.MD", "docs/x.MD"},
		{"docs/a", "docs/a"},
		{"%2e%2e/a.md", "%2e%2e/a.md"},
		{"docs/%2e%2e/%2e%2e/a.md", "docs/%2e%2e/%2e%2e/a.md"},
		{"~/a.md", "~/a.md"},
		{"$HOME/a.md", "$HOME/a.md"},
		{"a#b.md", "a#b.md"},
		{"docs/ a.md", "docs/ a.md"},
		{"FAQ:-Install.md", "FAQ:-Install.md"},
		{"std::vec.md", "std::vec.md"},
		{"con.md", "con.md"},
		{strings.Repeat("a/", 2000) + "b.md", strings.Repeat("a/", 2000) + "b.md"},

		{"", ""},
		{".", ""},
		{"./", ""},
		{"..", ""},
		{"../a.md", ""},
		{"docs/../../x.md", ""},
		{"docs/../../docs/x.md", ""},
		{"a/../../b/../../c.md", ""},
		{"/etc/x.md", ""},
		{"/docs/a.md", ""},
		{"/", ""},
		{"//server/share/x.md", ""},
		{`\\server\share\x.md`, ""},
		{`docs\a.md`, ""},
		{`..\..\x.md`, ""},
		{"C:/x.md", ""},
		{"c:x.md", ""},
		{"./C:/x.md", ""},
		{`C:\x.md`, ""},
		{"a.md:stream", ""},
		{"docs/a.md::$DATA", ""},
		{"a.md:s.txt", ""},
		{"a.md\x00.txt", ""},
		{"a\nb.md", ""},
		{"a\tb.md", ""},
		{"a\x7f.md", ""},
		{"a\u0085b.md", ""},
		{" x.md", ""},
		{"x.md ", ""},
		{"\u00a0x.md", ""},
		{"./ x.md", ""},
		{" ", ""},
		{"docs/", ""},
		{"docs/a.md/", ""},
		{"a\xff.md", ""},
		{strings.Repeat("a", 4097), ""},
	} {
		got, err := Clean(c.in)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("Clean(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
		if err != nil && !errors.Is(err, ErrPath) {
			t.Errorf("Clean(%q): error %v does not wrap ErrPath", c.in, err)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a/../b", "./C:/x", "a.md:s", "/x", "..", "a//b/./c", " a", "a/ /b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := Clean(p)
		if err != nil {
			if got != "" {
				t.Errorf("Clean(%q) = %q with error %v", p, got, err)
			}
			return
		}
		if again, err := Clean(got); err != nil || again != got {
			t.Errorf("Clean(%q) = %q, whose own is %q, %v", p, got, again, err)
		}
		for _, e := range strings.Split(got, "/") {
			if e == "" || e == "." || e == ".." {
				t.Errorf("Clean(%q) = %q", p, got)
			}
		}
	})
}
