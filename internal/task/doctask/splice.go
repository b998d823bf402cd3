package doctask

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
)

// splice returns src with src[from:to] replaced. It does not change src.
func splice(src []byte, from, to int, text string) []byte {
	return slices.Concat(src[:from], []byte(text), src[to:])
}

// eol returns the document's line ending.
func (d *document) eol() string {
	if end, next := lineEnd(d.src, 0, len(d.src)); end < next {
		return string(d.src[end:next])
	}
	return "\n"
}

// lastLineEnd returns the end of the last line of src[from:to] that is not blank, including
// trailing blanks.
func (d *document) lastLineEnd(from, to int) int {
	end, _ := lineEnd(d.src, from+len(bytes.TrimRight(d.src[from:to], " \t\r\n")), to)
	return end
}

// lines returns text with the line endings of the document and without leading and trailing
// blank lines.
func (d *document) lines(text string) string {
	text = string(markdown.TrimBlankLines([]byte(text)))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.ReplaceAll(text, "\n", d.eol())
}

// appendOwn appends text to section i's own text: directly if it continues a list,
// otherwise as a new paragraph.
func (d *document) appendOwn(i int, text string) []byte {
	s := d.md().Sections[i]
	at := d.lastLineEnd(s.Start, s.OwnEnd)
	gap := d.eol()
	last := string(d.src[bytes.LastIndexAny(d.src[:at], "\r\n")+1 : at])
	if !isItem(last) || !isItem(text) {
		gap += d.eol()
	}
	return splice(d.src, at, at, gap+text+d.tail(at))
}

// tail returns the line breaks that must follow a text inserted at an offset.
func (d *document) tail(at int) string {
	rest := d.src[at:]
	text := bytes.TrimLeft(rest, " \t\r\n")
	if len(rest) == 0 || len(text) > 0 && bytes.Count(rest[:len(rest)-len(text)], []byte(d.eol())) < 2 {
		return d.eol()
	}
	return ""
}

func isItem(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && line[1] == ' '
}

// Limits of titles and content.
const (
	maxTitle = 200       // characters
	maxBody  = 100 << 10 // bytes of one section's content
	maxLevel = 6
)

func checkTitle(title string) (string, error) {
	title = strings.TrimSpace(title)
	ctx := evidence{"title": clip(title)}
	switch {
	case title == "" || !utf8.ValidString(title):
		return "", refuse(task.InvalidTitle, ctx, "A title is empty or not valid UTF-8")
	case utf8.RuneCountInString(title) > maxTitle:
		return "", refuse(task.InvalidTitle, ctx, "Title has more than %d characters: %s", maxTitle, clip(title))
	case strings.IndexFunc(title, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) >= 0:
		return "", refuse(task.InvalidTitle, ctx, "Title holds a line break or control character: %s", clip(title))
	case markdown.Slug(title) == "":
		return "", refuse(task.InvalidTitle, ctx, "Title holds neither letter nor digit: %s", clip(title))
	}
	return title, nil
}

func checkContent(content string) error {
	if len(content) > maxBody || !utf8.ValidString(content) || strings.ContainsRune(content, 0) {
		return refuse(task.InvalidSectionContent, evidence{"length": len(content), "max": maxBody}, "Content is longer than %d bytes or not valid UTF-8", maxBody)
	}
	return nil
}

// heading returns an ATX heading with its content.
func (d *document) heading(level int, title, content string) string {
	text := strings.Repeat("#", level) + " " + title
	if body := d.lines(content); body != "" {
		text += d.eol() + d.eol() + body
	}
	return text
}

// insert inserts a new section at an offset, separated by blank lines.
func (d *document) insert(at int, text string) []byte {
	before := d.eol() + d.eol()
	head := d.src[:at]
	if len(bytes.TrimSpace(head)) == 0 {
		before = ""
	} else if trimmed := bytes.TrimRight(head, " \t\r\n"); len(trimmed) < len(head) {
		have := bytes.Count(head[len(trimmed):], []byte(d.eol()))
		before = strings.Repeat(d.eol(), max(0, 2-have))
	}
	return splice(d.src, at, at, before+text+d.tail(at))
}

// checkShape parses the result of an edit. It returns an error unless the new sections that
// replace the sections [from, to) have levels above floor, and all other headings are
// unchanged. Text can hide or create headings, for example by an unclosed code block.
func (d *document) checkShape(src []byte, from, to, floor int) (*document, error) {
	after := newDocument(d.path, src, files.Stamp{})
	old, now := d.md().Sections, after.md().Sections
	fresh := len(now) - (len(old) - (to - from))
	bad := fresh < 0 || !sameOutline(old[:from], now[:min(from, len(now))]) || d.md().FrontMatter.End != after.md().FrontMatter.End
	if !bad {
		bad = !sameOutline(old[to:], now[from+fresh:])
		for _, s := range now[from : from+fresh] {
			bad = bad || s.Level <= floor
		}
	}
	if bad {
		return nil, refuse(task.InvalidSectionContent, evidence{"document": d.address()},
			"Content would change other sections of %s: it holds a heading of level %d or higher, or code that is not closed", d.address(), max(floor, 1))
	}
	return after, nil
}

func sameOutline(a, b []store.Section) bool {
	return slices.EqualFunc(a, b, func(x, y store.Section) bool { return x.Level == y.Level && x.Heading == y.Heading })
}

// subtreeEnd returns the index of the first section after section i and its subsections.
func (d *document) subtreeEnd(i int) int {
	end := i + 1
	for end < len(d.md().Sections) && d.md().Sections[end].Start < d.md().Sections[i].End {
		end++
	}
	return end
}

// duplicate returns an error if another section of the same parent and level has the title.
func (d *document) duplicate(parent, level int, title string) error {
	for _, s := range d.md().Sections {
		if s.Parent == parent && s.Level == level && markdown.Slug(s.Heading) == markdown.Slug(title) {
			return refuse(task.DuplicateHeading, evidence{"title": title, "section": s.Anchor, "document": d.address()},
				"There is a section %q already at that place: #%s", s.Heading, s.Anchor)
		}
	}
	return nil
}
