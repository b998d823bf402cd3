package bpe

import (
	"unicode"
	"unicode/utf8"
)

// class is what the pattern of cl100k_base tells apart.
type class byte

const (
	other   class = iota
	letter        // \p{L}
	number        // \p{N}
	newline       // \r or \n
	space         // any other \s
)

// asciiClass holds the classes of single bytes.
var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range table {
		table[r] = classOf(rune(r))
	}
	return table
}()

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// classAt returns the class and size of the rune that text[i:] begins with;
// size 0 at the end.
func classAt(text string, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return classOf(r), size
}

// skip returns the end of the run of class c that begins at text[i:].
func skip(text string, i int, c class) int {
	for {
		got, size := classAt(text, i)
		if size == 0 || got != c {
			return i
		}
		i += size
	}
}

// nextPiece returns the size of the piece that text, valid UTF-8 and not
// empty, begins with: the first match of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	|[^\r\n\p{L}\p{N}]?\p{L}+
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+
//	|\s+(?!\S)
//	|\s+
//
// Every text begins with a match.
func nextPiece(text string) int {
	first, size := classAt(text, 0)
	switch first {
	case letter:
		return skip(text, size, letter)
	case number:
		end := size
		for range 2 {
			c, n := classAt(text, end)
			if n == 0 || c != number {
				break
			}
			end += n
		}
		return end
	case newline:
		return spaceRun(text)
	}
	if n := contraction(text); n > 0 {
		return n
	}
	// One space or sign may precede a word.
	if end := skip(text, size, letter); end > size {
		return end
	}
	begin := 0
	if text[0] == ' ' {
		begin = 1
	}
	if end := skip(text, begin, other); end > begin {
		return skip(text, end, newline)
	}
	return spaceRun(text)
}

// contraction returns the size of the English ending, such as 's or 'LL, that
// text begins with, or 0.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch [2]byte{text[1] | 0x20, text[2] | 0x20} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}

// spaceRun matches the last three alternatives on white space: up to the last
// newline of the run; else the run without its last rune, which goes with the
// word that follows; else that one rune.
func spaceRun(text string) int {
	end, lastNewline, lastRune := 0, 0, 0
	for {
		c, size := classAt(text, end)
		if size == 0 || c != newline && c != space {
			break
		}
		lastRune = end
		end += size
		if c == newline {
			lastNewline = end
		}
	}
	switch {
	case lastNewline > 0:
		return lastNewline
	case end == len(text) || lastRune == 0:
		return end
	}
	return lastRune
}
