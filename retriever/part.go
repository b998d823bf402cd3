package retriever

import (
	"encoding/hex"
	"sort"
	"unicode/utf8"
)

// nextToken has the parts of a Next token: the remaining text and the first bytes of the
// file's SHA-256.
type nextToken struct {
	Start, End uint32
	Hash       [8]byte
}

func encodeNext(f *parsedFile, start, end int) string {
	next := nextToken{Start: uint32(start), End: uint32(end)}
	_, _ = hex.Decode(next.Hash[:], []byte(f.hash[:16])) // f.hash is valid hex
	return encodeToken(&next)
}

// decodeNext returns the range that a Next token stands for. It fails with *StaleError
// for a token of another version of the file, and with *InvalidError for any other
// token that does not belong to e.
func decodeNext(s string, f *parsedFile, e extent) (start, end int, err error) {
	var next nextToken
	if !decodeToken(s, &next) {
		return 0, 0, invalid("next", "%.80q is not a token from an earlier reading; omit it for the first part", s)
	}
	if have := hex.EncodeToString(next.Hash[:]); have != f.hash[:16] {
		return 0, 0, &StaleError{Path: f.path, Expected: have + "…", Actual: f.hash}
	}
	start, end = int(next.Start), int(next.End)
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
			for _, o := range reading.Outdated[:min(1, len(reading.Outdated))] {
				o.Diff = "" // a part has little room
				part.Outdated = append(part.Outdated, o)
			}
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
