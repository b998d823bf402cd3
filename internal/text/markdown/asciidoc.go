package markdown

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// parseAsciiDoc finds the titles and anchors of AsciiDoc. It applies only these rules:
//
//   - A one-line title is one to six "=" or "#", a blank and text. A two-line title
//     starts with a letter or digit after a blank line, and its underline of "=", "-",
//     "~", "^" or "+" has the same length, plus or minus one character. The document
//     title has level 1.
//   - Listings, literals, comments and passthroughs contain no titles. They are enclosed
//     by two equal lines of at least four "-", ".", "/" or "+", or by "```".
//   - "[[id]]" or "[#id]" on its own line names the title that follows, or otherwise
//     the section that contains it.
//   - "{name}" in a title is replaced by the value of an earlier line ":name: value".
func parseAsciiDoc(_ string, src []byte, body int) scanned {
	var out scanned
	lines := splitLines(src, body)
	verbatim := ""
	attributes := map[string]string{}
	for i := 0; i < len(lines); i++ {
		line := lines[i].of(src)
		if verbatim != "" {
			if string(line) == verbatim {
				verbatim = ""
			}
			continue
		}
		if len(line) == 0 {
			continue
		}
		if id, ok := asciiDocID(line); ok {
			out.mark(mark{name: id, at: lines[i].start, next: true, end: lines[i].end})
			continue
		}
		if name, value, ok := asciiDocAttribute(line); ok {
			if len(attributes) < maxAttributes {
				attributes[name] = value
			}
			continue
		}
		level, raw := asciiDocTitle(line)
		last := i
		if level == 0 && (i == 0 || blank(lines[i-1].of(src)) || lines[i-1].of(src)[0] == '[') && i+1 < len(lines) && isWordByte(line[0]) {
			if level = asciiDocUnderline(line, lines[i+1].of(src)); level > 0 {
				raw, last = line, i+1
			}
		}
		if level == 0 {
			if isVerbatim(line) {
				verbatim = string(line)
				if strings.HasPrefix(verbatim, "```") {
					verbatim = "```"
				}
			}
			continue
		}
		text := asciiDocResolve(string(raw[:runeStart(raw, MaxHeading)]), attributes)
		text = collapse(strings.NewReplacer("`", "", "*", "").Replace(text[:runeStart(text, MaxHeading)]))
		if !out.head(heading{level: level, text: text, slug: text, start: lines[i].start}) {
			break
		}
		i = last
	}
	return out
}

// maxAttributes is the number of attributes read from a file.
const maxAttributes = 1000

// asciiDocAttribute parses an attribute line such as ":product: Cairn".
func asciiDocAttribute(line []byte) (name, value string, ok bool) {
	if line[0] != ':' {
		return "", "", false
	}
	before, after, ok := strings.Cut(string(line[1:min(len(line), MaxHeading)]), ":")
	if !ok || before == "" || strings.ContainsAny(before, " \t{}") || after != "" && after[0] != ' ' {
		return "", "", false
	}
	return strings.ToLower(before), strings.TrimSpace(after), true
}

// asciiDocResolve replaces each "{name}" by the value of the attribute. It does not
// expand the values themselves, and it leaves unknown names unchanged.
func asciiDocResolve(text string, attributes map[string]string) string {
	if len(attributes) == 0 || !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	for text != "" && b.Len() <= MaxHeading {
		before, rest, _ := strings.Cut(text, "{")
		b.WriteString(before)
		if rest == "" && len(before) == len(text) {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if value, known := attributes[strings.ToLower(name)]; closed && known {
			b.WriteString(value)
			text = after
			continue
		}
		b.WriteString("{")
		text = rest
	}
	return b.String()
}

// asciiDocTitle returns the level, from 1, and the text of a one-line title. The level of
// any other line is 0.
func asciiDocTitle(line []byte) (level int, text []byte) {
	c := line[0]
	if c != '=' && c != '#' {
		return 0, nil
	}
	text = bytes.TrimLeft(line, string(c))
	level = len(line) - len(text)
	if level > 6 || len(text) == 0 || text[0] != ' ' && text[0] != '\t' {
		return 0, nil
	}
	text = bytes.TrimSpace(text)
	return level, bytes.TrimSpace(bytes.TrimSuffix(text, bytes.Repeat([]byte{c}, level)))
}

// asciiDocUnderline returns the level of a two-line title, 0 if under does not underline
// title.
func asciiDocUnderline(title, under []byte) int {
	if len(under) < 2 {
		return 0
	}
	level := strings.IndexByte("=-~^+", under[0]) + 1
	if level == 0 || len(bytes.Trim(under, string(under[:1]))) > 0 {
		return 0
	}
	if n := utf8.RuneCount(title) - len(under); n < -1 || n > 1 {
		return 0
	}
	return level
}

// isVerbatim reports whether a line opens a block that contains no titles.
func isVerbatim(line []byte) bool {
	if bytes.HasPrefix(line, []byte("```")) {
		return true
	}
	return len(line) >= 4 && strings.IndexByte("-./+", line[0]) >= 0 && len(bytes.Trim(line, string(line[:1]))) == 0
}

// asciiDocID parses a line that consists of a block id.
func asciiDocID(line []byte) (string, bool) {
	if rest, ok := bytes.CutPrefix(line, []byte("[[")); ok {
		if end := bytes.Index(rest, []byte("]]")); end > 0 && end == len(rest)-2 {
			id, _, _ := strings.Cut(string(rest[:end]), ",")
			return id, true
		}
		return "", false
	}
	rest, ok := bytes.CutPrefix(line, []byte("[#"))
	if !ok || !bytes.HasSuffix(rest, []byte("]")) {
		return "", false
	}
	id := string(rest[:len(rest)-1])
	if end := strings.IndexAny(id, ",.%"); end >= 0 {
		id = id[:end]
	}
	return id, id != ""
}
