package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"cairn/internal/text/outline"
)

// ErrNoFrontMatter is returned for a file that has no front matter to edit.
var ErrNoFrontMatter = errors.New("no front matter")

var errLayout = errors.New("front matter is written in a way that cannot be edited key by key")

// FieldEdit sets or removes one top-level key of front matter.
type FieldEdit struct {
	Key string
	// Value is a string, an int, a []string, a time.Time (written in UTC),
	// or nil to remove the key.
	Value any
}

// NewFrontMatter returns a block between "---" lines with the fields in the given order.
// It omits fields whose value is nil.
func NewFrontMatter(fields ...FieldEdit) ([]byte, error) {
	return EditFrontMatter([]byte("---\n---\n"), fields...)
}

// EditFrontMatter returns a copy of src with the given keys of its front matter set or
// removed. Every other byte stays unchanged: order, comments, quoting, line endings, byte
// order mark and text. An existing key keeps its place, its quotes and the comment after
// it, and a list with one element per line keeps that form. A new key comes last. A key
// that already has the value stays unchanged.
// EditFrontMatter parses the result and returns an error unless it differs from src by
// exactly the requested change.
func EditFrontMatter(src []byte, edits ...FieldEdit) ([]byte, error) {
	before := ReadFrontMatter(src)
	if before.Err != nil {
		return nil, before.Err
	}
	if !before.Found() {
		return nil, ErrNoFrontMatter
	}
	body := bomLen(src)
	from, to, _, _ := fences(normalise(src, body), body)
	block, head := slices.Clone(src[from:to]), rawLines(src[:from])
	eol := string(bytes.TrimLeft(head[len(head)-1], "- \t"+bom))
	for i, e := range edits {
		edited := slices.ContainsFunc(edits[:i], func(earlier FieldEdit) bool { return earlier.Key == e.Key })
		if !edited && e.Value != nil && reflect.DeepEqual(before.Fields[e.Key], written(e.Value)) {
			continue
		}
		var err error
		if block, err = editField(block, e, eol); err != nil {
			return nil, fmt.Errorf("setting %s: %w", e.Key, err)
		}
	}
	out := slices.Concat(src[:from], block, src[to:])
	if err := verifyEdit(src, out, before, edits); err != nil {
		return nil, err
	}
	return out, nil
}

// bomLen returns the length of the byte order mark at the start of src, 0 if there is none.
func bomLen(src []byte) int { return len(src) - len(bytes.TrimPrefix(src, []byte(bom))) }

// verifyEdit returns an error unless out is src with exactly the requested edits. It
// modifies before.Fields.
func verifyEdit(src, out []byte, before FrontMatter, edits []FieldEdit) error {
	after := ReadFrontMatter(out)
	if after.Err != nil || !after.Found() || after.Start != before.Start || after.End-before.End != len(out)-len(src) {
		return errLayout
	}
	want := map[string]any{}
	for _, e := range edits {
		want[e.Key] = e.Value
	}
	for key, value := range want {
		got, ok := after.Fields[key]
		switch {
		case value == nil && ok:
			return fmt.Errorf("front matter key %s cannot be removed", key)
		case value != nil && !reflect.DeepEqual(got, written(value)):
			return fmt.Errorf("front matter key %s cannot be set to that value", key)
		}
		delete(before.Fields, key)
		delete(after.Fields, key)
	}
	if !reflect.DeepEqual(before.Fields, after.Fields) {
		return errLayout
	}
	return nil
}

// written returns the form of a value that ReadFrontMatter returns.
func written(value any) any {
	switch v := value.(type) {
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case int:
		return strconv.Itoa(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return value
}

// field holds the offsets of a top-level key and its value in a block. The value spans
// [from, to). An empty span means that no value begins on the key's line.
type field struct {
	start    int // of the key's line
	colon    int // after the colon
	lineEnd  int // of the key's line, without its line break
	from, to int
	quote    byte // around the value, 0 for none
	end      int  // after the last line of the value, line break included
}

// findField finds a top-level key of a block mapping, and the indentation of the keys. It
// stops at a key that is not on a line of its own; verifyEdit detects a missing field.
func findField(block []byte, name string) (f field, indent int, found bool) {
	text := normalise(block, 0)
	root, err := parseYAML(text)
	if err != nil || root == nil || root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return f, 0, false
	}
	indent = root.Column - 1
	lines := splitLines(text, 0)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Column != root.Column || key.Line > len(lines) {
			break
		}
		line, end := lines[key.Line-1], len(lines)
		if i+2 < len(root.Content) {
			end = min(end, root.Content[i+2].Line-1)
		}
		after := line.start + indent + len(key.Value)
		colon := bytes.IndexByte(text[min(after, line.end):line.end], ':')
		if colon < 0 {
			break
		}
		if key.Value != name {
			continue
		}
		f = field{start: line.start, colon: after + colon + 1, lineEnd: line.end}
		for end > key.Line && !isContent(lines[end-1].of(text), value, indent) {
			end--
		}
		last := lines[max(end, key.Line)-1].end
		if from := len(text) - len(bytes.TrimLeft(text[f.colon:], " \t\n")); from < f.lineEnd && text[from] != '#' {
			f.from, f.to = from, from+len(withoutComment(text[from:last], key, value))
			if c := text[from]; c == '"' || c == '\'' {
				f.quote, f.to = c, from+len(quoted().Find(text[from:]))
				last = outline.LineEnd(text, f.to)
			}
		}
		f.end = min(last+1, len(text))
		return f, indent, true
	}
	return f, indent, false
}

// isContent reports whether a line after a key at an indentation is part of its value: it
// is neither blank nor a comment, or it is in a block scalar.
func isContent(line []byte, value *yaml.Node, indent int) bool {
	for len(value.Content) > 0 {
		value = value.Content[len(value.Content)-1]
	}
	text := bytes.TrimLeft(line, " \t")
	scalar := value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && len(line)-len(text) > indent
	return len(text) > 0 && (text[0] != '#' || scalar)
}

// withoutComment returns text without the comment at its end, if it is that of a node.
func withoutComment(text []byte, nodes ...*yaml.Node) []byte {
	text = bytes.TrimRight(text, " \t\n")
	for _, n := range nodes {
		comment, _, _ := strings.Cut(n.LineComment, "\n")
		if comment = strings.TrimRight(comment, " \t"); comment != "" {
			text = bytes.TrimRight(bytes.TrimSuffix(text, []byte(comment)), " \t")
		}
	}
	return text
}

// quoted matches a scalar in quotes.
var quoted = pattern(`(?s)^(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')`)

var rawLine = pattern(`[^\r\n]*(?:\r\n?|\n)|[^\r\n]+$`)

// rawLines splits text after each line break: "\n", "\r\n" or "\r".
func rawLines(text []byte) [][]byte { return rawLine().FindAll(text, -1) }

// editField makes one change to a block.
func editField(block []byte, e FieldEdit, eol string) ([]byte, error) {
	f, indent, found := findField(block, e.Key)
	if !found {
		if e.Value == nil {
			return block, nil
		}
		value, err := render(e.Value, 0)
		if err != nil {
			return nil, err
		}
		line := strings.Repeat(" ", indent) + e.Key + ": " + value + eol
		return append(block, line...), nil
	}
	if e.Value == nil {
		// Indented comments below the key are removed too, because after a block scalar
		// they would become part of it.
		end := f.end
		for _, line := range rawLines(block[f.end:]) {
			text := bytes.TrimLeft(line, " ")
			if len(line)-len(text) <= indent || text[0] != '#' {
				break
			}
			end += len(line)
		}
		return slices.Concat(block[:f.start], block[end:]), nil
	}
	if list, ok := e.Value.([]string); ok && f.from == f.to && len(list) > 0 {
		if out, ok := editItems(block, f, list, eol); ok {
			return out, nil
		}
	}
	value, err := render(e.Value, f.quote)
	if err != nil {
		return nil, err
	}
	if f.from == f.to { // nothing on the key's line
		tail := block[f.colon:f.lineEnd] // blanks and perhaps a comment
		return slices.Concat(block[:f.colon], []byte(" "+value), tail, []byte(eol), block[f.end:]), nil
	}
	return slices.Concat(block[:f.from], []byte(value), block[f.to:]), nil
}

// editItems rewrites a list with one element per line. Elements that remain keep their
// lines. A new element follows the element before it in list. It returns false for a
// list that is written differently.
func editItems(block []byte, f field, list []string, eol string) ([]byte, bool) {
	region := block[f.lineEnd:f.end]
	region = region[len(rawLines(region)[0]):] // the key line's break
	type item struct {
		line  []byte
		value string
	}
	var items []item
	dash := ""
	for _, line := range rawLines(region) {
		text := bytes.TrimLeft(line, " ")
		if blank(text) || text[0] == '#' {
			items = append(items, item{line: line})
			continue
		}
		element, isItem := bytes.CutPrefix(text, []byte("- "))
		values, err := readWritten(append([]byte("k: "), bytes.TrimSpace(element)...))
		value, isText := values["k"].(string)
		lead := string(line[:len(line)-len(text)]) + "- "
		if !isItem || err != nil || !isText || dash != "" && lead != dash {
			return nil, false
		}
		dash = lead
		items = append(items, item{line, value})
	}
	if dash == "" {
		return nil, false
	}
	var out []byte
	next := 0
	keepComments := func(to int) { // comments stay when their element is removed
		for ; next < to; next++ {
			if items[next].value == "" {
				out = append(out, items[next].line...)
			}
		}
	}
	for _, want := range list {
		at := slices.IndexFunc(items[next:], func(i item) bool { return i.value == want })
		if at < 0 {
			value, err := render(want, 0)
			if err != nil {
				return nil, false
			}
			out = append(out, dash+value+eol...)
			continue
		}
		keepComments(next + at)
		out = append(out, items[next].line...)
		next++
	}
	keepComments(len(items))
	return slices.Concat(block[:f.end-len(region)], out, block[f.end:]), true
}

// render returns the YAML of a value. The value keeps the quote of the previous value, 0
// for none, where possible.
func render(value any, quote byte) (string, error) {
	switch v := value.(type) {
	case string:
		return renderScalar(v, quote, false)
	case int, time.Time:
		return written(v).(string), nil
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			var err error
			if parts[i], err = renderScalar(s, 0, true); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("value of type %T, want string, int, []string or time", value)
}

func renderScalar(s string, quote byte, flow bool) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("value is not valid UTF-8")
	}
	if quote == 0 && isPlain(s, flow) {
		return s, nil
	}
	if quote == '\'' && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'", nil
	}
	return strconv.Quote(s), nil // YAML has the same escapes as Go (section 5.7)
}

// isPlain reports whether every YAML reader reads s without quotes as the string s. In
// doubt it returns false.
func isPlain(s string, flow bool) bool {
	switch strings.ToLower(s) {
	case "", "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return false
	}
	if first, _ := utf8.DecodeRuneInString(s); !unicode.IsLetter(first) || strings.HasSuffix(s, " ") {
		return false
	}
	for _, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.Is(unicode.Mn, r), '0' <= r && r <= '9':
		case strings.ContainsRune("_-./", r):
		case !flow && strings.ContainsRune(" ()", r):
		default:
			return false
		}
	}
	return true
}
