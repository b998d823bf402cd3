package convert

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var errScanned = &Error{"no text (scanned pages?)"}

// PDF converts the text of a PDF file. The entries of its outline become headings
// with the page number. A page that begins within an entry becomes a section below it.
// Page n has the anchor page-n.
func PDF(w *writer, data []byte) error {
	f := openPDF(w, data)
	pages := f.pages()
	numbers := map[ref]int{}
	for i, p := range pages {
		if p.ref != 0 {
			numbers[p.ref] = i + 1
		}
	}
	entries := f.outline(numbers)
	w.heading(1, f.title(), "")
	fonts := map[ref]*pdfFont{}
	level, found := 1, false
	for i, page := range pages {
		p := pdfPage{f: f, fonts: fonts}
		p.draw(f.content(page.dict), page.resources, identity, 0)
		p.endLine()
		p.lines = append(p.lines, f.notes(page.dict)...)
		found = found || len(p.lines) > 0
		level = writePDFPage(w, i+1, p.lines, entries[i+1], level)
	}
	if !found {
		return errScanned
	}
	return nil
}

// title returns the title from the properties of the file. It returns the file name if
// there is no title or a program generated it.
func (f *pdfFile) title() string {
	title := f.text(f.dict(f.trailer["Info"])["Title"])
	switch {
	case title == "", strings.Contains(strings.ToLower(title), "untitled"), strings.HasPrefix(title, "Microsoft "),
		slices.Contains([]string{".dvi", ".tex", ".doc", ".docx", ".ps", ".indd", ".qxd"}, path.Ext(title)):
		return f.w.name
	}
	return title
}

// pdfNode is a page with the resources it inherits.
type pdfNode struct {
	dict
	ref       ref // 0 for none
	resources dict
}

// pages returns the pages in order, each page once.
func (f *pdfFile) pages() []pdfNode {
	var pages []pdfNode
	seen := map[ref]bool{}
	var visit func(v any, resources dict, depth int)
	visit = func(v any, resources dict, depth int) {
		f.w.step()
		r, _ := v.(ref)
		d := f.dict(v)
		if d == nil || depth > maxDepth || r != 0 && seen[r] {
			return
		}
		seen[r] = true
		if own := f.dict(d["Resources"]); own != nil {
			resources = own
		}
		if kids := as[array](f, d["Kids"]); kids != nil {
			for _, kid := range kids {
				visit(kid, resources, depth+1)
			}
			return
		}
		pages = append(pages, pdfNode{d, r, resources})
	}
	visit(f.dict(f.trailer["Root"])["Pages"], nil, 0)
	return pages
}

// content returns the concatenated content streams of a page.
func (f *pdfFile) content(page dict) []byte {
	parts := as[array](f, page["Contents"])
	if parts == nil {
		parts = array{page["Contents"]}
	}
	var all []byte
	for _, part := range parts {
		if s, ok := f.resolve(part).(*stream); ok {
			data := f.decode(s)
			f.w.spend(32 + len(data))
			all = append(append(all, data...), '\n')
		}
	}
	return all
}

// notes returns the text annotations of a page.
func (f *pdfFile) notes(page dict) []pdfLine {
	var notes []pdfLine
	for _, v := range as[array](f, page["Annots"]) {
		f.w.step()
		note := f.dict(v)
		if kind := as[name](f, note["Subtype"]); kind == "Link" || kind == "Popup" { // which repeats the text of another annotation
			continue
		}
		if text := f.text(note["Contents"]); text != "" {
			notes = append(notes, pdfLine{text: text, apart: true})
		}
	}
	return notes
}

// pdfEntry is an entry of the outline.
type pdfEntry struct {
	level   int // from 1
	title   string
	letters string // of the title
}

// maxEntries is the maximum number of outline entries, and of named destinations.
const maxEntries = 10_000

// outline returns the outline entries by page number.
func (f *pdfFile) outline(numbers map[ref]int) map[int][]pdfEntry {
	root := f.dict(f.trailer["Root"])
	names := map[string]any{}
	for key, v := range f.dict(root["Dests"]) {
		names[string(key)] = v
	}
	f.destinations(f.dict(root["Names"])["Dests"], names, map[ref]bool{})
	entries := map[int][]pdfEntry{}
	seen := map[ref]bool{}
	var visit func(v any, level int)
	visit = func(v any, level int) {
		for len(seen) < maxEntries && level < 10 {
			r, ok := v.(ref)
			d := f.dict(v)
			if !ok || d == nil || seen[r] {
				return
			}
			seen[r] = true
			target := f.resolve(d["Dest"])
			if target == nil {
				target = f.resolve(f.dict(d["A"])["D"])
			}
			if page := f.pageOf(target, names, numbers); page > 0 {
				if title := f.text(d["Title"]); title != "" {
					entries[page] = append(entries[page], pdfEntry{level, title, letters(title)})
				}
			}
			visit(d["First"], level+1)
			v = d["Next"]
		}
	}
	visit(f.dict(root["Outlines"])["First"], 1)
	return entries
}

// destinations adds the named destinations of a name tree to names.
func (f *pdfFile) destinations(v any, names map[string]any, seen map[ref]bool) {
	r, ok := v.(ref)
	node := f.dict(v)
	if ok && seen[r] || len(seen) > maxEntries || len(names) > maxEntries {
		return
	}
	seen[r] = true
	list := as[array](f, node["Names"])
	for i := 0; i+1 < len(list); i += 2 {
		f.w.step()
		if key, ok := f.resolve(list[i]).(string); ok {
			names[key] = list[i+1]
		}
	}
	for _, kid := range as[array](f, node["Kids"]) {
		f.w.step()
		if _, ok := kid.(ref); ok {
			f.destinations(kid, names, seen)
		}
	}
}

// pageOf returns the page number of a destination, 0 for none.
func (f *pdfFile) pageOf(target any, names map[string]any, numbers map[ref]int) int {
	switch key := target.(type) {
	case name:
		target = f.resolve(names[string(key)])
	case string:
		target = f.resolve(names[key])
	}
	if d, ok := target.(dict); ok {
		target = f.resolve(d["D"])
	}
	if a, ok := target.(array); ok && len(a) > 0 {
		if r, ok := a[0].(ref); ok {
			return numbers[r]
		}
	}
	return 0
}

// text decodes a text string of the document, such as a title. White space becomes one
// blank.
func (f *pdfFile) text(v any) string {
	s := as[string](f, v)
	f.w.spend(8 * len(s))
	return strings.Join(strings.Fields(string(bytes.ToValidUTF8(utf8Text([]byte(s), ""), nil))), " ")
}

// writePDFPage writes a page. level is the heading level of the last outline entry before
// the page; writePDFPage returns the level after the page.
func writePDFPage(w *writer, number int, text []pdfLine, entries []pdfEntry, level int) int {
	anchor := "page-" + strconv.Itoa(number)
	page := " (page " + strconv.Itoa(number) + ")"
	var block []string
	flush := func() {
		if len(block) > 0 {
			w.paragraph(strings.Join(block, "\n"))
			block = nil
		}
	}
	head := func(e pdfEntry) {
		flush()
		level = min(e.level+1, 5)
		w.heading(level, e.title+page, anchor)
		anchor = "" // that of the first heading
	}
	spelled := make([]string, len(text))
	if len(entries) > 0 {
		for i, line := range text {
			spelled[i] = letters(line.text)
		}
	}
	for i := 0; i < len(text); i++ {
		for n, e := range entries {
			if lines := w.titleLines(spelled[i:], e.letters); lines > 0 {
				for _, skipped := range entries[:n+1] {
					head(skipped)
				}
				entries = entries[n+1:]
				i += lines
				break
			}
		}
		if i >= len(text) {
			break
		}
		if anchor != "" {
			w.heading(level+1, "Page "+strconv.Itoa(number), anchor)
			anchor = ""
		}
		if text[i].apart {
			flush()
		}
		block = append(block, escape(text[i].text))
	}
	flush()
	for _, e := range entries {
		head(e)
	}
	return level
}

// titleLines returns the number of lines, at most three, that form the title of an entry,
// with or without a section number. It returns 0 if the lines are not the title. Both are
// given by their letters.
func (w *writer) titleLines(lines []string, title string) int {
	w.spend(64 + len(title)/8)
	got := ""
	for n := range min(len(lines), 3) {
		if got += lines[n]; got == title || strings.TrimLeft(got, "0123456789") == title && title != "" {
			return n + 1
		}
		if len(got) > len(title)+8 {
			break
		}
	}
	return 0
}

// letters returns the letters and digits of a text in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
