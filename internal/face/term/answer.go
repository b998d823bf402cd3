package term

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"cairn/internal/store/keyword"
	"cairn/internal/text/markdown"
	"cairn/internal/text/query"
	"cairn/retriever"
)

// maxSnippetLines bounds the lines of text of one result.
const maxSnippetLines = 4

// Answer writes the results of a search, and the notes about them.
func (o *Output) Answer(answer *retriever.Answer, asked string, p Places) {
	o.Results(answer, asked, p)
	for _, note := range Notes(answer) {
		o.Notes.Dim(note)
	}
}

// Results writes the results of a search.
func (o *Writer) Results(answer *retriever.Answer, asked string, p Places) {
	var b strings.Builder
	m := newMarker(asked)
	for i := range answer.Results {
		if i > 0 {
			b.WriteByte('\n')
		}
		o.result(&b, i+1, &answer.Results[i], m, p)
	}
	io.WriteString(o, b.String())
}

// Notes returns remarks about an answer as a whole.
func Notes(a *retriever.Answer) []string {
	var notes []string
	hint := commandNames.Replace(a.Hint)
	switch {
	case len(a.Results) > 0:
	case hint == "":
		notes = append(notes, "nothing found")
	default:
		notes = append(notes, "nothing found: "+strings.TrimPrefix(hint, "nothing matches: "))
	}
	if a.Fuzzy {
		notes = append(notes, "nothing matches the words as typed; these results match near spellings")
	}
	if a.Searched != "" {
		notes = append(notes, "the query is long; the search used this part of it: "+OneLine(a.Searched))
	}
	for _, d := range a.Degraded {
		switch d {
		case "files":
			notes = append(notes, fmt.Sprintf("%s of the folder are not indexed yet and were not searched; `cairn index` indexes the rest", Count(a.Index.Unindexed, "file")))
		case "vectors":
			notes = append(notes, fmt.Sprintf("%d of %d pieces have no vector yet and were found by keyword only; `cairn index` makes the rest", a.Index.Pending, a.Index.Pending+a.Index.Embedded))
		case "rerank":
			notes = append(notes, "the re-ranker had no time for all passages; the others keep their place")
		case "stale":
			notes = append(notes, "some of these files have changed since they were indexed; `cairn index` brings them up to date")
		default:
			notes = append(notes, "incomplete: "+d)
		}
	}
	if hint != "" && len(a.Results) > 0 && a.Unlikely() {
		notes = append(notes, hint)
	}
	if a.OmittedCount > 0 {
		notes = append(notes, fmt.Sprintf("%d more did not fit the token budget", a.OmittedCount))
	}
	if a.HasMore && a.NextCursor != nil {
		notes = append(notes, fmt.Sprintf("%s in all; next page: --cursor %s", Count(a.TotalCount, "document"), *a.NextCursor))
	}
	return notes
}

// commandNames replaces the names of tools in a hint with commands.
var commandNames = strings.NewReplacer("call the tool index, or run `cairn index`", "run `cairn index`", "call the tool index", "run `cairn index`", "the tool status", "`cairn status`")

// result writes one document: its place, its headings and the lines that match.
func (o *Writer) result(b *strings.Builder, rank int, r *retriever.Result, m *marker, p Places) {
	lines := r.LineRange
	if r.Content != "" {
		lines = r.Passage
	}
	place, anchor, line := p.Shown(r.Path), "", 0
	if markdown.FormatOf(r.Path) != markdown.Converted { // the lines of a converted file are not those of the file
		line = lines.Start
		place += fmt.Sprintf(":%d", line)
	}
	if r.Anchor != "" {
		anchor = " #" + r.Anchor
	}
	head := fmt.Sprintf("%2d. ", rank)
	tail := fmt.Sprintf("lines %d-%d  %.3f", lines.Start, lines.End, r.Score)
	gap := "\n    " // a place is never cut, so that the user can copy it
	if n := o.width - utf8.RuneCountInString(head+place+anchor+tail); n >= 2 {
		gap = strings.Repeat(" ", n)
	}
	fmt.Fprintf(b, "%s%s%s%s%s\n", head, o.link(o.paint(bold, place), p.File(r.Path), line), anchor, gap, o.paint(dim, tail))
	trail := strings.Join(r.Headings, " > ")
	if trail == "" {
		trail = r.Title
	}
	if r.Stale {
		trail += " (changed since it was indexed)"
	}
	if trail != "" {
		fmt.Fprintf(b, "    %s\n", m.mark(o.style, Cut(trail, o.width-4)))
	}
	quote := func(line string) {
		fmt.Fprintf(b, "    %s %s\n", o.paint(dim, "|"), m.mark(o.style, Cut(line, o.width-6)))
	}
	for _, line := range m.lines(r, o.width-6) {
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
		var shown []string
		for _, d := range r.Duplicates {
			shown = append(shown, p.Shown(d))
		}
		fmt.Fprintf(b, "    %s\n", o.paint(dim, Cut("nearly the same: "+strings.Join(shown, ", "), o.width-4)))
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

// marker finds the words of a query in text.
type marker struct{ *keyword.Marker }

func newMarker(text string) *marker { return &marker{keyword.NewMarker(query.Parse(text))} }

// lines returns a result's content if the answer holds it, else the lines of
// its snippet that match, wrapped.
func (m *marker) lines(r *retriever.Result, width int) []string {
	if r.Content != "" {
		return strings.Split(strings.TrimRight(r.Content, "\n"), "\n")
	}
	var lines []string
	for line := range strings.Lines(r.Snippet) {
		lines = append(lines, Wrap(line, width)...)
	}
	return m.pick(lines, maxSnippetLines)
}

// pick returns at most n lines in their order. It prefers lines that match, and then the first.
func (m *marker) pick(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	chosen := make([]bool, len(lines))
	left := n
	for _, wantMatch := range []bool{true, false} {
		for i, line := range lines {
			if left > 0 && !chosen[i] && (!wantMatch || m.In(line) != nil) {
				chosen[i] = true
				left--
			}
		}
	}
	var picked []string
	for i, line := range lines {
		if chosen[i] {
			picked = append(picked, line)
		}
	}
	return picked
}

// mark paints the words that match.
func (m *marker) mark(s style, line string) string {
	if !s.colour {
		return line
	}
	var b strings.Builder
	m.Words(line, func(part string, holds bool) {
		if holds {
			part = s.paint(match, part)
		}
		b.WriteString(part)
	})
	return b.String()
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
