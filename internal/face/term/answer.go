package term

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"cairn/internal/face/view"
	"cairn/internal/text/markdown"
	"cairn/retriever"
)

// maxSnippetLines bounds the lines of text of one result, and minSnippetLines those of the
// best one if the screen has no room. A result has placeLines other lines, and the notes and
// the prompt need noteLines.
const maxSnippetLines, minSnippetLines, placeLines, noteLines = 4, 2, 2, 2

// Answer writes the results of a search, and the notes about them. The first result has the
// number before plus 1.
func (o *Output) Answer(answer *retriever.Answer, asked string, before int, p Places) {
	o.Results(answer, asked, before, p)
	for _, note := range view.Notes(answer) {
		o.Notes.Dim(note)
	}
	if answer.HasMore && answer.NextCursor != nil {
		o.Notes.Dim(fmt.Sprintf("%s in all; next page: --cursor %s", view.Count(answer.TotalCount, "document"), answer.Next()))
	}
}

// Results writes the results of a search, so that they fit the screen: each in two lines, and
// the best ones with lines of their text, as long as there is room.
func (o *Writer) Results(answer *retriever.Answer, asked string, before int, p Places) {
	var b strings.Builder
	m := view.NewMarker(asked)
	room := max(o.height-noteLines-placeLines*len(answer.Results), minSnippetLines)
	for i := range answer.Results {
		r := &answer.Results[i]
		if i > 0 && r.Content != "" {
			b.WriteByte('\n')
		}
		text := lines(r, m, o.width-6, min(room, maxSnippetLines))
		o.place(&b, before+i+1, r, p)
		o.trail(&b, r, m, len(text) > 0)
		o.quote(&b, text, m)
		room -= len(text)
		for _, line := range o.further(&b, r, m, p) {
			if room > 0 || len(text) > maxSnippetLines {
				fmt.Fprintf(&b, "    %s\n", o.paint(dim, Cut(line, o.width-4)))
				room--
			}
		}
		if e := r.Explain; e != nil {
			fmt.Fprintf(&b, "    %s\n", o.paint(dim, sum(e)))
		}
	}
	io.WriteString(o, b.String())
}

// place writes the place of a result and its score.
func (o *Writer) place(b *strings.Builder, rank int, r *retriever.Result, p Places) {
	shown := r.LineRange
	if r.Content != "" {
		shown = r.Passage
	}
	place, anchor, line := p.Shown(r.Path), "", 0
	if !markdown.FormatOf(r.Path).Converted() { // the lines of a converted file are not those of the file
		line = shown.Start
		place += fmt.Sprintf(":%d", line)
	}
	if r.Anchor != "" {
		anchor = " #" + r.Anchor
	}
	head := fmt.Sprintf("%2d. ", rank)
	tail := fmt.Sprintf("lines %d-%d  %.3f", shown.Start, shown.End, r.Score)
	free := o.width - utf8.RuneCountInString(head+place+anchor)
	if free < 2+len(tail) {
		tail = fmt.Sprintf("%.3f", r.Score)
	}
	gap := "  " // a place is never cut, so that the user can copy it
	if n := free - len(tail); n >= 2 {
		gap = strings.Repeat(" ", n)
	}
	fmt.Fprintf(b, "%s%s%s%s%s\n", head, o.link(o.paint(bold, place), p.File(r.Path), line), anchor, gap, o.paint(dim, tail))
}

// trail writes the headings of a result, and unless its text follows, the line of it that
// matches best.
func (o *Writer) trail(b *strings.Builder, r *retriever.Result, m view.Marker, text bool) {
	trail := strings.Join(view.Trail(r), " > ")
	if r.Stale {
		trail += " (changed since it was indexed)"
	}
	width := o.width - 4
	if !text {
		width /= 2
	}
	trail = Cut(trail, width)
	line := "    " + o.mark(m, trail)
	if rest := o.width - 8 - utf8.RuneCountInString(trail); !text {
		for _, text := range lines(r, m, rest, 1) {
			line += o.paint(dim, "  | ") + o.mark(m, Cut(text, rest))
		}
	}
	if strings.TrimSpace(line) != "" {
		fmt.Fprintf(b, "%s\n", line)
	}
}

// quote writes lines of the text of a document.
func (o *Writer) quote(b *strings.Builder, lines []string, m view.Marker) {
	for _, line := range lines {
		fmt.Fprintf(b, "    %s %s\n", o.paint(dim, "|"), o.mark(m, Cut(line, o.width-6)))
	}
}

// further writes the text of the other sections of a result, and returns lines that name
// those without text, and the copies of the document.
func (o *Writer) further(b *strings.Builder, r *retriever.Result, m view.Marker, p Places) []string {
	var more, further []string
	for _, w := range r.Outdated {
		fmt.Fprintf(b, "    %s\n", Plain(w.String()))
		o.quote(b, strings.Split(strings.TrimRight(w.Diff, "\n"), "\n"), m)
	}
	for i := range r.More {
		ref := &r.More[i]
		if ref.Content == "" {
			more = append(more, "#"+ref.Anchor)
			continue
		}
		fmt.Fprintf(b, "    #%s  %s\n", ref.Anchor, o.paint(dim, fmt.Sprintf("lines %d-%d", ref.Passage.Start, ref.Passage.End)))
		o.quote(b, strings.Split(strings.TrimRight(ref.Content, "\r\n"), "\n"), m)
	}
	if len(more) > 0 {
		further = append(further, "also: "+strings.Join(more, ", "))
	}
	if len(r.Duplicates) > 0 {
		var copies []string
		for _, d := range r.Duplicates {
			copies = append(copies, p.Shown(d))
		}
		further = append(further, "nearly the same: "+strings.Join(copies, ", "))
	}
	return further
}

// sum returns a score as the sum of its parts.
func sum(e *retriever.Explanation) string {
	var parts []string
	for _, p := range e.Parts() {
		part := fmt.Sprintf("%s %.4f", p.Name, p.Value)
		if p.Unit != "" {
			part = fmt.Sprintf("%.2f x %s (%s %.3f)", p.Weight, part, p.Unit, p.Raw)
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%.4f = %s", e.Score, strings.Join(parts, " + "))
}

// lines returns a result's content if the answer holds it, else at most n lines of its snippet,
// wrapped, which match if possible.
func lines(r *retriever.Result, m view.Marker, width, n int) []string {
	if r.Content != "" {
		return strings.Split(strings.TrimRight(r.Content, "\n"), "\n")
	}
	var lines []string
	for line := range strings.Lines(r.Snippet) {
		lines = append(lines, wrap(line, width)...)
	}
	return m.Pick(lines, max(n, 0))
}

// mark paints the words that match.
func (s style) mark(m view.Marker, line string) string {
	if !s.colour {
		return line
	}
	return m.Mark(line, func(part string, found bool) string {
		if found {
			return s.paint(match, part)
		}
		return part
	})
}

// Marked paints the spans of a line, which are half-open ranges of bytes in order.
func (s style) Marked(line string, spans [][]int) string {
	if !s.colour {
		return line
	}
	var b strings.Builder
	at := 0
	for _, span := range spans {
		b.WriteString(line[at:span[0]] + s.paint(match, line[span[0]:span[1]]))
		at = span[1]
	}
	return b.String() + line[at:]
}

// Reading writes the content of a place, and how to read the next part.
func (o *Output) Reading(r *retriever.Reading) {
	o.content(r)
	if r.Next != "" {
		o.Notes.Printf("next part: --next %s\n", r.Next)
	}
}

// content writes the content of a place unchanged, ending in a newline.
func (o *Output) content(r *retriever.Reading) {
	if r.Content != "" {
		io.WriteString(o, r.Content+"\n")
	}
	if len(r.Flags) > 0 {
		o.Notes.Warn("%s contains characters that are invisible or change the direction of text: %s", r.Path, Flags(r.Flags))
	}
}

// Readings writes the content of several places, each below its name.
func (o *Output) Readings(all *retriever.Readings) {
	for i := range all.Documents {
		d := &all.Documents[i]
		place := d.Path
		if d.LineRange != nil {
			place += fmt.Sprintf(":%d-%d", d.LineRange.Start, d.LineRange.End)
		}
		o.Printf("==> %s <==\n", place)
		o.content(d)
	}
}
