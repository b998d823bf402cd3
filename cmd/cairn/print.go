package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"cairn/internal/query"
	"cairn/internal/store/keyword"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// style is how text is shown: its width in columns and whether in colour.
type style struct {
	width  int
	colour bool
}

// Lines are never longer than a reader's eye follows, and never so short that
// paths break.
const (
	minWidth     = 80
	maxWidth     = 120
	defaultWidth = 100 // where there is no terminal to ask
)

// maxSnippetLines is how much of a section a result shows.
const maxSnippetLines = 4

func styleOf(w io.Writer) style {
	s := style{width: defaultWidth}
	f, ok := fileOf(w)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.width = min(max(columns, minWidth), maxWidth)
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// The escape sequences in use: bold for what was looked for and for places,
// dim for what is beside the point.
const (
	bold  = "\x1b[1m"
	match = "\x1b[1;33m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

func (s style) paint(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return code + text + reset
}

// printAnswer shows the results of a search.
func (a *app) printAnswer(answer *retriever.Answer, query string) error {
	var b strings.Builder
	s := styleOf(a.stdout)
	m := newMarker(query)
	for i := range answer.Results {
		if i > 0 {
			b.WriteByte('\n')
		}
		s.result(&b, i+1, &answer.Results[i], m)
	}
	_, err := io.WriteString(a.stdout, b.String())
	if err != nil {
		return err
	}
	s = styleOf(a.stderr)
	for _, note := range notes(answer) {
		fmt.Fprintln(a.stderr, s.paint(dim, note))
	}
	return nil
}

// notes are what a reader has to know about an answer as a whole.
func notes(a *retriever.Answer) []string {
	var notes []string
	if len(a.Results) == 0 {
		notes = append(notes, strings.TrimSpace("nothing found: "+strings.ReplaceAll(a.Reason, "_", " ")))
	}
	if a.Fuzzy {
		notes = append(notes, "nothing matched the words as typed; these match near spellings")
	}
	for _, d := range a.Degraded {
		switch d {
		case "vectors":
			notes = append(notes, fmt.Sprintf("%d of %d pieces have no vector yet and were found by keyword only; `cairn index` makes the rest", a.Index.Pending, a.Index.Pending+a.Index.Embedded))
		case "stale":
			notes = append(notes, "some of these files have changed since they were indexed; `cairn index` brings them up to date")
		case workspace.OwnerLacking:
			notes = append(notes, "the index as it was left: "+a.Hint)
		default:
			notes = append(notes, "incomplete: "+d)
		}
	}
	if a.Hint != "" && len(a.Results) == 0 && !slices.Contains(a.Degraded, workspace.OwnerLacking) {
		notes = append(notes, toolNames.Replace(a.Hint))
	}
	if len(a.Omitted) > 0 {
		notes = append(notes, fmt.Sprintf("%d more did not fit the token budget", len(a.Omitted)))
	}
	if a.HasMore && a.NextCursor != nil {
		notes = append(notes, fmt.Sprintf("%s in all; next page: --cursor %s", many(a.TotalCount, "document"), *a.NextCursor))
	}
	return notes
}

// toolNames turns what agents are told into what a person types.
var toolNames = strings.NewReplacer("call the tool index, or run `cairn index`", "run `cairn index`", "call the tool index", "run `cairn index`", "the tool status", "`cairn status`")

// result shows one document: where, under which headings, and the lines that match.
func (s style) result(b *strings.Builder, rank int, r *retriever.Result, m *marker) {
	place := r.Path
	if r.Anchor != "" {
		place += "#" + r.Anchor
	}
	tail := fmt.Sprintf("lines %d-%d  %.3f", r.LineRange.Start, r.LineRange.End, r.Score)
	head := fmt.Sprintf("%2d. ", rank)
	gap := "\n    " // a place is never cut: it is there to be copied
	if n := s.width - utf8.RuneCountInString(head+place+tail); n >= 2 {
		gap = strings.Repeat(" ", n)
	}
	fmt.Fprintf(b, "%s%s%s%s\n", head, s.paint(bold, place), gap, s.paint(dim, tail))
	trail := strings.Join(r.Headings, " > ")
	if trail == "" {
		trail = r.Title
	}
	if r.Stale {
		trail += " (changed since it was indexed)"
	}
	if trail != "" {
		fmt.Fprintf(b, "    %s\n", m.mark(s, cut(trail, s.width-4)))
	}
	for _, line := range m.lines(r, s.width-6) {
		fmt.Fprintf(b, "    %s %s\n", s.paint(dim, "|"), m.mark(s, cut(line, s.width-6)))
	}
	if n := len(r.Duplicates); n > 0 {
		fmt.Fprintf(b, "    %s\n", s.paint(dim, cut(fmt.Sprintf("nearly the same: %s", strings.Join(r.Duplicates, ", ")), s.width-4)))
	}
	if e := r.Explain; e != nil {
		fmt.Fprintf(b, "    %s\n", s.paint(dim, fmt.Sprintf("%.3f = %.2f x vector %.3f (cosine %.3f) + %.2f x keyword %.3f (bm25 %.2f) + graph %.3f",
			e.Score, e.VectorWeight, e.Vector, e.Cosine, e.KeywordWeight, e.Keyword, e.BM25, e.Graph)))
	}
}

// cut shortens a line to a width in runes, and takes control characters out:
// a document must not steer the terminal.
func cut(line string, width int) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, line)
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:width-1]) + "…"
}

// marker knows what a query looked for.
type marker struct{ terms map[string]bool }

func newMarker(text string) *marker {
	m := &marker{terms: map[string]bool{}}
	for _, t := range keyword.QueryTerms(query.Parse(text)) {
		m.terms[t] = true
	}
	return m
}

// hits reports whether a word is one of those looked for, as the keyword index sees it.
func (m *marker) hits(word string) bool {
	for _, t := range keyword.Analyze(word) {
		if m.terms[t] {
			return true
		}
	}
	return false
}

// lines are what is shown of a result's text: its content as it is where the
// answer holds it, else the snippet, wrapped.
func (m *marker) lines(r *retriever.Result, width int) []string {
	if r.Content != "" {
		return strings.Split(strings.TrimRight(r.Content, "\n"), "\n")
	}
	var lines []string
	for line := range strings.Lines(r.Snippet) {
		lines = append(lines, wrap(line, width)...)
	}
	return m.pick(lines, maxSnippetLines)
}

// wrap breaks a line between words into lines of at most width runes; a longer
// word stands alone.
func wrap(line string, width int) []string {
	var lines []string
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(line) {
		size := utf8.RuneCountInString(word)
		if n > 0 && n+1+size > width {
			lines = append(lines, b.String())
			b.Reset()
			n = 0
		}
		if n > 0 {
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += size
	}
	if n > 0 {
		lines = append(lines, b.String())
	}
	return lines
}

// pick returns at most n of the lines: in order, those that match first of
// all, then from the top.
func (m *marker) pick(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	chosen := make([]bool, len(lines))
	left := n
	for _, wantHit := range []bool{true, false} {
		for i, line := range lines {
			if left > 0 && !chosen[i] && (!wantHit || m.any(line)) {
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

func (m *marker) any(line string) bool {
	found := false
	words(line, func(word string, isWord bool) { found = found || isWord && m.hits(word) })
	return found
}

// mark paints the words that were looked for.
func (m *marker) mark(s style, line string) string {
	if !s.colour {
		return line
	}
	var b strings.Builder
	words(line, func(word string, isWord bool) {
		if isWord && m.hits(word) {
			word = s.paint(match, word)
		}
		b.WriteString(word)
	})
	return b.String()
}

// words calls fn with each word of line and with what lies between, in order.
func words(line string, fn func(part string, isWord bool)) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	for line != "" {
		first, _ := utf8.DecodeRuneInString(line)
		word := inWord(first)
		end := strings.IndexFunc(line, func(r rune) bool { return inWord(r) != word })
		if end < 0 {
			end = len(line)
		}
		fn(line[:end], word)
		line = line[end:]
	}
}
