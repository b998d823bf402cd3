package bpe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a class of runes in the pattern of cl100k_base.
type class byte

const (
	other   class = iota
	letter        // \p{L}
	number        // \p{N}
	newline       // \r or \n
	space         // any other \s
)

// classAt returns the class and size of the first rune of text; size 0 at the end.
func classAt(text string) (class, int) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case 'a' <= r|0x20 && r|0x20 <= 'z' || r > 0x7f && unicode.IsLetter(r):
		return letter, size
	case r == '\r' || r == '\n':
		return newline, size
	case unicode.IsNumber(r):
		return number, size
	case unicode.IsSpace(r):
		return space, size
	}
	return other, size
}

// skip returns the size of the run of class c at the start of text, at most n runes.
func skip(text string, c class, n int) int {
	end := 0
	for range n {
		got, size := classAt(text[end:])
		if size == 0 || got != c {
			break
		}
		end += size
	}
	return end
}

// nextPiece returns the size of the first word of text, which must be valid UTF-8 and not
// empty. A word is the first match of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	|[^\r\n\p{L}\p{N}]?\p{L}+
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+
//	|\s+(?!\S)
//	|\s+
func nextPiece(text string) int {
	first, size := classAt(text)
	switch first {
	case letter:
		return skip(text, letter, len(text))
	case number:
		return skip(text, number, 3)
	case newline:
		return spaceRun(text)
	}
	if text[0] == '\'' {
		for _, ending := range []string{"s", "t", "m", "d", "re", "ve", "ll"} {
			if n := 1 + len(ending); len(text) >= n && strings.EqualFold(text[1:n], ending) {
				return n
			}
		}
	}
	if n := skip(text[size:], letter, len(text)); n > 0 {
		return size + n
	}
	begin := 0
	if text[0] == ' ' {
		begin = 1
	}
	if n := skip(text[begin:], other, len(text)); n > 0 {
		return begin + n + skip(text[begin+n:], newline, len(text))
	}
	return spaceRun(text)
}

// spaceRun matches the last three alternatives for white space: the run up to its last
// newline; otherwise the run without its last rune, which begins the next word; otherwise
// that single rune.
func spaceRun(text string) int {
	end, afterNewline, lastRune := 0, 0, 0
	for {
		c, size := classAt(text[end:])
		if size == 0 || c != newline && c != space {
			break
		}
		lastRune = end
		end += size
		if c == newline {
			afterNewline = end
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case end == len(text) || lastRune == 0:
		return end
	}
	return lastRune
}
