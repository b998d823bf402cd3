package markdown

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxKeyDepth is how deep keys begin sections; those below are text of them.
const maxKeyDepth = 3

// key is a key of a configuration file.
type key struct {
	path  []string
	start int  // of its line
	block bool // its value has several lines
}

// parseKeys finds the keys of JSON, YAML and TOML as sections, by these rules only:
//
//   - A key begins a section if maps alone are around it, at most two, and its value
//     has lines of its own. Other keys are text of the section of the map that they
//     are in; behind a section in that map the next key begins one.
//   - A table of TOML begins a section, named as in its brackets.
//   - The path of a key with dots is an anchor: "spec.template".
//   - In a description of OpenAPI an operation has its method, path and summary as
//     the heading, and its operationId as an anchor.
//
// The scanners read lines and brackets; they do not check the syntax.
func parseKeys(name string, src []byte, body int) outline {
	var keys []key
	switch {
	case strings.HasSuffix(strings.ToLower(name), ".toml"):
		keys = tomlKeys(src, body)
	case strings.HasSuffix(strings.ToLower(name), ".json"):
		keys = jsonKeys(src, body)
	default:
		keys = yamlKeys(src, body)
	}
	operations := slices.ContainsFunc(keys, func(k key) bool {
		return len(k.path) == 1 && (k.path[0] == "openapi" || k.path[0] == "swagger")
	})
	var out outline
	// Of the last heading: its depth and start, and whether its value has lines.
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

var operationField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*"?(summary|operationId)"?\s*:\s*["']?(.*?)["']?,?\s*$`)
})

// operation returns the heading and the id of an operation of OpenAPI.
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

var yamlKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^( *)("[^"]*"|'[^']*'|[^\s#\-\[{"'&*!|>%@][^#:]*?|-[^\s#:][^#:]*?)\s*:(\s+(.*))?$`)
})

// yamlKeys returns the keys of maps in maps.
func yamlKeys(src []byte, body int) []key {
	var keys []key
	var indents []int // of the maps around
	var path []string
	text := -1 // the indent of a key whose value is literal text
	list := -1 // the indent of a list
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

// nextYAML returns the indent of the next line with text, -1 for none, and whether it is
// an item of a list.
func nextYAML(src []byte, lines []span) (indent int, item bool) {
	for _, ln := range lines[:min(len(lines), 50)] {
		line := ln.of(src)
		if trimmed := bytes.TrimLeft(line, " "); len(trimmed) > 0 && trimmed[0] != '#' {
			return len(line) - len(trimmed), trimmed[0] == '-'
		}
	}
	return -1, false
}

// tomlKeys returns the tables.
func tomlKeys(src []byte, body int) []key {
	var keys []key
	quotes := "" // of a text of several lines
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

// jsonKeys returns the keys of objects in objects.
func jsonKeys(src []byte, body int) []key {
	var keys []key
	var path []string // of the open objects: the key that each is the value of
	var open []byte   // the open brackets
	arrays := 0       // of them
	current := ""     // the last key
	line := body      // where the line begins
	for i := body; i < len(src); i++ {
		switch c := src[i]; c {
		case '\n':
			line = i + 1
		case '"':
			end := jsonString(src, i)
			rest := bytes.TrimLeft(src[end:min(len(src), end+64)], " \t\n")
			if arrays == 0 && len(open) > 0 && len(open) <= maxKeyDepth && len(rest) > 0 && rest[0] == ':' && len(keys) < maxHeadings && end-i < MaxHeading {
				current = string(src[i+1 : end-1])
				if s, err := strconv.Unquote(string(src[i:end])); err == nil {
					current = s
				}
				value := bytes.TrimLeft(rest[1:], " \t\n")
				block := len(value) > 0 && (value[0] == '{' || value[0] == '[')
				keys = append(keys, key{append(slices.Clone(path), current), line, block})
			}
			i = end - 1
		case '{', '[':
			open = append(open, c)
			if c == '[' {
				arrays++
			} else if arrays == 0 && len(open) > 1 && len(path) < maxKeyDepth {
				path = append(path, current)
			}
		case '}', ']':
			if n := len(open); n > 0 {
				if open[n-1] == '[' {
					arrays--
				}
				open = open[:n-1]
				if arrays == 0 {
					path = path[:min(len(path), max(len(open)-1, 0))]
				}
			}
		}
	}
	return keys
}

// jsonString returns the offset behind the string that begins at i.
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
