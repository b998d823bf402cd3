package markdown

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseRST finds the section titles and labels of reStructuredText. It applies only
// these rules:
//
//   - A title is a line that is not indented and not blank, whose next line is an
//     adornment: a repeated ASCII punctuation character, at least two, and at least
//     four or as many as the title has characters. The line before it is blank, a
//     label or comment (".. "), or an overline equal to the adornment.
//   - An overlined title may be indented.
//   - Levels follow the order in which the styles (character, overlined or not)
//     first appear. The seventh and later styles have level 6.
//   - ".. _label:" names the title that follows, or otherwise the section that contains
//     it.
//   - The object of a directive that describes one, such as
//     ".. py:function:: json.dumps(obj)" or ".. option:: --force", names the section that
//     contains the directive.
//
// Literal blocks need no special case, because titles are not indented.
func parseRST(_ string, src []byte, body int) scanned {
	var out scanned
	levels := map[string]int{}
	lines := splitLines(src, body)
	for i := 0; i < len(lines); i++ {
		line := lines[i].of(src)
		if name, ok := rstLabel(line); ok {
			out.mark(mark{name: name, at: lines[i].start, next: true, end: lines[i].end})
			continue
		}
		if name := rstObject(line); name != "" {
			out.mark(mark{name: name, at: lines[i].start, end: lines[i].end})
		}
		title, style := i, ""
		switch {
		case i+2 < len(lines) && isAdornment(line) && beforeTitle(src, lines, i) &&
			bytes.Equal(line, lines[i+2].of(src)) && len(line) >= 3 && !blank(lines[i+1].of(src)) &&
			!isAdornment(lines[i+1].of(src)):
			title, style = i+1, string(line[:1])+"over"
		case i+1 < len(lines) && !blank(line) && !isAdornment(line) && line[0] != ' ' && line[0] != '\t' &&
			beforeTitle(src, lines, i) && isAdornment(lines[i+1].of(src)) &&
			longEnough(lines[i+1].of(src), line):
			style = string(lines[i+1].of(src)[:1])
		default:
			continue
		}
		level, seen := levels[style]
		if !seen {
			level = min(len(levels)+1, 6)
			levels[style] = level
		}
		raw := bytes.TrimSpace(lines[title].of(src))
		text := string(appendRSTInline(nil, raw[:runeStart(raw, MaxHeading)]))
		if !out.head(heading{level: level, text: text, slug: text, start: lines[i].start}) {
			break
		}
		i = title + 1
	}
	return out
}

func (s span) of(src []byte) []byte {
	return bytes.TrimRight(src[s.start:s.end], " \t")
}

// splitLines returns the lines of src[body:], without their line breaks.
func splitLines(src []byte, body int) []span {
	out := make([]span, 0, bytes.Count(src[body:], []byte{'\n'})+1)
	for at := body; at < len(src); {
		line, next := lineAt(src, at)
		out = append(out, span{at, at + len(line)})
		at = next
	}
	return out
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// beforeTitle reports whether a title may begin at line i.
func beforeTitle(src []byte, lines []span, i int) bool {
	if i == 0 {
		return true
	}
	before := lines[i-1].of(src)
	return blank(before) || bytes.HasPrefix(before, []byte(".. ")) || bytes.HasPrefix(before, []byte("__ "))
}

// isAdornment reports whether a line consists of one repeated punctuation character.
func isAdornment(line []byte) bool {
	if len(line) < 2 || line[0] <= ' ' || line[0] >= 0x7f || isLetter(line[0]) || '0' <= line[0] && line[0] <= '9' {
		return false
	}
	// ".." and "::" alone are a comment and a literal block.
	return len(bytes.Trim(line, string(line[:1]))) == 0 && (len(line) > 2 || line[0] != '.' && line[0] != ':')
}

func longEnough(adornment, title []byte) bool {
	return len(adornment) >= 4 || len(adornment) >= utf8.RuneCount(title)
}

func rstLabel(line []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(".. _"))
	name, closed := strings.CutSuffix(string(rest), ":")
	name = strings.Trim(name, "`")
	return name, ok && closed && name != "" && name != "_" && !strings.Contains(name, ": ")
}

// rstObjects are the Sphinx directives that describe an object, without their domain.
var rstObjects = []string{
	"function", "method", "class", "exception", "data", "attribute", "module", "decorator", "staticmethod", "classmethod",
	"property", "type", "macro", "member", "struct", "enum", "enumerator", "var", "option", "cmdoption", "program", "envvar",
	"confval", "setting", "describe", "object", "directive", "role", "opcode", "pdbcommand",
}

// withoutDomain returns the name of a directive without its domain, such as "py:".
func withoutDomain(directive string) string {
	return directive[strings.IndexByte(directive, ':')+1:]
}

// rstObject returns the name of the object that a directive describes, such as
// "json.dumps" for ".. function:: json.dumps(obj)". It returns "" for any other line.
func rstObject(line []byte) string {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte(".. "))
	if !ok {
		return ""
	}
	directive, object, ok := strings.Cut(string(rest[:min(len(rest), 2*MaxHeading)]), ":: ")
	if !ok || !slices.Contains(rstObjects, withoutDomain(directive)) {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimSpace(object), "(")
	name, _, _ = strings.Cut(name, ",")
	if words := strings.Fields(name); len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name = words[0]
	} else if len(words) > 0 {
		name = words[len(words)-1] // in C and C++ the type comes first
	}
	return strings.TrimLeft(name, "*&")
}
