// Package convert converts binary documents and formatted text, such as PDF and HTML, to
// Markdown. Each format has a converter in its own file. Headings become headings, and
// pages, slides, sheets and cells become headings or anchors, so that the Markdown parser
// finds the sections of every format. The package does not read files, run programs or
// open connections.
//
// It converts a format of text only if most of a file is markup or data, as in mail, tables
// and manual pages. Package markdown finds the sections of readable text, such as AsciiDoc,
// in the source.
package convert

import (
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// The bounds of one conversion. A file that exceeds one of them is not converted.
const (
	maxOutput   = 10 << 20 // bytes of Markdown
	maxUnpacked = 64 << 20 // bytes of all unpacked parts of an archive
	maxDepth    = 200      // nesting of elements
	maxWork     = 3 << 30  // units of spend
)

// Error is the reason why a file cannot be converted. It is a property of the file, so a
// second attempt fails in the same way.
type Error struct{ Reason string }

func (e *Error) Error() string { return e.Reason }

var (
	errBroken    = &Error{"broken file"}
	errNoText    = &Error{"no text"}
	errEncrypted = &Error{"encrypted"}
	errUnpacked  = &Error{"unpacks to more than 64 MiB; split it"}
	errOutput    = &Error{"more than 10 MiB of text; split it"}
	errDepth     = &Error{"nested too deep"}
	errWork      = &Error{"takes too much work to read; split it"}
)

// A Converter writes the Markdown of a file to w. It returns an *Error, or panics with
// one, if the file cannot be converted. Markdown calls it.
type Converter func(w *writer, data []byte) error

// Markdown converts a file to Markdown in UTF-8. The name of a file without a title
// becomes its title. Equal data gives equal Markdown. The error is an *Error. Markdown does
// not keep or change data.
func Markdown(c Converter, name string, data []byte) ([]byte, error) {
	return (&writer{name: path.Base(name)}).convert(c, data)
}

// convert is Markdown for a writer that has written nothing yet.
func (w *writer) convert(c Converter, data []byte) (text []byte, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			text, err = nil, r
		default: // a broken file can cause an index out of range
			text, err = nil, errBroken
		}
	}()
	if err := c(w, data); err != nil {
		return nil, err
	}
	if len(w.out) == 0 {
		return nil, errNoText
	}
	return bytes.ToValidUTF8(w.out, []byte("\ufffd")), nil
}

// Gzip returns a Converter for files of c that are compressed with gzip. Nil stands for text,
// which it only decodes. A file may unpack to as many bytes as a file on disk may have.
func Gzip(c Converter) Converter {
	return func(w *writer, data []byte) error {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return errBroken
		}
		data, err = io.ReadAll(io.LimitReader(r, maxOutput+1))
		w.spend(20_000 + 8*len(data))
		switch {
		case err != nil:
			return errBroken
		case len(data) > maxOutput:
			return errOutput
		case c != nil:
			return c(w, data)
		}
		w.out = utf8Text(data, "")
		return nil
	}
}

// declared matches the encoding that a page, an XML file or the first line of a manual page
// declares.
var declared = regexp.MustCompile(`(?i)(?:<meta\s[^>]*charset=|<\?xml\s[^>]*encoding=|-\*-.*coding:)\s*["']?\s*([\w.:-]+)`)

// utf8Text decodes text in UTF-16 with a byte order mark, in UTF-8, in the encoding with a
// label of the web such as "shift_jis", by default the one that its first 64 KiB declare, or
// else in UTF-8 and Windows-1252. The result has no byte order mark. Valid UTF-8 is decoded
// only if it has escape characters, as in ISO-2022-JP.
func utf8Text(data []byte, label string) []byte {
	if m := declared.FindSubmatch(data[:min(len(data), 64<<10)]); m != nil && label == "" {
		label = string(m[1])
	}
	encoding, err := htmlindex.Get(label)
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		encoding = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case utf8.Valid(data) && (err != nil || bytes.IndexByte(data, 0x1b) < 0):
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	case err != nil, encoding == unicode.UTF8, encoding == charmap.Windows1252:
		return windows1252(data)
	}
	out, _ := encoding.NewDecoder().Bytes(data) // the decoders replace what they cannot read
	return out
}

// windows1252 decodes the bytes that are not UTF-8. Both can be in one file, such as a list
// of changes that many people write.
func windows1252(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/16)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			r = charmap.Windows1252.DecodeByte(data[0])
		}
		out, data = utf8.AppendRune(out, r), data[n:]
	}
	return out
}

// coding matches the encoding that one of the first two lines declares for an editor or for
// Python.
var coding = regexp.MustCompile(`^(?:.*\n)?.*coding[:=]\s*([\w.-]+)`)

// UTF8 returns the text of a file in UTF-8, with the same lines. The file is in UTF-16 with a
// byte order mark, in the encoding that one of its first two lines declares, or else in UTF-8
// and Windows-1252. UTF8 returns data itself if it is UTF-8 or does not seem to be text in
// such an encoding. It does not change data.
func UTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	label := "windows-1252"
	if m := coding.FindSubmatch(data[:min(len(data), 1<<10)]); m != nil {
		label = string(m[1])
	}
	if text := utf8Text(data, label); isReadable(text) {
		return text
	}
	return data
}

// isReadable reports whether a decoded text has no control characters of binary files, and its
// encoding is probable. Three letters in a row of those that Windows-1252 adds to ASCII are rare
// in its languages. They are usual in other text that is decoded from it, such as Cyrillic: of
// 80 texts, they were at most 0.3 % of the characters in the former and at least 6 % in the latter.
func isReadable(text []byte) bool {
	runes, odd, row, last := 0, 0, 0, rune(0)
	for _, r := range string(text) {
		if r < ' ' && !strings.ContainsRune("\a\b\t\n\v\f\r\x1a\x1b", r) {
			return false
		}
		if _, has := charmap.Windows1252.EncodeRune(r); !has || r < utf8.RuneSelf {
			row = 0
		} else if row++; row > 2 && r != last {
			odd++
		}
		if r == utf8.RuneError {
			odd++
		}
		runes, last = runes+1, r
	}
	return 20*odd <= runes
}
