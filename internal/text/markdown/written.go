package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

func unixLines(block []byte) []byte {
	if bytes.IndexByte(block, '\r') < 0 {
		return block
	}
	block = bytes.ReplaceAll(block, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(block, []byte("\r"), []byte("\n"))
}

// readWritten returns the mapping in a block, with scalars as written. It returns nil for
// other YAML.
func readWritten(block []byte) (map[string]any, error) {
	if err := checkYAML(block); err != nil {
		return nil, err
	}
	if fields, ok := readSimple(block); ok {
		return fields, nil
	}
	return readTree(block)
}

// readTree implements readWritten with the YAML library. It rejects aliases, because
// nested references grow exponentially when expanded and front matter does not need them.
func readTree(block []byte) (fields map[string]any, err error) {
	// Hostile text may make the library panic.
	defer func() {
		if r := recover(); r != nil {
			fields, err = nil, fmt.Errorf("front matter: %v", r)
		}
	}()
	if len(bytes.TrimSpace(block)) == 0 {
		return map[string]any{}, nil
	}
	file, err := parser.ParseBytes(block, 0)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("front matter: %s", text)
	}
	if len(file.Docs) == 0 {
		return nil, nil
	}
	alias := false
	fields, _ = asWritten(file.Docs[0].Body, &alias).(map[string]any)
	if alias {
		return nil, errors.New("front matter: YAML aliases are not supported")
	}
	return fields, nil
}

// asWritten returns the value of a node. It sets *alias if the node contains an alias.
func asWritten(n ast.Node, alias *bool) any {
	switch n := n.(type) {
	case *ast.NullNode, nil:
		return nil
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.TagNode:
		return asWritten(n.Value, alias)
	case *ast.AnchorNode:
		return asWritten(n.Value, alias)
	case *ast.AliasNode:
		*alias = true
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = asWritten(v, alias)
		}
		return list
	case *ast.MappingNode:
		fields := make(map[string]any, len(n.Values))
		for _, v := range n.Values {
			fields[v.Key.GetToken().Value] = asWritten(v.Value, alias)
		}
		return fields
	case *ast.MappingValueNode:
		return map[string]any{n.Key.GetToken().Value: asWritten(n.Value, alias)}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value)
	}
	return map[string]any{}
}

// readSimple reads "key: scalar", "key: [a, b]" and lists with one element per line, a
// hundred times as fast as the library. Nearly all front matter has this form. ok is
// false for anything else.
func readSimple(block []byte) (fields map[string]any, ok bool) {
	fields = map[string]any{}
	open, indent := "", 0 // the key of the current list and the indentation of its items
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
			value, simple := simpleScalar(strings.TrimLeft(item, " "))
			depth := len(text) - len(strings.TrimLeft(text, " "))
			if !simple || isList && depth != indent {
				return nil, false
			}
			indent, fields[open] = depth, append(list, value)
			continue
		}
		key, rest, found := strings.Cut(text, ":")
		if _, twice := fields[key]; twice || !found || !isKey(key) || rest != "" && rest[0] != ' ' {
			return nil, false
		}
		rest = strings.TrimLeft(rest, " ")
		open = ""
		simple := true
		switch {
		case rest == "":
			fields[key], open = nil, key
		case rest[0] == '[':
			fields[key], simple = simpleList(rest)
		default:
			fields[key], simple = simpleScalar(rest)
		}
		if !simple {
			return nil, false
		}
	}
	return fields, true
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// isKey reports whether s is a key of letters, digits, "_", "-" and "." that every YAML
// reader reads as a string.
func isKey(s string) bool {
	return s != "" && isLetter(s[0]) && strings.Trim(s, letters+digits+"_-.") == "" &&
		!slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}, strings.ToLower(s))
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

// simpleScalar reads a scalar of printable ASCII. It rejects escapes, comments and
// anything that could be a number, null, a list or a mapping.
func simpleScalar(s string) (string, bool) {
	if s == "" || strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) >= 0 {
		return "", false
	}
	if s[0] == '"' {
		inner := strings.TrimSuffix(s[1:], `"`)
		return inner, len(inner) == len(s)-2 && !strings.ContainsAny(inner, `"\`)
	}
	return s, (isLetter(s[0]) || isDate(s) || isID(s)) && !strings.EqualFold(s, "null") && s[len(s)-1] != ':' &&
		!strings.ContainsAny(s, "#,[]{}\"'&*!|>%@`") && !strings.Contains(s, ": ") && !strings.Contains(s, " -")
}

// isID reports whether s begins with a digit and has only letters, digits, dashes and
// slashes: "11/04/2016", "54f8c1d2-3b0a". It includes integers, which are returned as
// written.
func isID(s string) bool {
	return strings.IndexByte(digits, s[0]) >= 0 && strings.Trim(s, letters+digits+"-/") == ""
}

// isDate reports whether s has the form of a date or time such as "2026-01-02T15:04:05Z".
func isDate(s string) bool {
	return len(s) >= 10 && len(s) <= 35 && s[4] == '-' && s[7] == '-' && strings.Trim(s, digits+"-:TtZz+.") == ""
}
