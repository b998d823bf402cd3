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
		if m := asciiDocID().FindSubmatch(line); m != nil {
			out.mark(mark{name: string(m[1]) + string(m[2]), at: lines[i].start, next: true, end: lines[i].end})
			continue
		}
		if m := asciiDocAttribute().FindSubmatch(line[:min(len(line), MaxHeading)]); m != nil {
			if len(attributes) < maxAttributes {
				attributes[strings.ToLower(string(m[1]))] = string(bytes.TrimSpace(m[2]))
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
		text := asciiDocReference().ReplaceAllStringFunc(string(raw[:runeStart(raw, MaxHeading)]), func(ref string) string {
			if value, ok := attributes[strings.ToLower(ref[1:len(ref)-1])]; ok {
				return value
			}
			return ref
		})
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

var (
	asciiDocID        = pattern(`^(?:\[\[([^,\]]+)(?:,[^\]]*)?\]\]|\[#([^,.%\]]+).*\])$`)
	asciiDocAttribute = pattern(`^:([^:{}\s]+):( .*)?$`) // such as ":product: Cairn"
	asciiDocReference = pattern(`\{[^{}]+\}`)
)

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
