// Package term writes cairn's answers as text for people. It does not decide their content.
package term

import (
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

// Writer is an output stream of a command. Close returns the first error of a write, so that
// callers can ignore the error. On a terminal Writer escapes control characters, because
// documents, cards, descriptions of tools and file names must not control the terminal.
// Elsewhere every byte passes unchanged.
type Writer struct {
	style
	w   io.Writer
	tty bool

	mu              sync.Mutex
	err             error    // the first error; later writes do nothing
	held            []byte   // an incomplete character or sequence at the end of the last write
	own             []string // escape sequences of the Writer, which it does not escape
	painted, linked bool     // a colour, a link is open
}

// style is the size of the screen in columns and rows, and whether the text has colours.
type style struct {
	width, height int
	colour        bool
}

// The bounds of the width: shorter lines would break paths, and longer lines are hard to read.
// The default sizes apply without a terminal.
const (
	minWidth      = 80
	maxWidth      = 120
	defaultWidth  = 100
	defaultHeight = 40
)

// The escape sequences in use, which begin with esc.
const (
	esc = '\x1b'

	bold  = "\x1b[1m"
	match = "\x1b[1;33m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"

	startLink = "\x1b]8;;" // precedes a URL and endString
	endString = "\x1b\\"
	endLink   = startLink + endString
)

// paints are the escape sequences of every coloured stream.
var paints = []string{bold, match, dim, reset, endLink}

// New returns a Writer on w.
func New(w io.Writer) *Writer {
	o := &Writer{w: w, style: style{width: defaultWidth, height: defaultHeight}}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	o.tty = true
	if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 0 {
		o.width, o.height = min(max(columns, minWidth), maxWidth), rows
	}
	if o.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"; o.colour {
		o.own = paints
	}
	return o
}

// IsTerminal reports whether the output is a terminal.
func (o *Writer) IsTerminal() bool { return o.tty }

// FromTerminal reports whether the input is a terminal.
func FromTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Raw returns the underlying stream, for a program that cairn starts.
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

// Close writes the held bytes and returns the first error of a write. A pipe that the reader
// has closed is not an error.
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

// escape returns data in a form that is safe for a terminal. Control characters, characters
// that change the direction of text, and bytes that are not UTF-8 become escapes such as
// \u001b, which keep JSON valid. It holds an incomplete end for the next write unless this
// write is the last.
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
		case r == '\n': // a sequence ends with its line
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

// opened records a sequence that was written.
func (o *Writer) opened(sequence string) {
	if strings.HasPrefix(sequence, startLink) {
		o.linked = sequence != endLink
	} else {
		o.painted = sequence != reset
	}
}

// end returns the sequences that end the open ones.
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

// ownSequence returns the length of the Writer's own sequence at the start of data, or 0.
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

// tags is the first of 128 invisible characters that can hide text in ASCII.
const tags = 0xe0000

// isControl reports whether a terminal interprets or hides a character instead of displaying it.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r&^0x7f == tags)
}

// Printf writes formatted text. Close returns the error.
func (o *Writer) Printf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

// Lines writes the lines of untrusted text.
func (o *Writer) Lines(text string) {
	for line := range strings.Lines(text) {
		o.Printf("%s\n", Plain(line))
	}
}

// Dim writes a line of secondary text.
func (o *Writer) Dim(line string) { o.Printf("%s\n", o.paint(dim, line)) }

// Warn writes a warning on one line.
func (o *Writer) Warn(format string, args ...any) {
	o.Printf("cairn: warning: %s\n", Plain(fmt.Sprintf(format, args...)))
}

func (s style) paint(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return code + text + reset
}

// link returns text with a link to a file, which the terminal opens. If line is not 0, it is
// the fragment of the URL, which kitty and VS Code interpret.
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

// tableWidth returns the width of tables. Without colour it is fixed.
func (s style) tableWidth() int {
	if s.colour {
		return s.width
	}
	return minWidth
}

// Rows writes a table with aligned columns. It writes the first column in bold and cuts the
// last one to the width.
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
