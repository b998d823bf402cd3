package markdown

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"
)

// build makes the sections of src[from:] from its outline. text is src with normalised
// line endings.
func (d *Document) build(src, text []byte, from int, out scanned) {
	used := slugger{}
	var aliases []mark
	var tops []heading
	for _, h := range out.heads {
		anchor := ""
		if h.id != "" {
			if anchor = anchorID(h.id); anchor != h.id {
				aliases = append(aliases, mark{name: h.id, at: h.start})
			} else if strings.Contains(anchor, ".") {
				aliases = append(aliases, mark{name: Slug(h.id), at: h.start})
			}
		} else {
			anchor = Slug(h.slug)
		}
		h.id = used.unique(anchor)
		if h.nested {
			aliases = append(aliases, mark{name: h.id, at: h.start})
			continue
		}
		tops = append(tops, h)
	}

	next := func(i int) int { // the start of heading i
		if i < len(tops) {
			return tops[i].start
		}
		return len(src)
	}
	if len(tops) == 0 && len(src) > 0 || len(bytes.TrimSpace(text[from:next(0)])) > 0 {
		d.Sections = append(d.Sections, Section{Parent: -1, Start: from, OwnEnd: next(0), End: next(0)})
	}
	for i, h := range tops {
		d.Sections = append(d.Sections, Section{
			Level: h.level, Heading: h.text, Anchor: h.id, Parent: -1,
			Start: h.start, OwnEnd: next(i + 1), End: len(src),
		})
	}
	d.nest()
	d.limit(src, tops)
	d.measure(src, text)
	for _, m := range append(aliases, out.marks...) {
		d.alias(text, m)
	}
}

// nest sets Parent, Trail and End from the levels.
func (d *Document) nest() {
	var open []int // indices of the possible parents of the next section, outermost first
	for i := range d.Sections {
		s := &d.Sections[i]
		if s.Level == 0 {
			continue
		}
		for len(open) > 0 && d.Sections[open[len(open)-1]].Level >= s.Level {
			d.Sections[open[len(open)-1]].End = s.Start
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			s.Parent = open[len(open)-1]
			up := d.Sections[s.Parent].Trail
			s.Trail = append(up[:len(up):len(up)], s.Heading)
		} else {
			s.Trail = []string{s.Heading}
		}
		open = append(open, i)
	}
}

// limit applies the end and within of the headings tops to the last len(tops) sections.
func (d *Document) limit(src []byte, tops []heading) {
	first := len(d.Sections) - len(tops)
	for i, h := range tops {
		s := &d.Sections[first+i]
		if h.end > 0 {
			if len(bytes.TrimSpace(src[min(h.end, s.End):s.End])) > 0 {
				s.End = h.end
			}
			s.OwnEnd = min(s.OwnEnd, s.End)
		}
		if h.within != "" {
			above := s.Trail[:len(s.Trail)-1]
			s.Trail = append(above[:len(above):len(above)], h.within, s.Heading)
		}
	}
}

// measure sets the lines, hashes and fingerprints of the sections.
func (d *Document) measure(src, text []byte) {
	lines := NewLines(text)
	for i := range d.Sections {
		s := &d.Sections[i]
		start := s.Start
		if s.Level == 0 {
			if n := leadingBlank(text[s.Start:s.OwnEnd]); s.Start+n < s.OwnEnd {
				start += n
			}
		}
		s.StartLine = lines.Of(start)
		s.OwnEndLine = max(s.StartLine, lines.Of(lastText(text, s.Start, s.OwnEnd)))
		s.EndLine = max(s.StartLine, lines.Of(lastText(text, s.Start, s.End)))
		sum := sha256.Sum256(TrimBlankLines(src[s.Start:s.End]))
		s.Hash = hex.EncodeToString(sum[:])
		s.Fingerprint = Fingerprint(src[s.Start:s.OwnEnd])
	}
}

// alias adds a mark to d.Aliases unless its name is taken.
func (d *Document) alias(text []byte, m mark) {
	i := d.At(m.at)
	if i < 0 || m.name == "" {
		return
	}
	// A mark on its own line above a heading names the heading.
	if s := d.Sections[i]; m.next && i+1 < len(d.Sections) && m.end <= s.OwnEnd &&
		onlyTags(text[m.end:s.OwnEnd]) {
		line := bytes.LastIndexByte(text[s.Start:m.at], '\n') + 1 + s.Start
		if (s.Level == 0 || line > s.Start) && onlyTags(text[line:m.at]) {
			i++
		}
	}
	if d.Sections[i].Anchor == m.name {
		return
	}
	if _, taken := d.Aliases[m.name]; taken {
		return
	}
	if d.Aliases == nil {
		d.Aliases = map[string]int{}
	}
	d.Aliases[m.name] = i
}

// onlyTags reports whether text is at most maxTag bytes of blanks and HTML tags.
func onlyTags(text []byte) bool {
	if len(text) > maxTag {
		return false
	}
	for i := 0; i < len(text); {
		switch text[i] {
		case ' ', '\t', '\n':
			i++
		case '<':
			_, end := tag(text, i)
			if end == i {
				return false
			}
			i = end
		default:
			return false
		}
	}
	return true
}

// At returns the index of the section whose own text contains the byte at offset, or -1
// if there is none, as in the front matter.
func (d *Document) At(offset int) int {
	i := sort.Search(len(d.Sections), func(i int) bool { return d.Sections[i].Start > offset }) - 1
	if i < 0 || offset >= d.Sections[i].OwnEnd {
		return -1
	}
	return i
}

// TrimBlankLines returns text without leading and trailing blank lines and without its
// last line break. It keeps the indentation of the first line.
func TrimBlankLines(text []byte) []byte {
	text = text[leadingBlank(text):]
	end := len(bytes.TrimRight(text, blanks))
	if n := bytes.IndexAny(text[end:], "\r\n"); n >= 0 {
		text = text[:end+n]
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return text[:0]
	}
	return text
}

const blanks = " \t\r\n\f\v"

// leadingBlank returns the length of the blank lines at the start of text.
func leadingBlank(text []byte) int {
	return bytes.LastIndexAny(text[:len(text)-len(bytes.TrimLeft(text, blanks))], "\r\n") + 1
}

// lastText returns the offset of the last byte of text[start:end] that is not blank, or
// start if all bytes are blank.
func lastText(text []byte, start, end int) int {
	return max(start, start+len(bytes.TrimRight(text[start:end], blanks))-1)
}

// Lines holds the offset of every line of a text. A final line break does not start another
// line, and an empty text has no lines.
type Lines []int

// NewLines returns the lines of a text.
func NewLines(text []byte) Lines {
	text = normalise(text, 0)
	l := make(Lines, 0, bytes.Count(text, []byte{'\n'})+1)
	for at := 0; at < len(text); {
		l = append(l, at)
		_, at = lineAt(text, at)
	}
	return l
}

// Of returns the line, from 1, of the byte at offset.
func (l Lines) Of(offset int) int { return max(1, sort.SearchInts(l, offset+1)) }
