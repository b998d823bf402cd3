package code

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Declares reports whether a line of the code declares name, by the shape of the line
// alone: a field, an enumerator, a key of an object, a constant or a variable, for which
// Outline has no symbol. It knows no language, so it takes some uses for declarations,
// such as a variable on a line of its own in a call.
func Declares(text []byte, name string) bool {
	for at := 0; name != ""; {
		n := bytes.Index(text[at:], []byte(name))
		if n < 0 {
			return false
		}
		start := at + n
		end := start + len(name)
		at = end
		if start > 0 && isNameByte(text[start-1]) || end < len(text) && isNameByte(text[end]) {
			continue
		}
		before, after := text[bytes.LastIndexByte(text[:start], '\n')+1:start], text[end:lineEnd(text, end)]
		if declares(string(before), string(bytes.TrimRight(after, " \t\r"))) {
			return true
		}
	}
	return false
}

func isNameByte(c byte) bool { return isWordByte(c) || c >= 0x80 }

// uses are words before a name that is used, and first words of statements that declare
// nothing.
var uses = strings.Fields("and as assert await break case catch continue default delete do echo else except extends for from " +
	"goto if implements import in include instanceof is new not of or package print raise require return super throw throws " +
	"typeof unless until use using when where while with yield")

// declaring are first words of declarations.
var declaring = strings.Fields("#define class const def enum fn func function interface let module namespace private protected " +
	"public static struct trait type typedef union val var")

var (
	// defining is what precedes a name that a call defines: define('NAME', 1).
	defining = regexp.MustCompile(`(?i)^[^#/*]*\bdefine\w*\(.*["']$`)
	// field is what follows the name of a field in Go, or of a column in SQL.
	field   = regexp.MustCompile("^[*\\[\\]\\w.]+,?(\\s+(`|//).*)?$")
	letters = regexp.MustCompile(`[A-Za-z]`)
	// visibility are modifiers of Rust with parentheses.
	visibility = regexp.MustCompile(`^pub\([a-z ]+\)`)
)

// declares reports whether what is before and after a name on its line makes it the name
// of a declaration.
func declares(before, after string) bool {
	glued := before != "" && strings.IndexByte(" \t*&$", before[len(before)-1]) < 0
	before = visibility.ReplaceAllString(strings.TrimSpace(before), "")
	value := strings.TrimLeft(after, " \t")
	assigned := strings.HasPrefix(value, "=") && !strings.HasPrefix(value, "==") && !strings.HasPrefix(value, "=>")
	typed := strings.HasPrefix(value, ":") && !strings.HasPrefix(value, "::")
	opens := strings.HasPrefix(after, "(")
	switch {
	case before == "":
		return assigned || typed || value == "" || value == "," || field.MatchString(value) || strings.HasPrefix(value, "{") || opens && strings.HasSuffix(after, "{")
	case before == "self.", before == "this.":
		return assigned
	case defining.MatchString(before):
		return true
	case glued || strings.ContainsAny(before, "=(){};\"'`") || strings.HasPrefix(before, "//") || strings.HasPrefix(before, "--") ||
		!letters.MatchString(before):
		return false
	}
	words := strings.Fields(before)
	if words[0][0] == '*' || words[0] == "#" || words[0] == "/*" || slices.Contains(uses, words[0]) || slices.Contains(uses, words[len(words)-1]) {
		return false
	}
	if slices.Contains(declaring, words[0]) {
		return true
	}
	return assigned || typed || opens || strings.HasPrefix(value, ";") || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
}
