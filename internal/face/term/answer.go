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

// maxSnippetLines bounds the lines of text of one result.
const maxSnippetLines = 4

// Answer writes the results of a search, and the notes about them.
func (o *Output) Answer(answer *retriever.Answer, asked string, p Places) {
	o.Results(answer, asked, p)
	for _, note := range view.Notes(answer) {
		o.Notes.Dim(note)
	}
	if answer.HasMore && answer.NextCursor != nil {
		o.Notes.Dim(fmt.Sprintf("%s in all; next page: --cursor %s", view.Count(answer.TotalCount, "document"), *answer.NextCursor))
	}
}

// Results writes the results of a search.
func (o *Writer) Results(answer *retriever.Answer, asked string, p Places) {
	var b strings.Builder
	m := view.NewMarker(asked)
	for i := range answer.Results {
		if i > 0 {
			b.WriteByte('\n')
		}
		o.result(&b, i+1, &answer.Results[i], m, p)
	}
	io.WriteString(o, b.String())
}

// result writes one document: its place, its headings and the lines that match.
func (o *Writer) result(b *strings.Builder, rank int, r *retriever.Result, m view.Marker, p Places) {
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
	gap := "\n    " // a place is never cut, so that the user can copy it
	if n := o.width - utf8.RuneCountInString(head+place+anchor+tail); n >= 2 {
		gap = strings.Repeat(" ", n)
	}
	fmt.Fprintf(b, "%s%s%s%s%s\n", head, o.link(o.paint(bold, place), p.File(r.Path), line), anchor, gap, o.paint(dim, tail))
	trail := strings.Join(view.Trail(r), " > ")
	if r.Stale {
		trail += " (changed since it was indexed)"
	}
	if trail != "" {
		fmt.Fprintf(b, "    %s\n", o.mark(m, Cut(trail, o.width-4)))
	}
	quote := func(line string) {
		fmt.Fprintf(b, "    %s %s\n", o.paint(dim, "|"), o.mark(m, Cut(line, o.width-6)))
	}
	for _, line := range lines(r, m, o.width-6) {
		quote(line)
	}
	var more []string
	for i := range r.More {
		ref := &r.More[i]
		if ref.Content == "" {
			more = append(more, "#"+ref.Anchor)
			continue
		}
		fmt.Fprintf(b, "    #%s  %s\n", ref.Anchor, o.paint(dim, fmt.Sprintf("lines %d-%d", ref.Passage.Start, ref.Passage.End)))
		for line := range strings.Lines(ref.Content) {
			quote(strings.TrimRight(line, "\r\n"))
		}
	}
	if len(more) > 0 {
		fmt.Fprintf(b, "    %s\n", o.paint(dim, Cut("also: "+strings.Join(more, ", "), o.width-4)))
	}
	if len(r.Duplicates) > 0 {
		var copies []string
		for _, d := range r.Duplicates {
			copies = append(copies, p.Shown(d))
		}
		fmt.Fprintf(b, "    %s\n", o.paint(dim, Cut("nearly the same: "+strings.Join(copies, ", "), o.width-4)))
	}
	if e := r.Explain; e != nil {
		fmt.Fprintf(b, "    %s\n", o.paint(dim, sum(e)))
	}
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

// lines returns a result's content if the answer holds it, else the lines of its snippet that
// match, wrapped.
func lines(r *retriever.Result, m view.Marker, width int) []string {
	if r.Content != "" {
		return strings.Split(strings.TrimRight(r.Content, "\n"), "\n")
	}
	var lines []string
	for line := range strings.Lines(r.Snippet) {
		lines = append(lines, wrap(line, width)...)
	}
	return m.Pick(lines, maxSnippetLines)
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
