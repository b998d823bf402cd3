package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// parseOrg finds the headlines and targets of Org by these rules only:
//
//   - A headline is a line of stars, a blank and text. Its keyword in capitals, such
//     as TODO, its priority "[#A]" and its tags ":a:b:" are no part of the heading.
//   - "#+TITLE:" is a heading at level 1 before the first headline; the headlines are
//     then one level below.
//   - ":CUSTOM_ID:" and ":ID:" in the drawer of a headline name it, as does "<<id>>"
//     on a line of its own.
func parseOrg(src []byte, body int) outline {
	var out outline
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

// orgTitle returns the text of a headline.
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

// orgID returns the id that a line assigns, "" for none.
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
