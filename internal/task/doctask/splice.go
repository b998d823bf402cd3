package doctask

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/markdown"
	"cairn/internal/store"
)

// splice puts text in the place of src[from:to]. src is not changed.
func splice(src []byte, from, to int, text string) []byte {
	return slices.Concat(src[:from], []byte(text), src[to:])
}

// eol is the document's line ending.
func (d *document) eol() string {
	n := bytes.IndexAny(d.src, "\r\n")
	switch {
	case n < 0 || d.src[n] == '\n':
		return "\n"
	case n+1 < len(d.src) && d.src[n+1] == '\n':
		return "\r\n"
	}
	return "\r"
}

// textEnd is the offset behind the last byte of src[from:to] that is not blank.
func (d *document) textEnd(from, to int) int {
	return from + len(bytes.TrimRight(d.src[from:to], " \t\r\n"))
}

// lines gives text the document's line endings and takes the blank lines at
// both ends away.
func (d *document) lines(text string) string {
	text = string(markdown.TrimBlankLines([]byte(text)))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.ReplaceAll(text, "\n", d.eol())
}

// appendOwn puts text at the end of section i's own text: behind a list
// directly when it continues one, otherwise as a paragraph of its own.
func (d *document) appendOwn(i int, text string) []byte {
	s := d.md.Sections[i]
	at := d.textEnd(s.Start, s.OwnEnd)
	gap := d.eol()
	last := string(d.src[bytes.LastIndexAny(d.src[:at], "\r\n")+1 : at])
	if !isItem(last) || !isItem(text) {
		gap += d.eol()
	}
	return splice(d.src, at, at, gap+text+d.tail(at))
}

// tail is what has to follow a text put in at an offset, so that what comes
// next is still apart from it.
func (d *document) tail(at int) string {
	rest := d.src[at:]
	if len(bytes.TrimSpace(rest)) == 0 {
		if len(rest) == 0 {
			return d.eol()
		}
		return ""
	}
	if bytes.Count(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t\r\n"))], []byte(d.eol())) < 2 {
		return d.eol()
	}
	return ""
}

func isItem(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && line[1] == ' '
}

// Limits of what is written.
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
		return "", refuse(InvalidTitle, ctx, "A title is empty or not valid UTF-8")
	case utf8.RuneCountInString(title) > maxTitle:
		return "", refuse(InvalidTitle, ctx, "Title has more than %d characters: %s", maxTitle, clip(title))
	case strings.IndexFunc(title, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) >= 0:
		return "", refuse(InvalidTitle, ctx, "Title holds a line break or control character: %s", clip(title))
	case markdown.Slug(title) == "":
		return "", refuse(InvalidTitle, ctx, "Title holds neither letter nor digit: %s", clip(title))
	}
	return title, nil
}

func checkContent(content string) error {
	if len(content) > maxBody || !utf8.ValidString(content) || strings.ContainsRune(content, 0) {
		return refuse(InvalidSectionContent, evidence{"length": len(content), "max": maxBody}, "Content is longer than %d bytes or not valid UTF-8", maxBody)
	}
	return nil
}

// heading is an ATX heading with its content below it.
func (d *document) heading(level int, title, content string) string {
	text := strings.Repeat("#", level) + " " + title
	if body := d.lines(content); body != "" {
		text += d.eol() + d.eol() + body
	}
	return text
}

// insert puts a new section at an offset, apart by blank lines.
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

// checkShape parses what an edit made and makes sure that it did to the
// outline what it should: sections [from, to) of the old document gave way to
// new ones, whose levels are above floor, and every other heading is what it
// was. It catches text that swallows or makes headings, such as an unclosed code
// block. first is the index of the first new section.
func (d *document) checkShape(src []byte, from, to, floor int) (*document, error) {
	after := &document{path: d.path, src: src, md: markdown.Parse(d.path, src, nil)}
	old, now := d.md.Sections, after.md.Sections
	fresh := len(now) - (len(old) - (to - from))
	bad := fresh < 0 || !sameOutline(old[:from], now[:min(from, len(now))]) || d.md.FrontMatter.End != after.md.FrontMatter.End
	if !bad {
		bad = !sameOutline(old[to:], now[from+fresh:])
		for _, s := range now[from : from+fresh] {
			bad = bad || s.Level <= floor
		}
	}
	if bad {
		return nil, refuse(InvalidSectionContent, evidence{"document": d.address()},
			"Content would change other sections of %s: it holds a heading of level %d or higher, or code that is not closed", d.address(), max(floor, 1))
	}
	return after, nil
}

func sameOutline(a, b []store.Section) bool {
	return slices.EqualFunc(a, b, func(x, y store.Section) bool { return x.Level == y.Level && x.Heading == y.Heading })
}

// subtreeEnd is the index behind section i and all sections below it.
func (d *document) subtreeEnd(i int) int {
	end := i + 1
	for end < len(d.md.Sections) && d.md.Sections[end].Start < d.md.Sections[i].End {
		end++
	}
	return end
}

// duplicate refuses a title that a section below parent has already.
func (d *document) duplicate(parent, level int, title string) error {
	for _, s := range d.md.Sections {
		if s.Parent == parent && s.Level == level && markdown.Slug(s.Heading) == markdown.Slug(title) {
			return refuse(DuplicateHeading, evidence{"title": title, "section": s.Anchor, "document": d.address()},
				"There is a section %q already at that place: #%s", s.Heading, s.Anchor)
		}
	}
	return nil
}
