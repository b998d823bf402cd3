package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrNoFrontMatter is returned for a file that has no front matter to edit.
var ErrNoFrontMatter = errors.New("no front matter")

// FieldEdit sets or removes one top-level key of front matter.
type FieldEdit struct {
	Key string
	// Value is a string, a []string, a time.Time (written in UTC to the second),
	// or nil to remove the key.
	Value any
}

// NewFrontMatter returns a block with the fields in the order given, between
// its "---" lines. Fields whose value is nil are left out.
func NewFrontMatter(fields ...FieldEdit) ([]byte, error) {
	return EditFrontMatter([]byte("---\n---\n"), fields...)
}

// EditFrontMatter returns src with some keys of its front matter set or
// removed and every other byte as it was: order, comments, quoting, line endings, byte
// order mark and text. A key that exists keeps its place, its quotes and the
// comment behind it, and a list written one element a line stays so; a new
// key comes last. The result is parsed again, and anything but exactly the
// change asked for is an error. src is not changed.
func EditFrontMatter(src []byte, edits ...FieldEdit) ([]byte, error) {
	before := ReadFrontMatter(src)
	if before.Err != nil {
		return nil, before.Err
	}
	if !before.Found() {
		return nil, ErrNoFrontMatter
	}
	from, to := blockSpan(src)
	block, eol := slices.Clone(src[from:to]), lineEnding(src[:from])
	for _, e := range edits {
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

// blockSpan is where the YAML lies between the fences of src, which has them.
func blockSpan(src []byte) (from, to int) {
	body := bomLen(src)
	from, to, _, _ = fences(normalise(src, body), body)
	return from, to
}

func bomLen(src []byte) int {
	if bytes.HasPrefix(src, []byte(bom)) {
		return len(bom)
	}
	return 0
}

func lineEnding(head []byte) string {
	for _, eol := range []string{"\r\n", "\n", "\r"} {
		if bytes.HasSuffix(head, []byte(eol)) {
			return eol
		}
	}
	return "\n" // unreachable: the opening line has an end
}

// verifyEdit parses what an edit made and compares it with what was asked for.
func verifyEdit(src, out []byte, before FrontMatter, edits []FieldEdit) error {
	after := ReadFrontMatter(out)
	if after.Err != nil || !after.Found() || after.Start != before.Start || after.End-before.End != len(out)-len(src) {
		return errors.New("front matter is written in a way that cannot be edited key by key")
	}
	want := map[string]any{}
	for _, e := range edits {
		want[e.Key] = e.Value
	}
	for key, value := range want {
		got, ok := after.Fields[key]
		if value == nil {
			if ok {
				return fmt.Errorf("front matter key %s cannot be removed", key)
			}
			continue
		}
		if !reflect.DeepEqual(got, written(value)) {
			return fmt.Errorf("front matter key %s cannot be set to that value", key)
		}
	}
	a, errA := parsedFields(src)
	b, errB := parsedFields(out)
	if errA != nil || errB != nil {
		return errors.Join(errA, errB)
	}
	for key := range want {
		delete(a, key)
		delete(b, key)
	}
	if !reflect.DeepEqual(a, b) {
		return errors.New("front matter is written in a way that cannot be edited key by key")
	}
	return nil
}

func parsedFields(src []byte) (map[string]any, error) {
	from, to := blockSpan(src)
	return parseYAML(unixLines(src[from:to]))
}

// written is how ReadFrontMatter gives a value back.
func written(value any) any {
	switch v := value.(type) {
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	return value
}

// field is where a top-level key and its value lie in a block.
type field struct {
	key        string
	start      int // of the line
	colon      int // behind the colon
	valueStart int // first byte of the value on the key's line, else the line's end
	lineEnd    int // of the key's line, without its line break
	end        int // behind the last line, line break included, that belongs to the value
}

// scanFields finds the keys of a block mapping by their indentation. What it
// takes for a key inside a value it does not understand shows when the edit
// is verified.
func scanFields(block []byte) (fields []field, indent int) {
	indent = -1
	at, until := 0, 0
	for _, line := range rawLines(block) {
		start := at
		at += len(line)
		if start < until { // inside a quoted value
			fields[len(fields)-1].end = at
			continue
		}
		text := bytes.TrimRight(line, "\r\n")
		trimmed := bytes.TrimLeft(text, " ")
		blank := len(bytes.TrimSpace(text)) == 0
		if blank || trimmed[0] == '#' {
			if n := len(fields); n > 0 && !blank && fields[n-1].inBlockScalar(block) && len(text)-len(trimmed) > indent {
				fields[n-1].end = at
			}
			continue
		}
		depth := len(text) - len(trimmed)
		if indent < 0 {
			indent = depth
		}
		if depth == indent {
			if key, colon, ok := keyOf(text[depth:]); ok {
				f := field{key: key, start: start, colon: start + depth + colon, lineEnd: start + len(text), end: at}
				f.valueStart = f.colon + len(block[f.colon:f.lineEnd]) - len(bytes.TrimLeft(block[f.colon:f.lineEnd], " \t"))
				if f.valueStart < f.lineEnd && (block[f.valueStart] == '"' || block[f.valueStart] == '\'') {
					until = f.valueStart + closingQuote(block[f.valueStart:])
				}
				fields = append(fields, f)
				continue
			}
		}
		if n := len(fields); n > 0 {
			fields[n-1].end = at
		}
	}
	return fields, max(indent, 0)
}

func (f field) inBlockScalar(block []byte) bool {
	return f.valueStart < f.lineEnd && (block[f.valueStart] == '|' || block[f.valueStart] == '>')
}

// rawLines cuts text behind each line break: "\n", "\r\n" or "\r".
func rawLines(text []byte) [][]byte {
	var lines [][]byte
	for len(text) > 0 {
		n := bytes.IndexAny(text, "\r\n")
		switch {
		case n < 0:
			n = len(text)
		case text[n] == '\r' && n+1 < len(text) && text[n+1] == '\n':
			n += 2
		default:
			n++
		}
		lines, text = append(lines, text[:n]), text[n:]
	}
	return lines
}

// keyOf reads the key a line begins with.
func keyOf(text []byte) (key string, colon int, ok bool) {
	if text[0] == '"' || text[0] == '\'' {
		n := bytes.IndexByte(text[1:], text[0])
		if n < 0 || bytes.IndexByte(text[1:1+n], '\\') >= 0 {
			return "", 0, false
		}
		rest := text[n+2:]
		blanks := len(rest) - len(bytes.TrimLeft(rest, " "))
		colon = n + 2 + blanks
		if colon >= len(text) || text[colon] != ':' {
			return "", 0, false
		}
		return string(text[1 : 1+n]), colon + 1, true
	}
	if bytes.IndexByte([]byte("-?[]{},&*!|>%@`"), text[0]) >= 0 && (len(text) == 1 || text[0] != '-' && text[0] != '?' || text[1] == ' ') {
		return "", 0, false
	}
	for i, c := range text {
		if c == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t') {
			return string(bytes.TrimSpace(text[:i])), i + 1, i > 0
		}
		if c == '#' && i > 0 && text[i-1] == ' ' {
			return "", 0, false
		}
	}
	return "", 0, false
}

// editField makes one change to a block.
func editField(block []byte, e FieldEdit, eol string) ([]byte, error) {
	fields, indent := scanFields(block)
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == e.Key })
	if i < 0 {
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
	f := fields[i]
	if e.Value == nil {
		// Comments indented below the key go with it: below a block scalar
		// that comes before they would become its text.
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
	from, to, quote := f.span(block)
	if list, ok := e.Value.([]string); ok && from == to && len(list) > 0 {
		if out, ok := editItems(block, f, list, eol); ok {
			return out, nil
		}
	}
	value, err := render(e.Value, quote)
	if err != nil {
		return nil, err
	}
	if from == to { // nothing on the key's line
		tail := block[f.colon:f.lineEnd] // blanks and perhaps a comment
		out := slices.Concat(block[:f.colon], []byte(" "+value), tail)
		return slices.Concat(out, []byte(eol), block[f.end:]), nil
	}
	return slices.Concat(block[:from], []byte(value), block[to:]), nil
}

// span is where the value lies, from its first byte on the key's line to its
// last one, and the quote it is written in. An empty span means that there is
// nothing on the key's line.
func (f field) span(block []byte) (from, to int, quote byte) {
	from = f.valueStart
	all := block[from:f.end]
	if from >= f.lineEnd || all[0] == '#' {
		return from, from, 0
	}
	trimmed := from + len(bytes.TrimRight(all, " \t\r\n"))
	switch all[0] {
	case '"', '\'':
		if n := closingQuote(all); n > 0 {
			return from, from + n, all[0]
		}
	case '[':
		if n := closingBracket(all); n > 0 {
			return from, from + n, 0
		}
	case '|', '>', '{', '&', '*', '!':
	default:
		for i := from + 1; i < f.lineEnd; i++ {
			if block[i] == '#' && (block[i-1] == ' ' || block[i-1] == '\t') {
				return from, from + len(bytes.TrimRight(block[from:i], " \t")), 0
			}
		}
	}
	return from, trimmed, 0
}

// closingQuote is the length of the quoted scalar that text begins with, 0
// when it does not end.
func closingQuote(text []byte) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}

// closingBracket is the length of the flow sequence that text begins with.
func closingBracket(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if before := text[i-1]; before == ' ' || before == ',' || before == '[' || before == '\n' || before == '{' || before == ':' {
				n := closingQuote(text[i:])
				if n == 0 {
					return 0
				}
				i += n - 1
			}
		case '#':
			if before := text[i-1]; before == ' ' || before == '\t' {
				n := bytes.IndexByte(text[i:], '\n')
				if n < 0 {
					return 0
				}
				i += n
			}
		}
	}
	return 0
}

// editItems rewrites a list of one element a line: elements that stay keep
// their lines, new ones come behind the last that stays before them.
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
		text := bytes.TrimRight(line, "\r\n")
		trimmed := bytes.TrimLeft(text, " ")
		if len(bytes.TrimSpace(trimmed)) == 0 || trimmed[0] == '#' {
			items = append(items, item{line: line})
			continue
		}
		if !bytes.HasPrefix(trimmed, []byte("- ")) {
			return nil, false
		}
		values, err := readWritten(append([]byte("k: "), bytes.TrimSpace(trimmed[2:])...))
		value, ok := values["k"].(string)
		if err != nil || !ok {
			return nil, false
		}
		lead := string(text[:len(text)-len(trimmed)]) + "- "
		if dash != "" && lead != dash {
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
	for _, want := range list {
		at := -1
		for k := next; k < len(items); k++ {
			if items[k].value == want {
				at = k
				break
			}
		}
		if at < 0 {
			value, err := render(want, 0)
			if err != nil {
				return nil, false
			}
			out = append(out, dash+value+eol...)
			continue
		}
		for ; next < at; next++ { // comments of elements that go stay
			if items[next].value == "" {
				out = append(out, items[next].line...)
			}
		}
		out = append(out, items[at].line...)
		next = at + 1
	}
	for ; next < len(items); next++ {
		if items[next].value == "" {
			out = append(out, items[next].line...)
		}
	}
	return slices.Concat(block[:f.end-len(region)], out, block[f.end:]), true
}

// render writes a value as it stands behind "key: ". quote is the quote the
// value before was written in, which is kept where it can be.
func render(value any, quote byte) (string, error) {
	switch v := value.(type) {
	case string:
		return renderScalar(v, quote, false)
	case time.Time:
		return v.UTC().Format(time.RFC3339), nil
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
	return "", fmt.Errorf("value of type %T, want string, []string or time", value)
}

func renderScalar(s string, quote byte, flow bool) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("value is not valid UTF-8")
	}
	if quote == 0 && isPlain(s, flow) {
		return s, nil
	}
	if quote == '\'' && strings.IndexFunc(s, unprintable) < 0 {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'", nil
	}
	return doubleQuoted(s), nil
}

// isPlain reports whether a text means the same without quotes to every YAML
// reader; when in doubt it does not.
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

// doubleQuoted writes a YAML double-quoted scalar, escapes of section 5.7.
func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unprintable(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unprintable(r) && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case unprintable(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
