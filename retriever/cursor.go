package retriever

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// tokenVersion is the version of the tokens below.
const tokenVersion = 1

// encodeToken returns the base64url encoding of: version (1 byte), the parts, little-endian,
// and the FNV-1a hash of the preceding bytes (uint32).
func encodeToken(parts any) string {
	b, _ := binary.Append([]byte{tokenVersion}, binary.LittleEndian, parts) // never fails: the size of all parts is fixed
	return base64.RawURLEncoding.EncodeToString(binary.LittleEndian.AppendUint32(b, sum32(b)))
}

// decodeToken is the inverse of encodeToken. It reports whether s is a token of such parts.
func decodeToken(s string, parts any) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	size := 1 + binary.Size(parts)
	if err != nil || len(b) != size+4 || b[0] != tokenVersion || binary.LittleEndian.Uint32(b[size:]) != sum32(b[:size]) {
		return false
	}
	_, err = binary.Decode(b[1:], binary.LittleEndian, parts)
	return err == nil
}

func sum32(b []byte) uint32 {
	h := fnv.New32a()
	h.Write(b)
	return h.Sum32()
}

// cursor is the place in a result list at which a page begins. It does not include the limit,
// which may change from page to page.
type cursor struct {
	Offset            uint32
	Generation, Query uint64 // Query is a hash
}

// number returns the cursor as a person types it: the number of results before the page and,
// as decimals, a check of the index and the query.
func (c cursor) number() string {
	check := sum32(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.Generation), c.Query))
	return fmt.Sprintf("%d.%04d", c.Offset, check%10_000)
}

// Next returns NextCursor as a number that a person can type, such as 10.4821, and "" if
// there is no next page.
func (a *Answer) Next() string {
	if a.NextCursor == nil {
		return ""
	}
	c, _ := parseCursor(*a.NextCursor) // the retriever has made it
	return c.number()
}

// Offset returns the number of results before the page of a valid cursor of either form.
func Offset(text string) int {
	if whole, _, ok := strings.Cut(text, "."); ok {
		n, _ := strconv.Atoi(whole)
		return n
	}
	c, _ := parseCursor(text)
	return int(c.Offset)
}

// decodeCursor returns the cursor of q, or the zero cursor if q has none. It fails with
// *InvalidError for the cursor of another query, and with *IndexChangedError for one of
// another generation; for a number, which does not tell these apart, with *InvalidError.
func decodeCursor(q *Query, generation uint64) (cursor, error) {
	if q.Cursor == "" {
		return cursor{}, nil
	}
	if whole, _, ok := strings.Cut(q.Cursor, "."); ok {
		n, err := strconv.ParseUint(whole, 10, 31)
		c := cursor{uint32(n), generation, q.identity()}
		if err != nil || c.number() != q.Cursor {
			return c, invalid("cursor", "the index or the query has changed since %.80q was printed, or it is not a cursor: search again without it", q.Cursor)
		}
		return c, nil
	}
	c, err := parseCursor(q.Cursor)
	switch {
	case err != nil:
		return c, err
	case c.Generation != generation:
		return c, &IndexChangedError{Have: c.Generation, Want: generation}
	case c.Query != q.identity():
		return c, invalid("cursor", "the cursor belongs to another query")
	}
	return c, nil
}

// parseCursor decodes the token of a cursor. It fails with *InvalidError.
func parseCursor(s string) (c cursor, err error) {
	if !decodeToken(s, &c) || c.Offset > math.MaxInt32 {
		return cursor{}, invalid("cursor", "%.80q is not a cursor from an earlier answer; omit it for the first page", s)
	}
	return c, nil
}

// identity returns a hash of the fields of q that determine the order of results.
func (q *Query) identity() uint64 {
	h := fnv.New64a()
	tags := slices.Clone(q.Filter.Tags)
	for i, t := range tags {
		tags[i] = strings.ToLower(t)
	}
	slices.Sort(tags)
	inUse := slices.Sorted(slices.Values(q.Context))
	fmt.Fprintf(h, "%q %q %q %q %q %q %q %q %q", slices.Compact(inUse), q.Text, q.Mode, slices.Compact(tags),
		strings.ToLower(q.Filter.Priority), strings.ToLower(q.Filter.Assignee), q.Filter.PathPrefix, q.Filter.Kind, q.Filter.Paths)
	return h.Sum64()
}
