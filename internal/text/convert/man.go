package convert

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
)

var errNoManual = &Error{"not a manual page"}

// Man converts a manual page that uses the man or mdoc macros. It converts line by
// line: line n of the Markdown is line n of the page. Of an unknown macro it keeps the
// arguments.
func Man(w *writer, data []byte) error {
	text := utf8Text(data, "")
	if !isManual(text) {
		return errNoManual
	}
	m := manual{defined: map[string]string{}}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		w.line(m.line(strings.TrimRight(flat(string(line)), " ")))
	}
	return nil
}

// isManual reports whether text is a manual page: one of the macros at its start, before
// any text, declares the title.
func isManual(text []byte) bool {
	text = text[:min(len(text), 16<<10)]
	if bytes.IndexByte(text, 0) >= 0 {
		return false
	}
	m := manual{defined: map[string]string{}}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		s, ignored := string(bytes.TrimSpace(line)), m.until != ""
		m.line(s)
		switch {
		case s == "", ignored, m.until != "":
		case !strings.ContainsRune(`.'\`, rune(s[0])):
			return false
		case strings.HasPrefix(s, ".TH "), strings.HasPrefix(s, ".Dd"), strings.HasPrefix(s, ".Dt "), strings.HasPrefix(s, ".so "):
			return true
		}
	}
	return false
}

// manual is the state of a conversion.
type manual struct {
	literal bool              // between .nf and .fi, where lines are code
	until   string            // the macro that ends a definition or comment, "" outside of one
	macro   string            // that is being defined
	defined map[string]string // "nf" or "fi" for a macro of the page with this request, "" for one that writes its arguments, else "."
	next    int               // the level of a heading whose text is on the next line, 0 for none
	name    string            // of the command, from .Nm
}

// condition matches the start of a line that applies on terminals only.
var condition = regexp.MustCompile(`^(?:[.'][ \t]*i[ef][ \t]+n[ \t]+)+`)

// line converts one line.
func (m *manual) line(s string) string {
	s = condition.ReplaceAllString(strings.TrimSuffix(s, `\{\`), "") // which starts a block
	isText := s == "" || s[0] != '.' && s[0] != '\''
	macro, rest := "", ""
	if !isText {
		macro, rest, _ = strings.Cut(strings.TrimLeft(s[1:], " \t"), " ")
	}
	switch {
	case m.until != "" && macro == m.until:
		m.until = ""
		return ""
	case m.until != "":
		if macro == "nf" || macro == "fi" || isText && strings.Contains(s, `\$`) {
			m.defined[m.macro] = macro
		}
		return ""
	case isText:
		return m.text(s)
	}
	args := arguments(rest)
	switch macro {
	case "TH", "Dt":
		if len(args) > 1 {
			return m.heading(1, args[0]+"("+args[1]+")")
		}
		return m.heading(1, strings.Join(args, " "))
	case "SH", "Sh":
		return m.heading(2, strings.Join(args, " "))
	case "SS", "Ss":
		return m.heading(3, strings.Join(args, " "))
	case "nf", "EX", "Bd":
		m.literal = true
	case "fi", "EE", "Ed":
		m.literal = false
	case "ig":
		m.until = cmp.Or(strings.Join(args, ""), ".")
	case "de", "am":
		args = append(args, "", "")
		m.macro, m.until, m.defined[args[0]] = args[0], cmp.Or(args[1], "."), "."
	case "IP", "It":
		if macro == "IP" && len(args) > 1 {
			args = args[:1]
		}
		if text := m.inline(macro, args); text != "" {
			return "- " + text
		}
	case "Nm":
		if len(args) > 0 && m.name == "" {
			m.name = args[0]
		} else if len(args) == 0 {
			args = []string{m.name}
		}
		return m.text(strings.Join(args, " "))
	case "BR", "BI", "IB", "IR", "RB", "RI":
		return m.text(strings.Join(args, ""))
	case "B", "I", "SB", "SM", "R", "UR", "URL", "MT":
		return m.text(strings.Join(args, " "))
	default:
		if request, ok := m.defined[macro]; ok && request == "" {
			return m.text(strings.Join(args, " "))
		} else if ok {
			m.literal = request == "nf" || request == "." && m.literal
		} else if len(macro) == 2 && 'A' <= macro[0] && macro[0] <= 'Z' && 'a' <= macro[1] && macro[1] <= 'z' && !strings.Contains(" Dd Os Pp Bl El Rs Re ", " "+macro+" ") {
			return m.text(m.inline(macro, args))
		}
	}
	return ""
}

// heading returns a heading. If text is empty, the next line of text is the heading.
func (m *manual) heading(level int, text string) string {
	m.literal, m.next = false, 0
	if text = strings.TrimSpace(roff(text)); text == "" {
		m.next = level
		return ""
	}
	return strings.Repeat("#", level) + " " + escape(text)
}

// text converts a line of text.
func (m *manual) text(s string) string {
	if m.next > 0 && strings.TrimSpace(s) != "" {
		return m.heading(m.next, s)
	}
	s = strings.TrimRight(roff(s), " ")
	switch {
	case s == "":
		return ""
	case m.literal:
		return "    " + s
	}
	return escapeStart(escape(strings.TrimLeft(s, " ")))
}

// inline converts the arguments of an mdoc macro, which may contain other macros.
func (m *manual) inline(macro string, args []string) string {
	var b strings.Builder
	glue := ""
	for _, word := range append([]string{macro}, args...) {
		switch word {
		case "Fl":
			b.WriteString(glue + "-")
			glue = ""
			continue
		case "Op", "Oo", "Oc", "Ar", "Pa", "Ic", "Cm", "Li", "Em", "Sy", "Xr", "It", "IP", "Ns", "Nd", "Ev", "Va", "Dv", "Ql", "Dq", "Sq", "Pq", "Fn", "Fa", "Ft", "In", "Lk", "Bx", "No":
			continue
		}
		b.WriteString(glue + roff(word))
		glue = " "
	}
	return strings.TrimSpace(b.String())
}

// argument matches an argument of a macro. Quotes and backslashes keep words together,
// and two quotes inside of quotes are one.
var argument = regexp.MustCompile(`"((?:[^"]|"")*)"?|(?:[^ \t\\]|\\.?)+`)

// arguments splits the arguments of a macro, which end with a comment.
func arguments(s string) []string {
	var args []string
	for _, m := range argument.FindAllStringSubmatch(s, -1) {
		if strings.HasPrefix(m[0], `\"`) {
			break
		}
		if m[0][0] == '"' {
			m[0] = strings.ReplaceAll(m[1], `""`, `"`)
		}
		args = append(args, m[0])
	}
	return args
}

var roffNames = map[string]string{
	"aq": "'", "cq": "'", "oq": "'", "lq": `"`, "rq": `"`, "dq": `"`, "em": "—", "en": "–", "bu": "•", "co": "©", "rg": "®", "tm": "™",
	"rs": `\`, "ti": "~", "ha": "^", "ga": "`", "hy": "-", "mi": "-", "->": "→", "<-": "←", "<=": "≤", ">=": "≥", "mu": "×", "de": "°", "la": "<", "ra": ">", "or": "|", "lB": "[", "rB": "]", "lC": "{", "rC": "}",
}

// maxRoffName is the most bytes of a name or an argument of an escape. It keeps the work
// proportional to the length of the line.
const maxRoffName = 256

// roff removes roff escapes from a text, and decodes those that denote characters.
func roff(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '"', '#': // a comment
			return b.String()
		case 'f', 'F', 'm', 'n', 'g', 'k', 'M', 'Y', 'V':
			i += nameLength(s[i+1:])
		case 's': // a size: one digit, perhaps with a sign
			if i+1 < len(s) && strings.IndexByte("+-", s[i+1]) >= 0 {
				i++
			}
			i++
		case '(', '[', '*':
			at := i // of the name, which includes the bracket
			if c == '*' {
				at++
			}
			end := at + nameLength(s[at:])
			b.WriteString(roffNames[strings.Trim(s[at:end], "([]")])
			i = max(i, end-1)
		case 'h', 'v', 'w', 'o', 'L', 'l', 'D', 'X', 'Z', 'b', 'z': // an argument between delimiters
			if i+1 < len(s) {
				if end := strings.IndexByte(s[i+2:min(len(s), i+2+maxRoffName)], s[i+1]); end >= 0 {
					i += end + 2
				}
			}
		case '&', '|', '^', '/', ',', '%', ':', 'c', '{', '}', ')', 'd', 'u', 'p':
		case ' ', '~', '0', 't':
			b.WriteByte(' ')
		case 'e', 'E':
			b.WriteByte('\\')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// nameLength returns the length of the name after an escape: x, (xx or [xxx].
func nameLength(s string) int {
	switch {
	case s == "":
		return 0
	case s[0] == '(':
		return min(3, len(s))
	case s[0] == '[':
		return strings.IndexByte(s[:min(len(s), maxRoffName)], ']') + 1
	}
	return 1
}
