package doctask

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// marks maps the marks of check boxes to statuses, as in Obsidian. A blank, and any other
// punctuation mark, means pending.
var marks = map[byte]string{'x': done, 'X': done, '/': "in_progress", '-': "cancelled"}

// checkBox is an item of a task list, "- [ ] title" or "1. [x] title", with the
// lines indented below it.
type checkBox struct {
	title      string
	mark       int    // offset of the character between the brackets
	start, end int    // the item with its nested items, without the last line break
	textEnd    int    // the end of the lines before the first nested box
	status     string // that the mark denotes, "" for pending
	bullet     string // the marker and the blanks after it
	indent     string // blanks before the marker
	width      int    // columns of indent
	parent     int    // index of the enclosing box, -1 for none
	lines      []line // below the title, without the lines of nested boxes
}

var (
	boxLine  = regexp.MustCompile(`^([ \t]*)((?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[([ xX[:punct:]])\][ \t]+(\S.*?)[ \t]*$`)
	itemLine = regexp.MustCompile(`^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
)

// boxes returns the check boxes in lines, and the lines outside of check boxes.
func boxes(lines []line) (all []checkBox, outside []line) {
	var open []int             // the boxes that the line may belong to, outermost first
	list, code := false, false // whether the previous line is in a list, and in code
	for _, l := range lines {
		blank := strings.TrimSpace(l.text) == ""
		width := columns(l.text)
		if !blank && !(l.code && code) { // lines of code may have any indentation
			for len(open) > 0 && width <= all[open[len(open)-1]].width {
				open = open[:len(open)-1]
			}
			list = width > 0 && list || itemLine.MatchString(l.text)
		}
		code = l.code
		parent := -1
		if len(open) > 0 {
			parent = open[len(open)-1]
		}
		if m := boxLine.FindStringSubmatchIndex(l.text); m != nil && !l.code && (width < 4 || list) {
			open = append(open, len(all))
			all = append(all, checkBox{
				title: l.text[m[8]:m[9]], mark: l.start + m[6], status: marks[l.text[m[6]]], start: l.start, end: l.end, textEnd: l.end,
				indent: l.text[:m[3]], bullet: l.text[m[4]:m[5]], width: width, parent: parent,
			})
			for _, k := range open {
				all[k].end = l.end
			}
			continue
		}
		if parent < 0 {
			outside = append(outside, l)
			continue
		}
		b := &all[parent]
		b.lines = append(b.lines, l)
		if blank {
			continue
		}
		if parent == len(all)-1 { // before the first nested box
			b.textEnd = l.end
		}
		for _, k := range open {
			all[k].end = l.end
		}
	}
	return all, outside
}

// columns returns the width of a line's indentation. A tab advances to the next multiple of
// four.
func columns(text string) int {
	n := 0
	for _, c := range text {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// maxBoxSlug is the maximum length of the slug of a check box in characters. The title of a
// check box may be a paragraph.
const maxBoxSlug = 80

// boxSlug returns a slug for a title that is not in taken, and adds it to taken. It returns
// "" for a title without letters and digits.
func boxSlug(title string, taken map[string]bool) string {
	slug := markdown.Slug(title)
	if utf8.RuneCountInString(slug) > maxBoxSlug {
		slug = string([]rune(slug)[:maxBoxSlug])
		if at := strings.LastIndexByte(slug, '-'); at > 0 {
			slug = slug[:at]
		}
	}
	first := strings.Trim(slug, "-")
	slug = first
	for n := 1; taken[slug]; n++ {
		slug = first + "-" + strconv.Itoa(n)
	}
	taken[slug] = first != ""
	return slug
}

// inBox returns text indented as the lines below the title of a box.
func (d *document) inBox(b *checkBox, text string) string {
	indent := b.indent + strings.Repeat(" ", len(b.bullet))
	out := strings.Split(d.lines(text), d.eol())
	for i, l := range out {
		if strings.TrimSpace(l) != "" {
			out[i] = indent + l
		}
	}
	return strings.Join(out, d.eol())
}

// insertBox adds a check box after the one of all[at], and returns its slug.
func (d *document) insertBox(all []docTask, at int, title, content string) (*document, string, error) {
	title, err := checkTitle(title)
	if err != nil {
		return nil, "", err
	}
	if err := checkContent(content); err != nil {
		return nil, "", err
	}
	b := all[at].box
	text := d.eol() + b.indent + b.bullet + "[ ] " + title
	if body := d.inBox(b, content); strings.TrimSpace(body) != "" {
		text += d.eol() + body
	}
	next := at + 1
	for next < len(all) && all[next].start < b.end {
		next++
	}
	after, err := d.checkTasks(splice(d.src, b.end, b.end, text), next, next)
	if err != nil {
		return nil, "", err
	}
	now, _, _ := after.tasks()
	if next >= len(now) || now[next].title != title {
		return nil, "", refuse(task.InvalidTitle, evidence{"title": clip(title)}, "Title does not make a check box here: %s", clip(title))
	}
	return after, now[next].slug, nil
}

// editBox replaces the text below a check box. It keeps nested check boxes.
func (d *document) editBox(t docTask, content string) (*document, error) {
	if err := checkContent(content); err != nil {
		return nil, err
	}
	b := t.box
	end, _ := lineEnd(d.src, b.start, b.textEnd)
	text := d.eol() + d.inBox(b, content)
	all, _, _ := d.tasks()
	at := slices.IndexFunc(all, func(o docTask) bool { return o.start == t.start })
	return d.checkTasks(splice(d.src, end, b.textEnd, text), at, at+1)
}

// checkTasks parses the result of an edit of check boxes. It returns an error unless the
// sections are unchanged, and the tasks too, except for those in [from, to) and new ones there.
func (d *document) checkTasks(src []byte, from, to int) (*document, error) {
	after, err := d.checkShape(src, len(d.md().Sections), len(d.md().Sections), 0)
	if err != nil {
		return nil, err
	}
	before, _, _ := d.tasks()
	now, _, _ := after.tasks()
	same := func(x, y docTask) bool {
		return x.title == y.title && x.depth == y.depth && x.written == y.written && (!x.written || x.status == y.status)
	}
	behind := len(before) - to
	if len(after.md().Sections) != len(d.md().Sections) || len(now) < to+behind ||
		!slices.EqualFunc(before[:from], now[:from], same) || !slices.EqualFunc(before[to:], now[len(now)-behind:], same) {
		return nil, refuse(task.InvalidSectionContent, evidence{"document": d.address()},
			"Content would change other tasks of %s: it holds code that is not closed, or a list that takes in the next one", d.address())
	}
	return after, nil
}
