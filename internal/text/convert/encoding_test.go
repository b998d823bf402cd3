package convert

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// TestEncodings reads text in the encoding that a file declares.
func TestEncodings(t *testing.T) {
	page := func(head string) string { return head + "<p>%s</p>" }
	for _, test := range []struct{ name, file, label, text string }{
		{"a.html", page(`<script charset="utf-8"></script><META http-equiv=Content-Type content="text/html; charset=windows-1251">`), "windows-1251", "Аренда квартир"},
		{"a.html", page(`<meta charset='Shift_JIS'>`), "shift_jis", "日本語の文書"},
		{"a.html", page(`<meta charset="iso-2022-jp">`), "iso-2022-jp", "日本語の文書"},
		{"a.html", page(`<meta charset="iso-8859-1">`), "utf-8", "日本語 with a wrong label"},
		{"a.html", page(`<meta charset="unknown">`), "windows-1252", "“Grüße”"},
		{"a.html", page(""), "windows-1252", "“Grüße”"},
		{"a.xhtml", page(`<?xml version="1.0" encoding="EUC-JP"?>`), "euc-jp", "日本語の文書"},
		{"a.1", ".\\\" -*- coding: ISO-8859-2 -*-\n.TH A 1\n%s\n", "iso-8859-2", "žluťoučký kůň"},
		{"a.eml", "Content-Type: text/plain; charset=koi8-r\n\n%s\n", "koi8-r", "Договор аренды"},
		{"a.eml", "Content-Type: text/html; charset=GB2312\n\n<p>%s</p>\n", "gbk", "技术文档"},
		{"a.eml", "Subject: =?windows-1251?Q?=C4=EE=E3=EE=E2=EE=F0?=\n\nx\n", "utf-8", "Договор"},
	} {
		e, err := htmlindex.Get(test.label)
		if err != nil {
			t.Fatal(err)
		}
		text, err := e.NewEncoder().String(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := toMarkdown(test.name, []byte(strings.Replace(test.file, "%s", text, 1)))
		if err != nil || !strings.Contains(string(got), test.text) {
			t.Errorf("%s in %s: %q, %v, want %q", test.name, test.label, got, err, test.text)
		}
	}
}

// TestTwoEncodings reads a page to which two programs added text.
func TestTwoEncodings(t *testing.T) {
	for _, head := range []string{"", `<meta charset="utf-8">`, `<meta charset="iso-8859-1">`} {
		got, err := toMarkdown("a.html", []byte(head+"<p>R\xe9mi and José</p>"))
		if err != nil || !strings.Contains(string(got), "Rémi and José") {
			t.Errorf("%s: %q, %v", head, got, err)
		}
	}
}

// TestUTF8 decodes text files, and keeps those that are no text or of an unknown encoding.
func TestUTF8(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"empty", "", ""},
		{"UTF-8 with a byte order mark", "\ufeffé\n", "\ufeffé\n"},
		{"UTF-8 with a control character", "é\x01\n", "é\x01\n"},
		{"Windows-1252", "Gr\xfc\xdfe \x93caf\xe9\x94\r\n\f\x1b\x1a", "Grüße “café”\r\n\f\x1b\x1a"},
		{"two encodings", "R\xe9mi\nJosé 東京\n", "Rémi\nJosé 東京\n"},
		{"UTF-16, little end first", "\xff\xfe\xe9\x00\r\x00\n\x00", "é\r\n"},
		{"UTF-16, big end first", "\xfe\xff\x67\x71\x4e\xac\x00\n", "東京\n"},
		{"declared for Python", "#!/usr/bin/python\n# coding: koi8-r\n\xf0\xd2\xc9\n", "#!/usr/bin/python\n# coding: koi8-r\nПри\n"},
		{"declared for Emacs", "% -*- coding: iso-8859-2 -*-\n\xbelut\xfd\n", "% -*- coding: iso-8859-2 -*-\nžlutý\n"},
		{"declared for Vim", "; vim: set fileencoding=euc-jp :\n\xc5\xec\xb5\xfe\n", "; vim: set fileencoding=euc-jp :\n東京\n"},
		{"declared wrongly", "# coding: utf-8\n\xe9\n", "# coding: utf-8\né\n"},
		{"declared by an unknown name", "# coding: latin-9-unix\n\xe9\n", "# coding: latin-9-unix\né\n"},
		{"declared too late", "a\nb\n# coding: koi8-r\n\xe9\n", "a\nb\n# coding: koi8-r\né\n"},
		{"a line of letters", strings.Repeat("\xaf", 9) + "\n", strings.Repeat("¯", 9) + "\n"},
		{"a name in KOI8-R", strings.Repeat("text ", 20) + "\xf0\xd2\xc9", strings.Repeat("text ", 20) + "ðÒÉ"},
	} {
		if got := string(UTF8([]byte(test.data))); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for name, data := range map[string]string{
		"KOI8-R": "\xf0\xd2\xc9\xd7\xc5\xd4\n", "EUC-JP": "\xc5\xec\xb5\xfe\xa4\xcb\n", "a control character": "\xe9\x01", "a late NUL": strings.Repeat("\xe9 ", 9000) + "\x00",
		"UTF-16 with a NUL": "\xff\xfea\x00\x00\x00", "UTF-16 without a mark": "\xe9\x00a\x00", "half of UTF-16": "\xff\xfe\x00\xd8\x00\xd8",
	} {
		if got := string(UTF8([]byte(data))); got != data {
			t.Errorf("%s: %q, want %q", name, got, data)
		}
	}
}
