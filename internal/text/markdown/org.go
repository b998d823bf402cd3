package markdown

import (
	"bytes"
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
			title := orgTitle().ReplaceAllString(collapse(string(text[:runeStart(text, 2*MaxHeading)])), "$1")
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
			if m := orgID().FindSubmatch(bytes.TrimSpace(line)); m != nil {
				out.mark(mark{name: strings.Trim(string(m[1])+string(m[2]), "<> "), at: ln.start, end: ln.end})
			}
		}
	}
	return out
}

var (
	// orgTitle matches a headline; its group is without keyword, priority and tags.
	orgTitle = pattern(`^(?:(?:TODO|DONE|NEXT|WAITING|WAIT|HOLD|CANCELED|CANCELLED|STARTED) )?(?:\[#\S*\] )?(.+?)(?: :\S+:)?$`)
	orgID    = pattern(`(?i)^(?::(?:CUSTOM_)?ID:(.+)|<<(.*)>>)$`)
)
