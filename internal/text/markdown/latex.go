package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// latexCommands are the commands that begin sections, outermost first.
var latexCommands = []string{"part", "chapter", "section", "subsection", "subsubsection", "paragraph"}

var latexHeading = pattern(`^\s*\\(part|chapter|section|subsection|subsubsection|paragraph)\*?\s*(?:\[[^\]]*\])?\s*\{`)

// latexVerbatim are the environments in which a backslash does not begin a command.
var latexVerbatim = []string{"verbatim", "Verbatim", "lstlisting", "minted", "comment"}

// parseLaTeX finds the sections and labels of LaTeX. It applies only these rules:
//
//   - A sectioning command is the first command on its line. Its title ends at the
//     closing brace, at most three lines below. The outermost command in use has level 1.
//   - "\label{id}" names the section that contains it.
//   - Comments and verbatim environments are skipped. Macros are not expanded, and
//     other files are not included.
func parseLaTeX(_ string, src []byte, body int) scanned {
	var out scanned
	verbatim := ""
	top := len(latexCommands)
	lines := splitLines(src, body)
	for i, ln := range lines {
		line := ln.of(src)
		if at := bytes.IndexByte(line, '\\'); at < 0 || bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("%")) {
			continue
		}
		if verbatim != "" {
			if bytes.Contains(line, []byte(`\end{`+verbatim+`}`)) {
				verbatim = ""
			}
			continue
		}
		if _, rest, ok := bytes.Cut(line, []byte(`\begin{`)); ok {
			name, _, _ := bytes.Cut(rest[:min(len(rest), 32)], []byte("}"))
			if slices.Contains(latexVerbatim, string(name)) && !bytes.Contains(rest, []byte(`\end{`)) {
				verbatim = string(name)
			}
		}
		for rest := line; ; {
			_, after, ok := bytes.Cut(rest, []byte(`\label{`))
			if !ok {
				break
			}
			id, tail, _ := bytes.Cut(after, []byte("}"))
			out.mark(mark{name: string(id[:min(len(id), MaxHeading+1)]), at: ln.start, end: ln.end})
			rest = tail
		}
		m := latexHeading().FindSubmatchIndex(line)
		if m == nil {
			continue
		}
		level := slices.Index(latexCommands, string(line[m[2]:m[3]]))
		end := lines[min(i+3, len(lines)-1)].end
		text := latexText(latexArgument(src[ln.start+m[1] : min(end, ln.start+m[1]+2*MaxHeading)]))
		text = text[:runeStart(text, MaxHeading)]
		if !out.head(heading{level: level, text: text, slug: text, start: ln.start}) {
			break
		}
		top = min(top, level)
	}
	for i := range out.heads {
		out.heads[i].level += 1 - top
	}
	return out
}

// latexArgument returns the argument whose opening brace precedes src. Without a closing
// brace it is the rest of the line.
func latexArgument(src []byte) string {
	depth := 1
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return string(src[:i])
			}
		}
	}
	line, _, _ := bytes.Cut(src, []byte("\n"))
	return string(line)
}

var latexCommand = pattern(`\\label\{[^}]*\}|\\(?:[a-zA-Z]+\*?|[\\,;:! ])[ \t]*|[{}]|\\`)

// latexText returns the text of a title without its commands.
func latexText(s string) string {
	s = strings.NewReplacer(`\&`, "&", `\%`, "%", `\_`, "_", `\#`, "#", `\$`, "$", "~", " ", "``", `"`, "''", `"`, "---", "\u2014", "--", "\u2013").Replace(s)
	return strings.ToValidUTF8(collapse(latexCommand().ReplaceAllStringFunc(s, func(c string) string {
		if strings.HasPrefix(c, `\\`) || c == `\ ` || strings.HasSuffix(c, " ") {
			return " "
		}
		return ""
	})), "\ufffd")
}
