package outline

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Declaration states how certainly a text declares a name. The zero value means that it
// does not.
type Declaration uint8

// The levels of certainty.
const (
	MayDeclare  Declaration = iota + 1 // an assignment, a key, an element of a list, a local variable
	DoesDeclare                        // a declaration with a type, a modifier or a keyword
)

// Declares returns how certainly a line of text declares name, judging only by the form of
// the line. It finds names for which Outline has no symbol: a field, an enumerator, a key
// of an object, a constant or a variable. It uses the same rules for all languages, so it
// takes some uses for declarations, such as a variable on its own line in a call.
func Declares(text []byte, name string) Declaration {
	var best Declaration
	for at := 0; name != "" && best < DoesDeclare; {
		n := bytes.Index(text[at:], []byte(name))
		if n < 0 {
			break
		}
		start := at + n
		end := start + len(name)
		at = end
		if start > 0 && isNameByte(text[start-1]) || end < len(text) && isNameByte(text[end]) {
			continue
		}
		before, after := text[bytes.LastIndexByte(text[:start], '\n')+1:start], text[end:LineEnd(text, end)]
		best = max(best, declares(string(before), name, string(bytes.TrimRight(after, " \t\r"))))
	}
	return best
}

func isNameByte(c byte) bool { return isWordByte(c) || c >= 0x80 }

// uses are words that precede the use of a name, or begin a statement that is not a
// declaration.
var uses = strings.Fields("and as assert await break case catch continue default delete do echo else except extends for from " +
	"goto if implements import in include instanceof is new not of or package print raise require return super throw throws " +
	"typeof unless until use using when where while with yield")

// declaring are words that begin a declaration.
var declaring = strings.Fields("#define class const def enum fn func function interface let module namespace private protected " +
	"public static struct trait type typedef union val var")

var (
	// defining matches the text before a name that a call defines: define('NAME', 1).
	defining = regexp.MustCompile(`(?i)^[^#/*]*\bdefine\w*\(.*["']$`)
	// field matches the text after the name of a Go field or an SQL column.
	field   = regexp.MustCompile("^[*\\[\\]\\w.]+,?(\\s+`[^`]+`)?(\\s+//.*)?$")
	letters = regexp.MustCompile(`[A-Za-z]`)
	// enumerators matches the enumerators before another one on the same line.
	enumerators = regexp.MustCompile(`^(\w+(\s*=\s*\w+)?\s*,\s*)+$`)
	// visibility matches a Rust modifier with parentheses.
	visibility = regexp.MustCompile(`^pub\([a-z ]+\)`)
)

// declares returns how certainly a line declares name. before and after are the text on
// both sides of the name.
func declares(before, name, after string) Declaration {
	indented := strings.HasPrefix(before, " ") || strings.HasPrefix(before, "\t")
	glued := before != "" && strings.IndexByte(" \t*&$", before[len(before)-1]) < 0
	before = visibility.ReplaceAllString(strings.TrimSpace(before), "")
	value := strings.TrimLeft(strings.TrimPrefix(after, "?"), " \t") // an optional field has a question mark
	assigned := strings.HasPrefix(value, "=") && !strings.HasPrefix(value, "==") && !strings.HasPrefix(value, "=>")
	typed := strings.HasPrefix(value, ":") && !strings.HasPrefix(value, "::")
	opens := strings.HasPrefix(after, "(")
	capital := 'A' <= name[0] && name[0] <= 'Z'
	switch {
	case before == "" && (opens && strings.HasSuffix(after, "{") || typed && len(value) > 1 && !strings.HasSuffix(value, ",") || field.MatchString(value)):
		return DoesDeclare
	case before == "" && (assigned || typed || value == "" || value == "," || strings.HasPrefix(value, "{") || capital && opens && strings.HasSuffix(value, "),")),
		(before == "self." || before == "this.") && assigned,
		capital && enumerators.MatchString(before) && (assigned || value == "" || value[0] == ','):
		return MayDeclare
	case defining.MatchString(before):
		return DoesDeclare
	case glued || strings.ContainsAny(before, "=(){};\"'`") || strings.HasPrefix(before, "//") || strings.HasPrefix(before, "--") ||
		!letters.MatchString(before):
		return 0
	}
	words := strings.Fields(before)
	first, last := words[0], words[len(words)-1]
	switch {
	case first[0] == '*' || first == "#" || first == "/*" || slices.Contains(uses, first) || slices.Contains(uses, last):
		return 0
	case len(words) > 1 && strings.HasSuffix(last, ":"): // the name is a type
		return 0
	case indented && (first == "let" || first == "var" || first == "const" || first == "auto"): // mostly local variables
		return MayDeclare
	case slices.Contains(declaring, first), assigned, typed, opens, value != "" && strings.IndexByte(";{[", value[0]) >= 0:
		return DoesDeclare
	}
	return 0
}
