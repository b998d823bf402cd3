package markdown

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cairn/internal/text/outline"
)

// maxKeyDepth is the maximum depth of a key that begins a section.
const maxKeyDepth = 3

// key is a key of a configuration file.
type key struct {
	path  []string
	start int  // of its line
	block bool // its value spans lines of its own
}

// parseKeys makes sections of the keys of JSON, YAML and TOML. It applies only these
// rules:
//
//   - A key begins a section if it is enclosed only by maps, at most two, and its value
//     spans lines of its own. Other keys are text of the section of their map, but the
//     first key after a section in the same map begins one.
//   - A TOML table begins a section, named as in its brackets.
//   - The path of a key, joined with dots, is its anchor: "spec.template".
//   - In an OpenAPI description, the heading of an operation is its method, path and
//     summary, and its anchor is the operationId.
//
// The scanners read lines and brackets and do not check the syntax.
func parseKeys(name string, src []byte, body int) scanned {
	var keys []key
	switch outline.Ext(name) {
	case ".toml":
		keys = tomlKeys(src, body)
	case ".json":
		keys = jsonKeys(src, body)
	default:
		keys = yamlKeys(src, body)
	}
	operations := slices.ContainsFunc(keys, func(k key) bool {
		return len(k.path) == 1 && (k.path[0] == "openapi" || k.path[0] == "swagger")
	})
	var out scanned
	// The depth, start and block of the last key that began a section.
	deepest, last, block := 0, -1, false
	for i, k := range keys {
		depth := len(k.path)
		if k.start <= last || !k.block && (depth > deepest || depth == deepest && !block) {
			continue
		}
		h := heading{level: depth, text: k.path[depth-1], id: strings.Join(k.path, "."), start: k.start}
		if operations && depth == 3 && k.path[0] == "paths" {
			end := len(src)
			if i+1 < len(keys) {
				end = keys[i+1].start
			}
			h.text, h.id = operation(k.path, src[k.start:max(end, k.start)])
		}
		h.text = strings.ToValidUTF8(h.text[:runeStart(h.text, MaxHeading)], "\ufffd")
		if len(h.id) > MaxHeading {
			h.id = ""
			h.slug = h.text
		}
		if !out.head(h) {
			break
		}
		deepest, last, block = depth, k.start, k.block
	}
	return out
}

// pattern returns a function that compiles an expression when it is first called.
func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

var operationField = pattern(`(?m)^\s*"?(summary|operationId)"?\s*:\s*["']?(.*?)["']?,?\s*$`)

// operation returns the heading and the id of an OpenAPI operation.
func operation(path []string, src []byte) (text, id string) {
	text = strings.ToUpper(path[2]) + " " + path[1]
	id = strings.Join(path, ".")
	for _, m := range operationField().FindAllSubmatch(src[:min(len(src), 4<<10)], 8) {
		switch value := string(m[2]); {
		case value == "":
		case string(m[1]) == "summary" && !strings.Contains(text, ": "):
			text += ": " + value
		case string(m[1]) == "operationId" && !strings.ContainsAny(value, " \t"):
			id = value
		}
	}
	return text, id
}

var yamlKey = pattern(`^( *)("[^"]*"|'[^']*'|[^\s#\-\[{"'&*!|>%@][^#:]*?|-[^\s#:][^#:]*?)\s*:(\s+(.*))?$`)

// yamlKeys returns the keys that only maps enclose, up to maxKeyDepth.
func yamlKeys(src []byte, body int) []key {
	var keys []key
	var indents []int // of the enclosing maps
	var path []string
	text := -1 // the indent of a key whose value is a block scalar, -1 for none
	list := -1 // the indent of a list, -1 for none
	lines := splitLines(src, body)
	for i, ln := range lines {
		line := ln.of(src)
		trimmed := bytes.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		if len(trimmed) == 0 || trimmed[0] == '#' || len(line) > maxTag {
			continue
		}
		if text >= 0 && indent > text {
			continue
		}
		text = -1
		if list >= 0 && (indent > list || indent == list && trimmed[0] == '-') {
			continue
		}
		list = -1
		if trimmed[0] == '-' && (len(trimmed) == 1 || trimmed[1] == ' ') {
			list = indent
			continue
		}
		m := yamlKey().FindSubmatch(line)
		if m == nil {
			continue
		}
		for n := len(indents); n > 0 && indents[n-1] >= indent; n-- {
			indents, path = indents[:n-1], path[:n-1]
		}
		indents = append(indents, indent)
		path = append(path, strings.Trim(string(m[2]), `"'`))
		value := bytes.TrimSpace(m[4])
		if len(value) > 0 && (value[0] == '|' || value[0] == '>') {
			text = indent
		}
		if len(path) <= maxKeyDepth && len(keys) < maxHeadings {
			below, item := nextYAML(src, lines[i+1:])
			keys = append(keys, key{slices.Clone(path), ln.start, below > indent || below == indent && len(value) == 0 && text < 0 && item})
		}
	}
	return keys
}

// nextYAML returns the indent of the next line with text, -1 if there is none, and
// whether the line is a list item.
func nextYAML(src []byte, lines []span) (indent int, item bool) {
	for _, ln := range lines[:min(len(lines), 50)] {
		line := ln.of(src)
		if trimmed := bytes.TrimLeft(line, " "); len(trimmed) > 0 && trimmed[0] != '#' {
			return len(line) - len(trimmed), trimmed[0] == '-'
		}
	}
	return -1, false
}

// tomlKeys returns the tables as keys.
func tomlKeys(src []byte, body int) []key {
	var keys []key
	quotes := "" // that close the open multi-line string, if any
	for _, ln := range splitLines(src, body) {
		line := bytes.TrimSpace(ln.of(src))
		if quotes != "" {
			if bytes.Contains(line, []byte(quotes)) {
				quotes = ""
			}
			continue
		}
		for _, q := range []string{`"""`, `'''`} {
			if bytes.Count(line, []byte(q)) == 1 {
				quotes = q
			}
		}
		if len(line) < 3 || line[0] != '[' || len(line) > maxTag || len(keys) >= maxHeadings {
			continue
		}
		end := bytes.LastIndexByte(line, ']')
		if comment := bytes.Index(line, []byte(" #")); comment > 0 {
			end = bytes.LastIndexByte(line[:comment], ']')
		}
		if end < 0 || bytes.Contains(line[:end], []byte(",")) {
			continue // an array
		}
		if table := strings.Trim(string(line[:end]), "[] "); table != "" {
			keys = append(keys, key{[]string{table}, ln.start, true})
		}
	}
	return keys
}

// jsonKeys returns the keys that only objects enclose, up to maxKeyDepth.
func jsonKeys(src []byte, body int) []key {
	var keys []key
	path := make([]string, maxKeyDepth) // the last key at each depth
	depth := 0                          // the number of open brackets
	array := 0                          // the depth of the outermost square bracket, 0 for none
	line := body                        // the start of the current line
	for i := body; i < len(src); i++ {
		switch c := src[i]; c {
		case '\n':
			line = i + 1
		case '"':
			end := jsonString(src, i)
			rest := bytes.TrimLeft(src[end:min(len(src), end+64)], " \t\n")
			if array == 0 && depth > 0 && depth <= maxKeyDepth && len(rest) > 0 && rest[0] == ':' && len(keys) < maxHeadings && end-i < MaxHeading {
				name, err := strconv.Unquote(string(src[i:end]))
				if err != nil {
					name = string(src[i+1 : end-1])
				}
				path[depth-1] = name
				value := bytes.TrimLeft(rest[1:], " \t\n")
				block := len(value) > 0 && (value[0] == '{' || value[0] == '[')
				keys = append(keys, key{slices.Clone(path[:depth]), line, block})
			}
			i = end - 1
		case '{', '[':
			if depth++; c == '[' && array == 0 {
				array = depth
			}
		case '}', ']':
			if depth == array {
				array = 0
			}
			depth = max(depth-1, 0)
		}
	}
	return keys
}

// jsonString returns the offset after the string that begins at i.
func jsonString(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}
