package scan

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"cairn/internal/store/ngram"
)

// PatternError reports an invalid pattern.
type PatternError struct{ Reason string }

func (e *PatternError) Error() string { return e.Reason }

// Matcher matches lines with the pattern of a Request.
type Matcher struct {
	re     *regexp.Regexp
	text   []byte        // nil for an expression
	query  *ngram.Query  // a condition of every matching line
	finder *ngram.Finder // of lines that fulfil it
}

// Matcher compiles the pattern. An invalid one is a *PatternError.
func (r *Request) Matcher() (*Matcher, error) {
	switch {
	case r.Pattern == "":
		return nil, &PatternError{"nothing to search for"}
	case len(r.Pattern) > maxPattern:
		return nil, &PatternError{fmt.Sprintf("the pattern has %d bytes, want at most %d", len(r.Pattern), maxPattern)}
	case strings.ContainsAny(r.Pattern, "\n\r"):
		return nil, &PatternError{"the pattern has a line break, and lines are matched one by one"}
	}
	expr := r.Pattern
	if !r.Regexp {
		expr = regexp.QuoteMeta(expr)
	}
	if r.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, &PatternError{fmt.Sprintf("%s, want the syntax of RE2", strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	m := &Matcher{re: re}
	m.query, m.finder = ngram.Regexp(expr)
	if !r.Regexp && !r.IgnoreCase {
		m.text = []byte(r.Pattern)
	}
	return m, nil
}

// Spans returns the places of the matches in a line, as half-open ranges of bytes.
func (m *Matcher) Spans(line string) [][]int { return m.re.FindAllStringIndex(line, -1) }

// match reports whether a line matches.
func (m *Matcher) match(line []byte) bool {
	if m.text != nil {
		return bytes.Contains(line, m.text)
	}
	return m.re.Match(line)
}

// span is a line of a text, without its line break.
type span struct{ number, start, end int }

// lineAt returns the line that begins at start.
func lineAt(text []byte, number, start int) span {
	end := len(text)
	if n := bytes.IndexByte(text[start:], '\n'); n >= 0 {
		end = start + n
	}
	return span{number: number, start: start, end: end}
}

// trimmed returns s without the carriage return of a line break.
func (s span) trimmed(text []byte) span {
	if s.end > s.start && text[s.end-1] == '\r' {
		s.end--
	}
	return s
}

// deadlineLines is the number of lines matched between two checks of the deadline.
const deadlineLines = 10_000

// lines calls fn with the matching lines of a text. It matches only those with a literal
// that the pattern implies, if there is one.
func (m *Matcher) lines(ctx context.Context, text []byte, fn func(span)) {
	matched := 0
	next := func(s span) (more bool) {
		if line := s.trimmed(text); m.match(text[line.start:line.end]) {
			fn(line)
		}
		matched++
		return matched%deadlineLines != 0 || ctx.Err() == nil
	}
	if m.finder.Lines(text, func(number, start int) bool { return next(lineAt(text, number, start)) }) {
		return
	}
	for number, start := 1, 0; start < len(text); number++ {
		s := lineAt(text, number, start)
		if start = s.end + 1; !next(s) {
			return
		}
	}
}

// around returns the matching lines of a text, match true, and the lines around them in
// order.
func around(text []byte, matches []span, before, after int) iter.Seq2[span, bool] {
	return func(yield func(s span, match bool) bool) {
		done := span{end: -1} // the last line
		for i, m := range matches {
			first := m
			for first.number-1 > max(done.number, m.number-before-1) {
				start := bytes.LastIndexByte(text[:first.start-1], '\n') + 1
				first = span{number: first.number - 1, start: start, end: first.start - 1}
			}
			for ; first.number < m.number; first = lineAt(text, first.number+1, first.end+1) {
				if !yield(first.trimmed(text), false) {
					return
				}
			}
			if !yield(m, true) {
				return
			}
			done = lineAt(text, m.number, m.start)
			for n := 0; n < after && done.end+1 < len(text); n++ {
				next := lineAt(text, done.number+1, done.end+1)
				if i+1 < len(matches) && matches[i+1].number == next.number {
					break
				}
				if done = next; !yield(done.trimmed(text), false) {
					return
				}
			}
		}
	}
}
