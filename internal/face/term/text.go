package term

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Cut shortens a line to width runes and removes its control characters.
func Cut(line string, width int) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, line)
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// OneLine returns text with single spaces instead of white space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Plain returns untrusted text on one line of at most 1,000 runes, without control characters.
func Plain(s string) string { return Cut(OneLine(s), 1000) }

// plainLines returns untrusted text without control characters except line ends.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Cut(strings.TrimSuffix(l, "\r"), 1<<20)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line between words into lines of at most width runes. A longer word has its own
// line.
func wrap(line string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(line) {
		if n := len(lines) - 1; n >= 0 && utf8.RuneCountInString(lines[n])+1+utf8.RuneCountInString(word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// Time returns a time in the local zone.
func Time(t time.Time) string { return t.Local().Format(time.DateTime) }
