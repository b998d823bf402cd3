// Package term writes cairn's answers as text for people. It decides nothing
// about their content.
package term

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer is an output stream of a command. It keeps the first error, so that a
// failed write is reported by Close even if a caller ignores it. On a terminal it escapes
// control characters, because documents, cards, descriptions of tools and file
// names must not control the terminal. Elsewhere every byte passes unchanged.
type Writer struct {
	style
	w   io.Writer
	tty bool

	mu              sync.Mutex
	err             error    // the first one; nothing is written after it
	held            []byte   // an incomplete character or sequence at the end of the last write
	own             []string // the sequences that pass
	painted, linked bool     // a sequence is in force
}

// style is the width of text in columns and whether it may have colour.
type style struct {
	width  int
	colour bool
}

// The width of the terminal counts between these bounds: shorter lines would
// break paths, longer ones are hard to read.
const (
	minWidth     = 80
	maxWidth     = 120
	defaultWidth = 100 // without a terminal
)

// The escape sequences in use, which begin with esc.
const (
	esc = '\x1b'

	bold  = "\x1b[1m"
	match = "\x1b[1;33m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"

	startLink = "\x1b]8;;" // a URL and endString follow
	endString = "\x1b\\"
	endLink   = startLink + endString
)

// paints are the own sequences of every coloured stream.
var paints = []string{bold, match, dim, reset, endLink}

// New returns a Writer on w.
func New(w io.Writer) *Writer {
	o := &Writer{w: w, style: style{width: defaultWidth}}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	o.tty = true
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.width = min(max(columns, minWidth), maxWidth)
	}
	if o.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"; o.colour {
		o.own = paints
	}
	return o
}

// IsTerminal reports whether a person sees the output.
func (o *Writer) IsTerminal() bool { return o.tty }

// FromTerminal reports whether a person types the input.
func FromTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Raw returns the stream itself, for a program that cairn starts.
func (o *Writer) Raw() io.Writer { return o.w }

// Write implements io.Writer.
func (o *Writer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if !o.tty {
		n, err := o.w.Write(p)
		o.err = err
		return n, err
	}
	shown := o.escape(append(o.held, p...), false)
	if _, o.err = o.w.Write(shown); o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// Close writes what was held back and returns the first error of a write, nil
// if it was that the reader of a pipe has left.
func (o *Writer) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.tty {
		shown := o.escape(o.held, true)
		_, o.err = o.w.Write(append(shown, o.end()...))
	}
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("writing the output: %w", o.err)
}

// escape returns data as it may be sent to a terminal: control characters, those
// that change the direction of text, and bytes that are not UTF-8 become escapes
// such as \u001b, which keep JSON valid. An incomplete end is held for the next
// write unless this is the last.
func (o *Writer) escape(data []byte, last bool) []byte {
	shown := make([]byte, 0, len(data)+len(data)/16)
	o.held = nil
	for len(data) > 0 {
		if !last && o.incomplete(data) {
			o.held = slices.Clone(data)
			break
		}
		if n := o.ownSequence(data); n > 0 {
			o.opened(string(data[:n]))
			shown = append(shown, data[:n]...)
			data = data[n:]
			continue
		}
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			shown = fmt.Appendf(shown, `\x%02x`, data[0])
		case r == '\n': // no sequence outlives its line
			shown = append(append(shown, o.end()...), '\n')
		case r == '\r' && len(data) > 1 && data[1] == '\n': // the end of a line
		case isControl(r):
			shown = fmt.Appendf(shown, `\u%04x`, r)
		default:
			shown = append(shown, data[:n]...)
		}
		data = data[n:]
	}
	return shown
}

// opened notes an own sequence.
func (o *Writer) opened(sequence string) {
	if strings.HasPrefix(sequence, startLink) {
		o.linked = sequence != endLink
	} else {
		o.painted = sequence != reset
	}
}

// end returns what ends the sequences in force.
func (o *Writer) end() string {
	end := ""
	if o.linked {
		end = endLink
	}
	if o.painted {
		end += reset
	}
	o.painted, o.linked = false, false
	return end
}

// ownSequence returns the length of the own sequence that data begins with, else 0.
func (o *Writer) ownSequence(data []byte) int {
	if data[0] != esc {
		return 0
	}
	for _, s := range o.own {
		if strings.HasPrefix(string(data[:min(len(data), len(s))]), s) {
			return len(s)
		}
	}
	return 0
}

// incomplete reports whether data may be the beginning of a longer character or
// sequence.
func (o *Writer) incomplete(data []byte) bool {
	if !utf8.FullRune(data) || string(data) == "\r" {
		return true
	}
	return data[0] == esc && slices.ContainsFunc(o.own, func(s string) bool {
		return len(data) < len(s) && strings.HasPrefix(s, string(data))
	})
}

// isControl reports whether a terminal acts on a character instead of showing it.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}

// Printf writes formatted text. Close reports an error.
func (o *Writer) Printf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

// JSON writes v on a line of its own.
func (o *Writer) JSON(v any) error {
	enc := json.NewEncoder(o)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Dim writes a line of secondary text.
func (o *Writer) Dim(line string) { o.Printf("%s\n", o.paint(dim, line)) }

// Warn writes a warning of the program on one line.
func (o *Writer) Warn(format string, args ...any) {
	o.Printf("cairn: warning: %s\n", Plain(fmt.Sprintf(format, args...)))
}

func (s style) paint(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return code + text + reset
}

// link makes text a link to a file that the terminal opens. Unless line is 0 the URL has
// it as its fragment, as kitty and VS Code read it.
func (o *Writer) link(text, file string, line int) string {
	if !o.colour || file == "" {
		return text
	}
	host, _ := os.Hostname()
	u := url.URL{Scheme: "file", Host: host, Path: filepath.ToSlash(file)}
	if line > 0 {
		u.Fragment = strconv.Itoa(line)
	}
	start := startLink + u.String() + endString
	o.mu.Lock()
	o.own = append(slices.Clip(o.own), start)
	o.mu.Unlock()
	return start + text + endLink
}

// tableWidth is the width of tables, which is fixed where there is no colour.
func (s style) tableWidth() int {
	if s.colour {
		return s.width
	}
	return minWidth
}

// Rows writes a table with aligned columns. The first column is bold, the last
// one is cut to the width.
func (o *Writer) Rows(rows [][]string) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	table.Flush()
	i := 0
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, " \n")
		row := rows[i]
		before := utf8.RuneCountInString(line) - utf8.RuneCountInString(row[len(row)-1])
		if rest, ok := strings.CutPrefix(Cut(line, max(o.tableWidth(), before+8)), row[0]); ok {
			line = o.paint(bold, row[0]) + rest
		}
		o.Printf("%s\n", line)
		i++
	}
}
