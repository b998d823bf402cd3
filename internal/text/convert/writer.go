package convert

import (
	"bytes"
	"strings"
	"unicode"
)

// writer builds Markdown block by block. It panics with an *Error if the conversion
// exceeds a bound.
type writer struct {
	name       string // of the file, without its folder
	out        []byte
	containers []container // outermost first
	gap        bool        // the next block needs a blank line before it
	listed     int         // length of out after the last list item
	work       int64       // units spent
}

// container is an open list item or block quote.
type container struct {
	first string // prefix of its first line
	rest  string // prefix of its other lines
	begun bool
}

// spend counts units of work before it is done: about one for each nanosecond, and so for
// each byte that is read or copied. Unlike a clock, the count depends only on the file.
func (w *writer) spend(n int) {
	if w.work += int64(n); w.work > maxWork {
		panic(errWork)
	}
}

// step counts one pass of a loop. Converters call it in every loop over their input.
func (w *writer) step() { w.spend(32) }

// open begins a list item or block quote.
func (w *writer) open(first, rest string) {
	if len(w.containers) >= maxDepth {
		panic(errDepth)
	}
	w.containers = append(w.containers, container{first: first, rest: rest})
}

func (w *writer) close() { w.containers = w.containers[:len(w.containers)-1] }

// block begins a block, after a blank line if needed.
func (w *writer) block() {
	if w.gap && len(w.out) > 0 {
		w.line("")
	}
	w.gap = true
}

// line writes one line inside the open containers.
func (w *writer) line(s string) {
	w.spend(64 + 8*len(s))
	start := len(w.out)
	for i := range w.containers {
		switch c := &w.containers[i]; {
		case c.begun:
			w.out = append(w.out, c.rest...)
		case s != "":
			w.out = append(w.out, c.first...)
			c.begun = true
		}
	}
	w.out = append(w.out, s...)
	if s == "" {
		w.out = w.out[:start+len(bytes.TrimRight(w.out[start:], " "))]
	}
	w.out = append(w.out, '\n')
	if len(w.out) > maxOutput {
		panic(errOutput)
	}
}

// heading writes a heading of plain text. It writes nothing if text is empty. id is the
// anchor; if it is "", the Markdown parser derives the anchor from the text.
func (w *writer) heading(level int, text, id string) {
	text = escape(strings.Join(strings.Fields(text), " "))
	if text == "" {
		return
	}
	if id = anchor(id); id != "" {
		text += " {#" + id + "}"
	} else if strings.HasSuffix(text, "}") {
		text += " {#" + anchor(strings.Trim(text, "{}")) + "}" // so that the braces are not parsed as an id
	}
	w.block()
	w.line(strings.Repeat("#", min(max(level, 1), 6)) + " " + text)
}

// anchor removes the characters that would end an id in a heading.
func anchor(id string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '{' || r == '}' || r == 0x7f || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, id)
}

// mark writes an anchor without a heading.
func (w *writer) mark(id string) {
	w.block()
	w.line(`<a id="` + id + `"></a>`)
}

// item writes inline Markdown as a list item. level is its nesting, from 0.
func (w *writer) item(level int, text string) {
	level = min(max(level, 0), 8)
	if w.listed == len(w.out) {
		w.gap = false
	}
	w.open(strings.Repeat("  ", level)+"- ", strings.Repeat("  ", level+1))
	w.paragraph(text)
	w.close()
	w.listed = len(w.out)
}

// markdown writes Markdown as one block. It closes an open fence at the end.
func (w *writer) markdown(text string) {
	w.block()
	fence := ""
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n") {
		trimmed := strings.TrimSpace(line)
		switch run := len(trimmed) - len(strings.TrimLeft(trimmed, "`~")); {
		case fence == "" && run >= 3:
			fence = trimmed[:run]
		case fence != "" && run >= len(fence) && run == len(trimmed):
			fence = ""
		}
		w.line(strings.TrimRight(line, " \t\r"))
	}
	if fence != "" {
		w.line(fence)
	}
}

// paragraph writes lines of inline Markdown as one block.
func (w *writer) paragraph(text string) {
	begun := false
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !begun {
			w.block()
			begun = true
		}
		w.line(escapeStart(line))
	}
}

// text writes plain text as one block.
func (w *writer) text(text string) { w.paragraph(lines(escape(flat(text)))) }

// code writes a fenced code block. The fence is longer than any in the text.
func (w *writer) code(language, text string) {
	text = strings.TrimLeft(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), " \t\r\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	fence := Fence(text)
	w.block()
	w.line(fence + language)
	for line := range strings.SplitSeq(text, "\n") {
		w.line(strings.TrimRight(line, " \t\r"))
	}
	w.line(fence)
}

// table writes rows of inline Markdown. The first row is the header.
func (w *writer) table(rows [][]string) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return
	}
	w.block()
	for i, row := range rows {
		var b strings.Builder
		b.WriteByte('|')
		for c := range columns {
			cell := ""
			if c < len(row) {
				cell = strings.ReplaceAll(strings.Join(strings.Fields(row[c]), " "), "|", `\|`)
			}
			b.WriteString(" " + cell + " |")
		}
		w.line(b.String())
		if i == 0 {
			w.line("|" + strings.Repeat(" --- |", columns))
		}
	}
}

// Fence returns a fence for code that is longer than any run of backquotes in the code.
func Fence(code string) string { return strings.Repeat("`", max(3, longestRun(code, '`')+1)) }

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// escape returns plain text as inline Markdown. It escapes a character only where it would
// be markup, so that names such as snake_case stay searchable. It removes control
// characters other than lineBreak.
func escape(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return strings.ContainsRune("\\`*_<[", r) || isControl(r) }) < 0 {
		return s
	}
	var b strings.Builder
	word := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= 0x80 || s[i] == '_' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z')
	}
	blank := func(i int) bool { return i < 0 || i >= len(s) || s[i] == ' ' || s[i] == '\n' }
	for i, r := range s {
		if isControl(r) {
			continue
		}
		switch r {
		case '`':
			b.WriteByte('\\')
		case '\\':
			if i+1 < len(s) && strings.IndexByte("\\`*_{}[]<>()#+-.!|&", s[i+1]) >= 0 {
				b.WriteByte('\\')
			}
		case '*':
			if !blank(i-1) || !blank(i+1) {
				b.WriteByte('\\')
			}
		case '_':
			if word(i-1) != word(i+1) && !(blank(i-1) && blank(i+1)) && (blank(i-1) || blank(i+1)) {
				b.WriteByte('\\')
			}
		case '<':
			if i+1 < len(s) && (s[i+1] == '/' || s[i+1] == '!' || s[i+1] == '?' || 'a' <= s[i+1]|0x20 && s[i+1]|0x20 <= 'z') {
				b.WriteByte('\\')
			}
		case '[':
			if end := strings.IndexByte(s[i:min(len(s), i+300)], ']'); end >= 0 && i+end+1 < len(s) && (s[i+end+1] == '(' || s[i+end+1] == ':' && blank(i-1)) {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && string(r) != lineBreak || r == 0x7f
}

// escapeStart escapes a marker at the start of a line that would begin a block.
func escapeStart(line string) string {
	switch c := line[0]; c {
	case '#', '>', '=':
		return `\` + line
	case '+', '-':
		if len(line) == 1 || line[1] == ' ' || strings.Trim(line, "- ") == "" {
			return `\` + line
		}
	case '~', ':', '|':
		if strings.HasPrefix(line, "~~~") || c == ':' && strings.Trim(line, ":-| ") == "" || c == '|' {
			return `\` + line
		}
	}
	digits := strings.TrimLeft(line, "0123456789")
	if n := len(line) - len(digits); n > 0 && n < 10 && len(digits) > 0 && (digits[0] == '.' || digits[0] == ')') && (len(digits) == 1 || digits[1] == ' ') {
		return line[:n] + `\` + digits
	}
	return line
}
