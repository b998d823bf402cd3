package retriever

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"sort"
	"unicode/utf8"
)

// A Next token is the base64url encoding of: version (1 byte, 1), start and end offset
// of the remaining text (uint32 each), the first 8 bytes of the file's SHA-256, and the
// FNV-1a hash of the preceding bytes (uint32), little-endian.
const (
	nextVersion = 1
	nextSize    = 1 + 4 + 4 + 8 + 4
)

func encodeNext(f *parsedFile, start, end int) string {
	b := append(make([]byte, 0, nextSize), nextVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(start))
	b = binary.LittleEndian.AppendUint32(b, uint32(end))
	b, _ = hex.AppendDecode(b, []byte(f.hash[:16])) // f.hash is valid hex
	b = binary.LittleEndian.AppendUint32(b, sum32(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeNext returns the range that a Next token stands for. It fails with *StaleError
// for a token of another version of the file, and with *InvalidError for any other
// token that does not belong to e.
func decodeNext(s string, f *parsedFile, e extent) (start, end int, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != nextSize || b[0] != nextVersion || binary.LittleEndian.Uint32(b[nextSize-4:]) != sum32(b[:nextSize-4]) {
		return 0, 0, invalid("next", "%.80q is not a token from an earlier reading; omit it for the first part", s)
	}
	if have := hex.EncodeToString(b[9:17]); have != f.hash[:16] {
		return 0, 0, &StaleError{Path: f.path, Expected: have + "…", Actual: f.hash}
	}
	start, end = int(binary.LittleEndian.Uint32(b[1:])), int(binary.LittleEndian.Uint32(b[5:]))
	if start < e.start || start >= end || end != e.end || !utf8.RuneStart(f.text[start]) {
		return 0, 0, invalid("next", "the token belongs to another place")
	}
	return start, end, nil
}

// fitReading shortens a reading to the budget. It cuts at the last start of a section
// that fits, otherwise at a line break, otherwise between two runes.
func (r *Retriever) fitReading(f *parsedFile, e extent, reading *Reading, q ReadRequest) (*Reading, error) {
	budget := q.MaxTokens
	fits := func(end int) *Reading {
		if end-e.start > longestToken*budget {
			return nil
		}
		part := reading
		if end < e.end {
			cut := e
			cut.part = true
			_, cut.end = trimmed(f.text, e.start, end)
			part = r.reading(f, cut, reading.Cached)
			part.Next = encodeNext(f, end, e.end)
		}
		if r.size(part, q.AsText) > budget {
			return nil
		}
		return part
	}
	if whole := fits(e.end); whole != nil {
		return whole, nil
	}
	last := func(borders []int) (part *Reading) {
		sort.Search(len(borders), func(i int) bool {
			longer := fits(borders[i])
			if longer != nil {
				part = longer
			}
			return longer == nil
		})
		return part
	}
	var sections []int
	for i := range f.doc.Sections {
		if at := f.doc.Sections[i].Start; at > e.start && at < e.end {
			sections = append(sections, at)
		}
	}
	if part := last(sections); part != nil {
		return part, nil
	}
	from := sort.SearchInts(f.lines, e.start+1)
	to := sort.SearchInts(f.lines, e.end)
	if part := last(f.lines[from:to]); part != nil && part.Content != "" {
		return part, nil
	}
	var runes []int
	for i := e.start + 1; i < min(e.end, e.start+longestToken*budget); i++ {
		if utf8.RuneStart(f.text[i]) {
			runes = append(runes, i)
		}
	}
	if part := last(runes); part != nil {
		return part, nil
	}
	return nil, invalid("max_tokens", "%d is too small for any part of %q", budget, f.path)
}
