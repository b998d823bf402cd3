package term

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Output is where a command writes: its answer to the embedded Writer, and notes for a person
// to Notes.
type Output struct {
	*Writer
	Notes *Writer
	// JSON selects JSON instead of text for answers.
	JSON bool
}

// Encode writes v as JSON on one line.
func (o *Output) Encode(v any) error {
	enc := json.NewEncoder(o)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Print writes v as JSON, or else calls text. Close returns the errors of text.
func (o *Output) Print(v any, text func()) error {
	if o.JSON {
		return o.Encode(v)
	}
	text()
	return nil
}

// Line writes v as JSON, or else a line of text.
func (o *Output) Line(v any, format string, args ...any) error {
	return o.Print(v, func() { o.Printf(format+"\n", args...) })
}

// Show returns a function for the results of a call. It writes the answer as JSON, or else as
// draw does, and returns the error of the call unchanged.
func Show[V any](o *Output, draw func(*Output, V)) func(V, error) error {
	return func(v V, err error) error {
		if err != nil {
			return err
		}
		return o.Print(v, func() { draw(o, v) })
	}
}

// Warnings writes each line as a warning to Notes.
func (o *Output) Warnings(lines ...string) {
	for _, line := range lines {
		o.Notes.Warn("%s", line)
	}
}

// Cut shortens a line to width runes and removes its control characters.
func Cut(line string, width int) string {
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
	return string([]rune(line)[:width-1]) + "…"
}

// OneLine returns text with single spaces instead of white space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Plain returns untrusted text on one line of at most 1,000 runes, without control characters.
func Plain(s string) string { return Cut(OneLine(s), 1000) }

// plainLines returns untrusted text without control characters except line ends.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Cut(strings.TrimSuffix(l, "\r"), 1<<20)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line between words into lines of at most width runes. A longer word has its own
// line.
func wrap(line string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(line) {
		if n := len(lines) - 1; n >= 0 && utf8.RuneCountInString(lines[n])+1+utf8.RuneCountInString(word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// Time returns a time in the local zone.
func Time(t time.Time) string { return t.Local().Format(time.DateTime) }
