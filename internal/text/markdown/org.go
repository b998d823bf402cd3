package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// parseOrg finds the headlines and targets of Org. It applies only these rules:
//
//   - A headline is a line of stars, a blank and text. The heading does not include a
//     keyword such as TODO, the priority "[#A]" and the tags ":a:b:".
//   - "#+TITLE:" before the first headline is a heading at level 1. The headlines are
//     then one level deeper.
//   - ":CUSTOM_ID:" and ":ID:" in the drawer of a headline, and "<<id>>" on its own line,
//     name the section that contains them.
func parseOrg(_ string, src []byte, body int) scanned {
	var out scanned
	below := 0
	for _, ln := range splitLines(src, body) {
		line := ln.of(src)
		switch {
		case len(line) == 0:
		case line[0] == '*':
			text := bytes.TrimLeft(line, "*")
			if len(text) == 0 || text[0] != ' ' && text[0] != '\t' {
				continue
			}
			title := orgTitle(string(text[:runeStart(text, 2*MaxHeading)]))
			title = title[:runeStart(title, MaxHeading)]
			if !out.head(heading{level: min(len(line)-len(text)+below, 6), text: title, slug: title, start: ln.start}) {
				return out
			}
		case line[0] == '#' && len(out.heads) == 0:
			key, value, ok := bytes.Cut(line, []byte(":"))
			if title := strings.TrimSpace(string(value[:runeStart(value, MaxHeading)])); ok && title != "" && bytes.EqualFold(key, []byte("#+title")) {
				out.head(heading{level: 1, text: title, slug: title, start: ln.start})
				below = 1
			}
		default:
			if id := orgID(bytes.TrimSpace(line)); id != "" {
				out.mark(mark{name: id, at: ln.start, end: ln.end})
			}
		}
	}
	return out
}

// orgTitle returns the text of a headline without keyword, priority and tags.
func orgTitle(s string) string {
	words := strings.Fields(s)
	if len(words) > 1 && slices.Contains([]string{"TODO", "DONE", "NEXT", "WAITING", "WAIT", "HOLD", "CANCELED", "CANCELLED", "STARTED"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 1 && strings.HasPrefix(words[0], "[#") && strings.HasSuffix(words[0], "]") {
		words = words[1:]
	}
	if n := len(words); n > 1 && len(words[n-1]) > 2 && strings.HasPrefix(words[n-1], ":") && strings.HasSuffix(words[n-1], ":") {
		words = words[:n-1]
	}
	return strings.Join(words, " ")
}

// orgID returns the id that a line declares, "" for none.
func orgID(line []byte) string {
	for _, key := range []string{":CUSTOM_ID:", ":ID:"} {
		if len(line) > len(key) && strings.EqualFold(string(line[:len(key)]), key) {
			return strings.TrimSpace(string(line[len(key):]))
		}
	}
	if bytes.HasPrefix(line, []byte("<<")) && bytes.HasSuffix(line, []byte(">>")) {
		return strings.Trim(string(line), "<>")
	}
	return ""
}
