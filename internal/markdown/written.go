package markdown

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ReadFrontMatter reads the front matter of a Markdown file and nothing else,
// with every scalar as it is written: 012345 stays "012345" where YAML
// would make a number of it. Fields then hold strings, nil for null, lists of
// these, and an empty map for anything nested deeper. It is what Parse finds but
// for these values, at a fraction of the time.
func ReadFrontMatter(src []byte) FrontMatter {
	body := bomLen(src)
	text := src
	if bytes.IndexByte(src, '\r') >= 0 || body > 0 {
		text = normalise(src, body)
	}
	from, to, end, ok := fences(text, body)
	if !ok {
		return FrontMatter{}
	}
	fm := FrontMatter{Start: body, End: end}
	var o *Options
	if to-from > o.maxFrontMatter() {
		if !looksLikeMapping(text[from:to]) {
			return FrontMatter{}
		}
		fm.Err = fmt.Errorf("front matter of %d bytes, want at most %d", to-from, o.maxFrontMatter())
		return fm
	}
	block := unixLines(src[from:to])
	fields, err := readWritten(block)
	switch {
	case err == nil && fields != nil:
		fm.Fields = fields
	case err == nil || !looksLikeMapping(block):
		return FrontMatter{}
	default:
		fm.Err = err
	}
	return fm
}

func unixLines(block []byte) []byte {
	if bytes.IndexByte(block, '\r') < 0 {
		return block
	}
	block = bytes.ReplaceAll(block, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(block, []byte("\r"), []byte("\n"))
}

// readWritten returns the mapping of a block with scalars as written, nil when
// it is something else.
func readWritten(block []byte) (map[string]any, error) {
	if fields, ok := readSimple(block); ok {
		return fields, nil
	}
	return readTree(block)
}

// readTree is readWritten by the YAML library's syntax tree.
func readTree(block []byte) (fields map[string]any, err error) {
	// Whatever the whole decoder refuses is refused here, too.
	whole, err := parseYAML(block)
	if err != nil || whole == nil || len(whole) == 0 {
		return whole, err
	}
	defer func() {
		if r := recover(); r != nil {
			fields, err = nil, fmt.Errorf("front matter: %v", r)
		}
	}()
	file, err := parser.ParseBytes(block, 0)
	if err != nil {
		return nil, fmt.Errorf("front matter: %s", firstLine(err.Error())) // unreachable: parseYAML parsed it
	}
	fields = make(map[string]any, len(whole))
	for key := range whole {
		fields[key] = map[string]any{} // what the tree does not show as a plain pair: merge keys
	}
	if len(file.Docs) == 0 {
		return fields, nil
	}
	switch n := file.Docs[0].Body.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			fields[keyText(v)] = asWritten(v.Value)
		}
	case *ast.MappingValueNode:
		fields[keyText(n)] = asWritten(n.Value)
	}
	for key := range fields {
		if _, ok := whole[key]; !ok {
			delete(fields, key)
		}
	}
	return fields, nil
}

func keyText(v *ast.MappingValueNode) string { return v.Key.GetToken().Value }

func asWritten(n ast.Node) any {
	switch n := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = asWritten(v)
		}
		return list
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value)
	}
	return map[string]any{}
}

// readSimple reads the front matter that nearly every file has, "key: scalar",
// "key: [a, b]" and lists of one element a line, a hundred times as fast as the
// library. ok is false for anything else, which is then for the library: a
// test holds the two against each other.
func readSimple(block []byte) (fields map[string]any, ok bool) {
	fields = map[string]any{}
	open := "" // the key whose list may follow
	for line := range bytes.Lines(block) {
		text := strings.TrimRight(string(line), " \n")
		if strings.ContainsAny(text, "\t\r") {
			return nil, false
		}
		if text == "" {
			continue
		}
		if item, found := strings.CutPrefix(strings.TrimLeft(text, " "), "- "); found && open != "" {
			list, isList := fields[open].([]any)
			if !isList && fields[open] != nil {
				return nil, false
			}
			value, simple := simpleScalar(strings.TrimLeft(item, " "))
			// Lists at more than one depth are for the library.
			if !simple || isList && listIndent(text) != listIndent(fields["\x00"+open].(string)) {
				return nil, false
			}
			fields["\x00"+open] = text
			fields[open] = append(list, value)
			continue
		}
		key, rest, found := strings.Cut(text, ":")
		if !found || !isKey(key) || rest != "" && rest[0] != ' ' {
			return nil, false
		}
		if _, twice := fields[key]; twice {
			return nil, false
		}
		rest = strings.TrimLeft(rest, " ")
		open = ""
		switch {
		case rest == "":
			fields[key], open = nil, key
		case rest[0] == '[':
			list, simple := simpleList(rest)
			if !simple {
				return nil, false
			}
			fields[key] = list
		default:
			value, simple := simpleScalar(rest)
			if !simple {
				return nil, false
			}
			fields[key] = value
		}
	}
	for key := range fields {
		if key[0] == 0 {
			delete(fields, key)
		}
	}
	return fields, true
}

func listIndent(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

func isKey(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= s[i] && s[i] <= '9' || s[i] == '_' || s[i] == '-')) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return false
	}
	return true
}

func simpleList(s string) ([]any, bool) {
	if len(s) < 2 || s[len(s)-1] != ']' {
		return nil, false
	}
	list := []any{}
	s = strings.Trim(s[1:len(s)-1], " ")
	if s == "" {
		return list, true
	}
	if strings.ContainsAny(s, "[]{}") {
		return nil, false
	}
	for part := range strings.SplitSeq(s, ",") {
		value, ok := simpleScalar(strings.Trim(part, " "))
		if !ok {
			return nil, false
		}
		list = append(list, value)
	}
	return list, true
}

// simpleScalar reads a scalar without escapes, comments or anything that could
// be a number, a null or a structure.
func simpleScalar(s string) (string, bool) {
	if s == "" {
		return "", false
	}
	if s[0] == '"' {
		if len(s) < 2 || s[len(s)-1] != '"' || strings.ContainsAny(s[1:len(s)-1], `"\`) {
			return "", false
		}
		s = s[1 : len(s)-1]
		return s, simpleBytes(s)
	}
	first := s[0] | 0x20
	if !('a' <= first && first <= 'z') && !isDate(s) {
		return "", false
	}
	switch strings.ToLower(s) {
	case "null":
		return "", false
	}
	if strings.ContainsAny(s, "#,[]{}\"'&*!|>%@`") || strings.Contains(s, ": ") || s[len(s)-1] == ':' || strings.Contains(s, " -") {
		return "", false
	}
	return s, simpleBytes(s)
}

// simpleBytes refuses what a YAML reader may object to or change.
func simpleBytes(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isDate reports whether s begins as "2026-01-02" does, which is no number.
func isDate(s string) bool {
	if len(s) < 10 || len(s) > 35 || s[4] != '-' || s[7] != '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('0' <= c && c <= '9') && !strings.ContainsRune("-:TtZz+.", rune(c)) {
			return false
		}
	}
	return true
}
