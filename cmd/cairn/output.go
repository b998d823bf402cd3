package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// output is one of the streams a command writes to. It keeps the first error,
// so that what could not be written is noticed however it was written. On a
// terminal it lets no text steer it: documents, cards, descriptions of tools and
// names of files are other people's. Anywhere else every byte passes as it is.
type output struct {
	w      io.Writer
	tty    bool
	colour bool // own escape sequences pass

	mu      sync.Mutex
	err     error  // the first one; nothing is written after it
	held    []byte // the beginning of a character or sequence whose rest is to come
	painted bool   // a sequence is in force
}

func newOutput(w io.Writer) *output {
	return &output{w: w, tty: isTerminal(w), colour: styleOf(w).colour}
}

// raw is the stream below, for programs that are started and for what is drawn
// by a library from cairn's own words.
func raw(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.w
	}
	return w
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
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
	shown := o.show(append(o.held, p...), false)
	if _, o.err = o.w.Write(shown); o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// end writes what was held back and returns the error that was kept. A reader
// who has left is none: there is nobody to tell.
func (o *output) end() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.tty {
		shown := o.show(o.held, true)
		if o.painted {
			shown = append(shown, reset...)
		}
		_, o.err = o.w.Write(shown)
	}
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("writing the output: %w", o.err)
}

// show returns data as a terminal may see it: control characters, those that
// turn the direction of text, and bytes that are no UTF-8 are spelt as in JSON,
// `\u001b`, which leaves JSON what it says. What may go on in the next write is
// held unless this is the last.
func (o *output) show(data []byte, last bool) []byte {
	shown := make([]byte, 0, len(data)+len(data)/16)
	o.held = nil
	for len(data) > 0 {
		if !last && o.unfinished(data) {
			o.held = slices.Clone(data)
			break
		}
		if n := o.ownSequence(data); n > 0 {
			o.painted = string(data[:n]) != reset
			shown = append(shown, data[:n]...)
			data = data[n:]
			continue
		}
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			shown = fmt.Appendf(shown, `\x%02x`, data[0])
		case r == '\n' && o.painted: // no sequence outlives its line
			o.painted = false
			shown = append(append(shown, reset...), '\n')
		case r == '\r' && len(data) > 1 && data[1] == '\n': // the end of a line
		case steers(r):
			shown = fmt.Appendf(shown, `\u%04x`, r)
		default:
			shown = append(shown, data[:n]...)
		}
		data = data[n:]
	}
	return shown
}

// ownSequences are those that style.paint writes.
var ownSequences = []string{bold, match, dim, reset}

// ownSequence returns the length of the sequence of ours that data begins with, else 0.
func (o *output) ownSequence(data []byte) int {
	for _, s := range ownSequences {
		if o.colour && strings.HasPrefix(string(data[:min(len(data), len(s))]), s) {
			return len(s)
		}
	}
	return 0
}

// unfinished reports whether data ends before it can be told what it begins with.
func (o *output) unfinished(data []byte) bool {
	if !utf8.FullRune(data) || string(data) == "\r" {
		return true
	}
	return o.colour && slices.ContainsFunc(ownSequences, func(s string) bool {
		return len(data) < len(s) && strings.HasPrefix(s, string(data))
	})
}

// steers reports whether a character does something to a terminal other than
// standing there.
func steers(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}

// fileOf returns the file that w writes to, if it is one.
func fileOf(w any) (*os.File, bool) {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	return f, ok
}
