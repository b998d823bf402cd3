// Package receipt cites lines of a document by their content, and finds out what became
// of them: they are the same, moved, changed or removed.
//
// It does not store receipts, and it reads documents only through a Source.
//
// # The form of a receipt
//
// A receipt is a place with a mark, as in
//
//	docs/serve.md:26-49#tokens@s5mXq0aFjT2kz1Bc
//
// A blank may be before the anchor and before the mark. Bytes of a path or an anchor that
// are not letters, digits or one of -._~/!$&*+,;= are written as in a URL.
// The mark is the base64url form of twelve bytes. Its fields are, from the highest bit:
//
//	36 bits  of the SHA-256 of the lines
//	30 bits  of the SHA-256 of their text without white space
//	12 bits  of a polynomial hash of that text, which make a search for it fast
//	18 bits  its length in bytes, at most 1<<18 - 1
//
// A Full receipt has the whole hash and what is around the lines, so that text which
// changed can be told from text which was removed.
package receipt

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Receipt cites the lines Start to End, from 1, of a document.
type Receipt struct {
	Path       string
	Start, End int
	Anchor     string // of the section with the lines; may be empty
	Mark       Mark
}

// Full is a receipt with more evidence than its short form has.
type Full struct {
	Receipt Receipt `json:"receipt"`
	// SHA256 is that of the lines with their line breaks, in hex.
	SHA256 string `json:"sha256"`
	// Before and After hash the nearest lines around that are not blank, as
	// neighbour does; empty at the ends of the document.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Text is the lines, at most MaxText bytes of them. It makes a difference visible.
	Text string `json:"text,omitempty"`
}

// MaxText is the most bytes of text in a Full receipt.
const MaxText = 2000

// Mark identifies lines by their content.
type Mark [12]byte

var encoding = base64.RawURLEncoding

func (m Mark) String() string { return encoding.EncodeToString(m[:]) }

const maxLength = 1<<18 - 1

// The fields of a mark.
func (m Mark) exact() uint64  { return binary.BigEndian.Uint64(m[:]) >> 28 }
func (m Mark) spaced() uint64 { return binary.BigEndian.Uint64(m[4:]) >> 30 & (1<<30 - 1) }
func (m Mark) rolled() uint64 { return uint64(binary.BigEndian.Uint32(m[8:])) >> 18 & (1<<12 - 1) }
func (m Mark) length() int    { return int(binary.BigEndian.Uint32(m[8:]) & maxLength) }

func exactOf(lines []byte) uint64 {
	sum := sha256.Sum256(lines)
	return binary.BigEndian.Uint64(sum[:]) >> 28
}

func spacedOf(packed []byte) uint64 {
	sum := sha256.Sum256(packed)
	return binary.BigEndian.Uint64(sum[:]) >> 34
}

// Of returns the receipt of the lines start to end of a text. It fails if the text has no
// such lines or they are blank.
func Of(path, anchor string, text []byte, start, end int) (Receipt, error) {
	return newDocument(text).receipt(path, anchor, start, end)
}

func (d *document) receipt(path, anchor string, start, end int) (r Receipt, err error) {
	if start < 1 || end < start || end > d.lines() {
		return r, fmt.Errorf("%s has %d lines, want lines %d-%d", path, d.lines(), start, end)
	}
	r = Receipt{Path: path, Start: start, End: end, Anchor: anchor}
	lines := newDocument(d.raw(start, end))
	if lines.pack(); len(lines.solid) == 0 {
		return r, fmt.Errorf("the lines %d-%d of %s are blank", start, end, path)
	}
	spaced, length := spacedOf(lines.solid), min(len(lines.solid), maxLength)
	binary.BigEndian.PutUint64(r.Mark[:], exactOf(lines.text)<<28|spaced>>2)
	binary.BigEndian.PutUint32(r.Mark[8:], uint32(spaced&3)<<30|uint32(rolledOf(lines.solid))<<18|uint32(length))
	return r, nil
}

// Make returns the full receipt of the lines start to end of a text. It fails as Of does.
func Make(path, anchor string, text []byte, start, end int) (Full, error) {
	return newDocument(text).full(path, anchor, start, end)
}

func (d *document) full(path, anchor string, start, end int) (f Full, err error) {
	if f.Receipt, err = d.receipt(path, anchor, start, end); err != nil {
		return f, err
	}
	lines := d.raw(start, end)
	sum := sha256.Sum256(lines)
	f.SHA256 = hex.EncodeToString(sum[:])
	f.Before, f.After = neighbour(d.nearest(start, -1)), neighbour(d.nearest(end, 1))
	f.Text = strings.ToValidUTF8(string(lines[:min(len(lines), MaxText)]), "")
	return f, nil
}

// neighbour returns the hash of a line without its white space, as 8 hex digits.
func neighbour(packed []byte) string {
	if len(packed) == 0 {
		return ""
	}
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:4])
}

// String returns the short form.
func (r Receipt) String() string {
	return r.place() + "@" + r.Mark.String()
}

func (r Receipt) place() string {
	place := fmt.Sprintf("%s:%d-%d", escape(r.Path), r.Start, r.End)
	if r.Anchor != "" {
		place += "#" + escape(r.Anchor)
	}
	return place
}

// escape writes the characters that could end a receipt as in a URL.
func escape(s string) string {
	return ending.ReplaceAllStringFunc(s, func(c string) string {
		return "%" + strings.ReplaceAll(fmt.Sprintf("% X", c), " ", "%")
	})
}

var ending = regexp.MustCompile("[" + outside + "%]")

// MarshalText returns the short form.
func (r Receipt) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the short form.
func (r *Receipt) UnmarshalText(text []byte) (err error) {
	m := short.FindSubmatchIndex(text)
	if m == nil || m[0] > 0 || m[1] < len(text) {
		return fmt.Errorf("%.200q is not a receipt, want path:from-to@mark or path:from-to#anchor@mark", text)
	}
	*r, err = parse(text, m)
	return err
}

// outside is a class of the characters that a path and an anchor do not have.
const outside = "\\s\\pC()<>\\[\\]{}\"'`|\\\\:@#"

// short matches a short form.
var short = regexp.MustCompile("([^" + outside + "]+):([0-9]{1,9})-([0-9]{1,9})( ?#[^" + outside + "]+)? ?@([A-Za-z0-9_-]{16})")

// parse returns the receipt at a match of short in a text.
func parse(text []byte, match []int) (r Receipt, err error) {
	m := make([]string, len(match)/2)
	for i := range m {
		if match[2*i] >= 0 {
			m[i] = string(text[match[2*i]:match[2*i+1]])
		}
	}
	if r.Path, err = url.PathUnescape(m[1]); err != nil {
		return r, err
	}
	if r.Anchor, err = url.PathUnescape(strings.TrimLeft(m[4], " #")); err != nil {
		return r, err
	}
	r.Start, _ = strconv.Atoi(m[2]) // at most nine digits
	r.End, _ = strconv.Atoi(m[3])
	if _, err = encoding.Decode(r.Mark[:], []byte(m[5])); err == nil && (r.Start < 1 || r.End < r.Start || r.Mark.length() == 0) {
		err = fmt.Errorf("%s is not a receipt: it names no lines", m[0])
	}
	return r, err
}

// form returns the receipt as it stands in a text: JSON, or the short form.
func (f *Full) form(full bool) ([]byte, error) {
	if full {
		return json.Marshal(f)
	}
	return f.Receipt.MarshalText()
}

// Cited is a receipt in a text, which is text[Start:End].
type Cited struct {
	Full
	Start, End int
}

// In returns the receipts in a text, in order, at most most: short forms, and JSON objects
// of Full that begin with the receipt and are in one line.
func In(text []byte, most int) (found []Cited) {
	at := 0
	for line := range bytes.Lines(text) {
		if bytes.IndexByte(line, '@') >= 0 {
			found = append(found, inLine(line, at)...)
		}
		if at += len(line); len(found) >= most {
			return found[:most]
		}
	}
	return found
}

// inLine returns the receipts in the line at an offset of a text.
func inLine(line []byte, offset int) (found []Cited) {
	next := 0
	for _, m := range short.FindAllSubmatchIndex(line, -1) {
		if m[0] < next {
			continue // inside a JSON object
		}
		r, err := parse(line, m)
		if err != nil {
			continue
		}
		c := Cited{Full{Receipt: r}, offset + m[0], offset + m[1]}
		if object := bytes.TrimSuffix(line[:m[0]], []byte(opening)); len(object) < m[0] {
			dec := json.NewDecoder(bytes.NewReader(line[len(object):min(len(line), len(object)+maxFull)]))
			if full := (Full{}); dec.Decode(&full) == nil && full.Receipt == r {
				next = len(object) + int(dec.InputOffset())
				c = Cited{full, offset + len(object), offset + next}
			}
		}
		found = append(found, c)
	}
	return found
}

// opening begins the JSON of a Full receipt, maxFull bounds it.
const (
	opening = `{"receipt":"`
	maxFull = 16 << 10
)
