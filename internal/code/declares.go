package code

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Declaration is how sure it is that a text declares a name.
type Declaration uint8

// The declarations. One of no declaration is the zero value.
const (
	MayDeclare  Declaration = iota + 1 // an assignment, a key, an element of a list, a local variable
	DoesDeclare                        // with a type, a modifier or a keyword
)

// Declares returns whether a line of the code declares name, by the shape of the line
// alone: a field, an enumerator, a key of an object, a constant or a variable, for which
// Outline has no symbol. It knows no language, so it takes some uses for declarations,
// such as a variable on a line of its own in a call.
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
		before, after := text[bytes.LastIndexByte(text[:start], '\n')+1:start], text[end:lineEnd(text, end)]
		best = max(best, declares(string(before), name, string(bytes.TrimRight(after, " \t\r"))))
	}
	return best
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
	field   = regexp.MustCompile("^[*\\[\\]\\w.]+,?(\\s+`[^`]+`)?(\\s+//.*)?$")
	letters = regexp.MustCompile(`[A-Za-z]`)
	// enumerators are those before another on a line.
	enumerators = regexp.MustCompile(`^(\w+(\s*=\s*\w+)?\s*,\s*)+$`)
	// visibility are modifiers of Rust with parentheses.
	visibility = regexp.MustCompile(`^pub\([a-z ]+\)`)
)

// declares returns whether what is before and after a name on its line makes it the name
// of a declaration.
func declares(before, name, after string) Declaration {
	indented := strings.HasPrefix(before, " ") || strings.HasPrefix(before, "\t")
	glued := before != "" && strings.IndexByte(" \t*&$", before[len(before)-1]) < 0
	before = visibility.ReplaceAllString(strings.TrimSpace(before), "")
	value := strings.TrimLeft(after, " \t")
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
	case before == "", before == "self.", before == "this.":
		return 0
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
	case indented && (first == "let" || first == "var" || first == "const" || first == "auto"): // mostly of a function
		return MayDeclare
	case slices.Contains(declaring, first), assigned, typed, opens, value != "" && strings.IndexByte(";{[", value[0]) >= 0:
		return DoesDeclare
	}
	return 0
}
