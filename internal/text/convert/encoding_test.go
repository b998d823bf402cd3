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
