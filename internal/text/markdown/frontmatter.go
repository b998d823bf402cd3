package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FrontMatter is the YAML block between "---" lines at the start of a file.
type FrontMatter struct {
	// Start and End are the byte offsets of the block, both fences and the last line
	// break included. Both are 0 if there is no block.
	Start, End int
	// Fields holds the top-level keys with every scalar as written: 012345 stays
	// "012345" although YAML would read a number. The values are strings, nil for null,
	// and lists and maps of these. Fields is nil if there is no valid block.
	Fields map[string]any
	// Err says why the block is not valid YAML or that it is too large. The block is
	// then text before the first heading.
	Err error
}

// Found reports whether the file has front matter that parses.
func (f FrontMatter) Found() bool { return f.Fields != nil }

// String returns the value of a scalar key, "" if the key is absent or not a scalar.
func (f FrontMatter) String(key string) string {
	s, _ := f.Fields[key].(string)
	return strings.TrimSpace(s)
}

// Strings returns the non-empty scalars of a list. It splits a single string at commas.
func (f FrontMatter) Strings(key string) []string {
	list, ok := f.Fields[key].([]any)
	if !ok {
		for s := range strings.SplitSeq(f.String(key), ",") {
			list = append(list, s)
		}
	}
	var out []string
	for _, e := range list {
		if s, _ := e.(string); strings.TrimSpace(s) != "" {
			out = append(out, strings.TrimSpace(s))
		}
	}
	return out
}

// maxFrontMatter is the maximum size of a block in bytes. A larger one is an error.
const maxFrontMatter = 256 << 10

// ReadFrontMatter reads only the front matter of a Markdown file, faster than Parse.
func ReadFrontMatter(src []byte) FrontMatter {
	body := bomLen(src)
	return readFrontMatter(src, normalise(src, body), body)
}

// readFrontMatter reads the block at the start of src[body:]. text is src with normalised
// line endings.
//
// A block begins with "---" on the first line and ends with the next line that is "---"
// or "...". A block without a closing line, or whose YAML is not a mapping, is not front
// matter, because a document may begin with a thematic break.
func readFrontMatter(src, text []byte, body int) FrontMatter {
	from, to, end, ok := fences(text, body)
	if !ok {
		return FrontMatter{}
	}
	block := src[from:to]
	var fields map[string]any
	var err error
	if len(block) > maxFrontMatter {
		err = fmt.Errorf("front matter of %d bytes, want at most %d", len(block), maxFrontMatter)
	} else {
		fields, err = readWritten(block)
	}
	if fields == nil && (err == nil || !mapping().Match(text[from:to])) {
		return FrontMatter{}
	}
	return FrontMatter{Start: body, End: end, Fields: fields, Err: err}
}

// describe sets the title and the labels from the front matter.
func (d *Document) describe() {
	fm := d.FrontMatter
	if !fm.Found() {
		return
	}
	cut := func(v string) string { return v[:runeStart(v, MaxHeading)] }
	tags := fm.Strings("tags")
	for i, tag := range tags {
		tags[i] = cut(tag)
	}
	d.Title = fm.String("title")
	d.Labels = Labels{
		Found:    true,
		Tags:     tags[:min(len(tags), maxTags)],
		Priority: cut(fm.String("priority")),
		Assignee: cut(fm.String("assignee")),
		Status:   cut(fm.String("status")),
	}
}

// fences returns the range of the YAML between the fences and the offset after the
// closing line.
func fences(text []byte, body int) (from, to, end int, ok bool) {
	line, from := lineAt(text, body)
	if string(bytes.TrimRight(line, " \t")) != "---" {
		return 0, 0, 0, false
	}
	for at := from; at < len(text); at = end {
		line, end = lineAt(text, at)
		if mark := string(bytes.TrimRight(line, " \t")); mark == "---" || mark == "..." {
			return from, at, end, true
		}
	}
	return 0, 0, 0, false
}

// mapping matches broken front matter, and not prose between two thematic breaks: the
// first line that is neither blank nor a comment begins with "key:".
var mapping = pattern(`^(?:\s*#.*\n)*\s*[^\s:#][^\s:]*:(?:[ \t\n]|$)`)

// maxTags is the maximum number of tags of a document. The index stores them with every
// chunk.
const maxTags = 256

// readWritten returns the mapping in a block, with scalars as written. It returns nil for
// other YAML.
func readWritten(block []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(block)) == 0 {
		return map[string]any{}, nil
	}
	root, err := parseYAML(block)
	if err != nil {
		return nil, fmt.Errorf("front matter: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, nil
	}
	value, err := asWritten(root)
	if err != nil {
		return nil, fmt.Errorf("front matter: line %w", err)
	}
	return value.(map[string]any), nil
}

// parseYAML returns the root of a document, nil if it has only comments.
func parseYAML(block []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(block, &doc); err != nil || len(doc.Content) == 0 {
		return nil, err
	}
	return doc.Content[0], nil
}

var errAlias = errors.New("YAML aliases are not supported")

// asWritten returns the value of a node. It rejects aliases, because nested references grow
// exponentially when expanded and front matter does not need them. The error begins with
// the number of the line.
func asWritten(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return nil, fmt.Errorf("%d: %w", n.Line, errAlias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, v := range n.Content {
			var err error
			if list[i], err = asWritten(v); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		fields := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := fields[key.Value]; twice {
				return nil, fmt.Errorf("%d: key %q appears twice", key.Line, key.Value)
			}
			var err error
			if fields[key.Value], err = asWritten(n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return fields, nil
	}
	if n.ShortTag() == "!!null" {
		return nil, nil
	}
	return n.Value, nil
}
